//! Servers outside the job, and whether anything arrived there.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use effectgate_tests::network::{Network, give};

/// Of each kind one that the manifest lists and one that it does not, and Unix
/// sockets, none of them listed.
pub(crate) struct Servers {
    tcp: [TcpListener; 3],
    udp: [UdpSocket; 3],
    stream: UnixListener,
    hidden: UnixListener,
    hidden_datagram: UnixDatagram,
    datagram: UnixDatagram,
    name: String,
    giver: Option<JoinHandle<()>>,
    giver_path: PathBuf,
    over: Arc<AtomicBool>,
    late: Option<Late>,
    network: Option<Network>,
    /// The other end of a connection that the job's process may be handed.
    kept: Mutex<Option<TcpStream>>,
}

const LISTED: usize = 0;
const OUTSIDE: usize = 1;
const OUTSIDE6: usize = 2;
const ADDRESSES: [&str; 3] = ["127.0.0.1:0", "127.0.0.1:0", "[::1]:0"];

impl Servers {
    pub(crate) fn new(outside: &Path) -> Servers {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("effectgate-test-{}-{number}", std::process::id());
        let address = |name: &str| SocketAddr::from_abstract_name(name).expect("short");
        let (tcp, udp) = internet();
        let over = Arc::new(AtomicBool::new(false));
        let giver_path = outside.join("giver");
        let servers = Servers {
            stream: UnixListener::bind(outside.join("socket")).expect("bind"),
            datagram: UnixDatagram::bind(outside.join("datagram")).expect("bind"),
            hidden: UnixListener::bind_addr(&address(&name)).expect("bind"),
            hidden_datagram: UnixDatagram::bind_addr(&address(&format!("{name}-datagram")))
                .expect("bind"),
            giver: Some(giver(&giver_path, &outside.join("file"), over.clone())),
            over,
            giver_path,
            late: None,
            network: None,
            kept: Mutex::new(None),
            tcp,
            udp,
            name,
        };
        servers.tcp.iter().for_each(|it| it.set_nonblocking(true).expect("fcntl"));
        servers.udp.iter().for_each(|it| it.set_nonblocking(true).expect("fcntl"));
        for unix in [&servers.stream, &servers.hidden] {
            unix.set_nonblocking(true).expect("fcntl");
        }
        for unix in [&servers.datagram, &servers.hidden_datagram] {
            unix.set_nonblocking(true).expect("fcntl");
        }
        servers
    }

    /// A server that begins when something is written to a queue at `bell`.
    pub(crate) fn late(&mut self, bell: PathBuf, path: PathBuf) {
        self.late = Some(Late::new(bell, path));
    }

    /// A server at the address that is listed, in another network namespace.
    pub(crate) fn elsewhere(&mut self) {
        let listed = self.tcp[LISTED].local_addr().expect("bound");
        self.network = Some(Network::with_server(listed));
    }

    pub(crate) fn listed_ports(&self) -> [u16; 2] {
        [port(&self.tcp[LISTED]), self.udp[LISTED].local_addr().expect("bound").port()]
    }

    pub(crate) fn fill(&self, template: &str) -> String {
        let tcp = |index: usize| self.tcp[index].local_addr().expect("bound").to_string();
        let udp = |index: usize| self.udp[index].local_addr().expect("bound").to_string();
        template
            .replace("{tcp}", &tcp(OUTSIDE))
            .replace("{tcp6}", &tcp(OUTSIDE6))
            .replace("{udp}", &udp(OUTSIDE))
            .replace("{udp6}", &udp(OUTSIDE6))
            .replace("{listed-udp}", &udp(LISTED))
            .replace("{listed-tcp}", &tcp(LISTED))
            .replace("{tcp-port}", &port(&self.tcp[OUTSIDE]).to_string())
            .replace(
                "{udp-port}",
                &self.udp[OUTSIDE].local_addr().expect("bound").port().to_string(),
            )
            .replace("{hidden}", &self.name)
            .replace(
                "{network}",
                &self
                    .network
                    .as_ref()
                    .map_or(String::new(), |network| network.path().display().to_string()),
            )
    }

