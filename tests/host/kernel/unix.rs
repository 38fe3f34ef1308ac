//! Unix sockets: the job's own, and those behind which somebody else stands.

use std::io::{IoSlice, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Gate, Outcome, Scene, gate, record, watched};
use serde_json::Value;

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &[
    "unix_stream_connect",
    "unix_may_send",
    "syscall_socket",
    "socket_handed",
    "socket_sendmsg",
    "socket_recvmsg",
    "socket_sent",
    "socket_received",
    "syscall_passed",
];

/// Sockets of this process, outside the job, in a directory that the job may write.
struct Strangers {
    scene: Scene,
    name: String,
    _held: (UnixListener, UnixListener, UnixDatagram, UnixDatagram),
}

impl Strangers {
    fn new() -> Strangers {
        let scene = Scene::new();
        let name = format!("effectgate-{}", scene.path().display());
        let address = |kind: &str| {
            SocketAddr::from_abstract_name(format!("{name}-{kind}")).expect("short enough")
        };
        let place = |kind: &str| scene.root().join(kind);
        let held = (
            UnixListener::bind(place("stream")).expect("bind"),
            UnixListener::bind_addr(&address("stream")).expect("bind"),
            UnixDatagram::bind(place("datagram")).expect("bind"),
            UnixDatagram::bind_addr(&address("datagram")).expect("bind"),
        );
        Strangers { scene, name, _held: held }
    }

    fn path(&self, kind: &str) -> String {
        self.scene.root().join(kind).to_str().expect("UTF-8").to_owned()
    }
}

/// One violation, about what is at this address.
fn assert_only(outcome: &Outcome, kinds: &[&str], key: &str, address: &str) {
    outcome.assert_fail();
    let violations = outcome.violations();
    assert!(!violations.is_empty(), "{}", outcome.story());
    for event in violations {
        let kind = record::kind(event);
        assert!(kinds.contains(&kind.as_str()), "{kind}{}", outcome.story());
        assert_eq!(record::text(&event["object"][key]), address, "{}", outcome.story());
        assert_eq!(event["object"]["own"], false, "{}", outcome.story());
    }
}

#[test]
fn strangers_by_path() {
    for (effect, kind, seen) in [
        ("unix-stream", "stream", &["net/connect"][..]),
        ("unix-opath", "stream", &["net/connect"]),
        ("unix-datagram", "datagram", &["net/send"]),
        // The kernel's hook asks the same of a connection and of a datagram.
        ("unix-datagram-connect", "datagram", &["net/connect", "net/send"]),
    ] {
        let strangers = Strangers::new();
        let path = strangers.path(kind);
        let outcome = watched::trigger(&strangers.scene, [effect, &path]);
        assert_only(&outcome, seen, "path", &path);
    }
}

#[test]
fn strangers_by_a_path_from_where_the_job_is() {
    let strangers = Strangers::new();
    let directory = strangers.scene.root();
    let directory = directory.to_str().expect("UTF-8");
    let words = ["sequence", "chdir", directory, ",", "unix-datagram", "datagram"];
    let outcome = watched::trigger(&strangers.scene, words);
    assert_only(&outcome, &["net/send"], "path", &strangers.path("datagram"));
}

#[test]
fn strangers_by_name() {
    for (effect, kind, seen) in [
        ("unix-abstract", "stream", "net/connect"),
        ("unix-datagram-abstract", "datagram", "net/send"),
    ] {
        let strangers = Strangers::new();
        let name = format!("{}-{kind}", strangers.name);
        let outcome = watched::trigger(&strangers.scene, [effect, &name]);
        assert_only(&outcome, &[seen], "abstract", &name);
    }
}

#[test]
fn own_sockets_of_every_kind() {
    let scene = Scene::new();
    let directory = scene.root();
    let words = ["own-unix", directory.to_str().expect("UTF-8")];
    watched::trigger(&scene, words).assert_pass();
}

/// What is listed may be spoken to, under its name and under another one.
#[test]
fn listed_by_a_manifest() {
    let scene = Scene::new();
    let place = scene.outside().join("stream");
    let _held = UnixListener::bind(&place).expect("bind");
    let place = place.to_str().expect("UTF-8");
    std::fs::create_dir(scene.root().join("tools")).expect("mkdir");
    std::fs::copy(gate::trigger(), scene.root().join("tools/trigger")).expect("copy");
    std::os::unix::fs::symlink(place, scene.root().join("link")).expect("symlink");
    let manifest = Manifest::new().set("unix_sockets", serde_json::json!([place]));
    scene.write_manifest(&manifest.text());
    for path in [place, "link"] {
        watched::manifest(&scene, "observe", ["tools/trigger", "unix-stream", path]).assert_pass();
    }
    scene.write_manifest(&Manifest::new().text());
    let outcome = watched::manifest(&scene, "observe", ["tools/trigger", "unix-stream", place]);
    outcome.assert_fail();
}

