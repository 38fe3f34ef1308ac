use effectgate_daemon::observe::kernel::Kernel;
use effectgate_core::input::Backend;
fn main() -> anyhow::Result<()> {
    let b = if std::env::args().nth(1).as_deref() == Some("lsm") { Backend::Lsm } else { Backend::TracePoint };
    let root = std::env::args().nth(2).unwrap_or("/sys/fs/cgroup/unified".into());
    let mut k = Kernel::load(b, 1<<20, root.as_ref())?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    k.loss_counters(5, true)?;
    k.label(tid, 5)?;
    let _ = std::fs::read("/etc/hostname");
    let _ = std::fs::write("/tmp/xx", "y");
    let _ = std::fs::rename("/tmp/xx", "/tmp/yy");
    let _ = std::process::Command::new("/bin/true").arg("zzz").status();
    let _ = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"x", "127.0.0.1:9");
    let mut n = 0;
    while let Some(item) = k.ring().next() {
        let r = effectgate_daemon::observe::decode::decode(&item);
        n += 1;
        match r { Ok(r) => { println!("{} {} {} {:?}", r.header.kind, r.header.op, r.header.pid, if let effectgate_daemon::observe::decode::Body::File(f) = r.body { String::from_utf8_lossy(&effectgate_daemon::observe::decode::path(r.tail.get(f.object.path).unwrap())).into_owned() + &format!(" fl {:x} name {:?}", f.object.flags, r.tail.get(f.object.name).map(String::from_utf8_lossy)) } else { format!("{:?}", r.body) }) } Err(e) => println!("{e}") }
    }
    println!("{n} records, lost {:?}", k.lost(5)?);
    Ok(())
}