    /// A connection to the server that is not listed.
    pub(crate) fn connection(&self) -> OwnedFd {
        let server = &self.tcp[OUTSIDE];
        let stream = TcpStream::connect(server.local_addr().expect("bound")).expect("connect");
        let accepted = effectgate_tests::wait::until("the connection is there", || {
            server.accept().ok().map(|(stream, _)| stream)
        });
        accepted.set_nonblocking(true).expect("fcntl");
        *self.kept.lock().expect("not poisoned") = Some(accepted);
        stream.into()
    }

    /// Whether anything arrived that should not have.
    pub(crate) fn reached(&self) -> bool {
        let mut bytes = [0; 64];
        let kept = self.kept.lock().expect("not poisoned");
        let spoken = kept.as_ref().is_some_and(|mut it| it.read(&mut bytes).is_ok_and(|n| n > 0));
        spoken
            || [OUTSIDE, OUTSIDE6].into_iter().any(|index| {
                self.tcp[index].accept().is_ok() || self.udp[index].recv(&mut bytes).is_ok()
            })
            || self.late.as_ref().is_some_and(Late::reached)
            || self.network.as_ref().is_some_and(Network::reached)
            || self.stream.accept().is_ok()
            || self.hidden.accept().is_ok()
            || self.datagram.recv(&mut bytes).is_ok()
            || self.hidden_datagram.recv(&mut bytes).is_ok()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // One more that asks, so that the giver looks up.
        let _ = UnixStream::connect(&self.giver_path);
        if let Some(giver) = self.giver.take() {
            let _ = giver.join();
        }
    }
}

/// It listens only after the job has begun.
struct Late {
    bell: PathBuf,
    listens: Arc<Mutex<Option<UnixListener>>>,
    thread: Option<JoinHandle<()>>,
}

impl Late {
    fn new(bell: PathBuf, path: PathBuf) -> Late {
        let name = std::ffi::CString::new(bell.as_os_str().as_encoded_bytes()).expect("no NUL");
        // SAFETY: the name lives across the call.
        let made = unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
        assert_eq!(made, 0, "{}", io::Error::last_os_error());
        let listens = Arc::new(Mutex::new(None));
        let (rung, begun) = (bell.clone(), listens.clone());
        let thread = std::thread::spawn(move || {
            if std::fs::read(rung).is_ok_and(|bytes| bytes == b"x") {
                let listener = UnixListener::bind(path).expect("bind");
                listener.set_nonblocking(true).expect("fcntl");
                *begun.lock().expect("not poisoned") = Some(listener);
            }
        });
        Late { bell, listens, thread: Some(thread) }
    }

    fn reached(&self) -> bool {
        let listens = self.listens.lock().expect("not poisoned");
        listens.as_ref().is_some_and(|it| it.accept().is_ok())
    }
}

impl Drop for Late {
    fn drop(&mut self) {
        // If nobody has rung, it waits to be let go.
        let opened = File::options().read(true).write(true).open(&self.bell);
        if let (Ok(mut bell), Some(thread)) = (opened, self.thread.take()) {
            let _ = io::Write::write_all(&mut bell, b"end");
            drop(bell);
            let _ = thread.join();
        }
    }
}

fn port(server: &TcpListener) -> u16 {
    server.local_addr().expect("bound").port()
}

/// Ports of which no two are alike: a manifest names ports, not protocols.
fn internet() -> ([TcpListener; 3], [UdpSocket; 3]) {
    loop {
        let tcp = ADDRESSES.map(|address| TcpListener::bind(address).expect("loopback is up"));
        let udp = ADDRESSES.map(|address| UdpSocket::bind(address).expect("loopback is up"));
        let ports: BTreeSet<u16> = tcp
            .iter()
            .map(port)
            .chain(udp.iter().map(|socket| socket.local_addr().expect("bound").port()))
            .collect();
        if ports.len() == tcp.len() + udp.len() {
            return (tcp, udp);
        }
    }
}

/// Gives whoever connects a descriptor of the file, open to be written; until
/// it is over.
fn giver(path: &Path, file: &Path, over: Arc<AtomicBool>) -> JoinHandle<()> {
    let listener = UnixListener::bind(path).expect("bind");
    let file = File::options().read(true).write(true).open(file).expect("open");
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            if over.load(Ordering::Acquire) {
                return;
            }
            // Whoever asked may be gone already.
            let _ = give(&stream, &file);
        }
    })
}