/// Descriptor that the trigger is handed.
const HANDED: RawFd = 9;

/// A TCP socket of this process, and its other end.
fn connection() -> (std::net::TcpStream, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let one = std::net::TcpStream::connect(listener.local_addr().expect("bound")).expect("connect");
    (one, listener.accept().expect("accept").0)
}

fn reached(outcome: &Outcome) -> Vec<&Value> {
    let violations = outcome.violations().into_iter();
    violations.filter(|event| record::kind(event) == "guard/reached").collect()
}

/// Nobody asked where a socket leads that was there before. `run` hands over the
/// standard streams and nothing else; who joins a job of the daemon may hold more.
#[test]
fn inherited() {
    if !watched::by_daemon() {
        return;
    }
    let (one, _other) = connection();
    // SAFETY: takes numbers; nobody else has a descriptor of this number.
    let fd = unsafe { libc::fcntl(one.as_raw_fd(), libc::F_DUPFD, HANDED) };
    assert!(fd >= HANDED, "{}", std::io::Error::last_os_error());
    let outcome = watched::trigger(&Scene::new(), ["send-fd", &fd.to_string()]);
    // SAFETY: the descriptor was just made, and nothing else knows of it.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    outcome.assert_fail();
    let seen = reached(&outcome);
    assert_eq!(seen.len(), 1, "{}", outcome.story());
    assert_eq!(record::text(&seen[0]["object"]["reach"]), "socket", "{}", outcome.story());
}

/// A standard stream is what the job was started to speak to.
#[test]
fn a_socket_as_a_standard_stream() {
    let (one, _other) = UnixStream::pair().expect("pair");
    let scene = Scene::new();
    let gate = Gate::new(&scene).with(|command| {
        command.stdin(Stdio::from(OwnedFd::from(one)));
    });
    gate.trigger(["send-fd", "0"]).assert_pass();
}

/// Gives `fd` to the first who connects.
fn give(listener: &UnixListener, fd: RawFd) {
    let (mut stream, _) = listener.accept().expect("accept");
    let rights = (libc::SOL_SOCKET as u64) | (libc::SCM_RIGHTS as u64) << 32;
    let mut control = [20_u64, rights, fd as u64];
    let part = [IoSlice::new(b"x")];
    // SAFETY: every field of `msghdr` may be zero.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part.as_ptr().cast_mut().cast();
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control);
    // SAFETY: what the message points to lives across the call.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, 0) };
    assert_eq!(sent, 1, "{}", std::io::Error::last_os_error());
    let _ = stream.flush();
}

#[test]
fn received() {
    let (one, _other) = connection();
    let scene = Scene::new();
    let path: PathBuf = scene.root().join("give");
    let listener = UnixListener::bind(&path).expect("bind");
    let fd = one.as_raw_fd();
    let giver = std::thread::spawn(move || give(&listener, fd));
    let handed = HANDED.to_string();
    let words = ["sequence", "receive-descriptor", path.to_str().expect("UTF-8"), &handed];
    let words = [&words[..], &[",", "send-fd", &handed]].concat();
    let outcome = watched::trigger(&scene, words);
    giver.join().expect("given");
    outcome.assert_fail();
    assert!(!reached(&outcome).is_empty(), "{}", outcome.story());
}

/// The same, unwatched: what is held against the job does happen.
#[test]
fn a_socket_can_be_received_and_used() {
    let (one, _other) = connection();
    let scene = Scene::new();
    let path = scene.root().join("give");
    let listener = UnixListener::bind(&path).expect("bind");
    let fd = one.as_raw_fd();
    let giver = std::thread::spawn(move || give(&listener, fd));
    let words = ["sequence", "receive-descriptor", path.to_str().expect("UTF-8"), "9"];
    let words = [&words[..], &[",", "send-fd", "9"]].concat();
    let done = Command::new(gate::trigger()).args(words).status().expect("started");
    giver.join().expect("given");
    assert!(done.success(), "{done:?}");
}
