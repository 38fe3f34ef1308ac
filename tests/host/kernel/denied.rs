//! What is denied does not happen: nothing comes to who listens, and no port is
//! taken. In every backend, and in each mode that does more than to observe.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use effectgate_tests::{Outcome, Scene, record, watched};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["before_bind4", "before_bind6"];

/// Somebody outside, at one port of both protocols, IPv4 and IPv6.
struct Stranger {
    tcp: TcpListener,
    udp: UdpSocket,
    port: u16,
}

impl Stranger {
    fn new() -> Stranger {
        let found = (0..64).find_map(|_| {
            let tcp = TcpListener::bind("[::]:0").ok()?;
            let port = tcp.local_addr().ok()?.port();
            let udp = UdpSocket::bind(("::", port)).ok()?;
            Some(Stranger { tcp, udp, port })
        });
        let stranger = found.expect("a port is free for both");
        stranger.tcp.set_nonblocking(true).expect("fcntl");
        stranger.udp.set_nonblocking(true).expect("fcntl");
        stranger
    }

    /// The first bytes that came, if any did.
    fn heard(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; 64];
        if let Ok(len) = self.udp.recv(&mut bytes) {
            return Some(bytes[..len].to_vec());
        }
        let came = match self.tcp.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                return None;
            }
        };
        Some(read(came))
    }
}

fn read(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(Duration::from_secs(5))).expect("setsockopt");
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

fn run(mode: &str, words: &str) -> Outcome {
    let scene = Scene::new();
    watched::trigger_in(&scene, mode, words.split_whitespace())
}

fn modes() -> [&'static str; 2] {
    ["enforce", "kill"]
}

fn assert_denied(outcome: &Outcome, kind: &str) {
    outcome.assert_fail();
    let violations = outcome.violations();
    let first = violations.first().unwrap_or_else(|| panic!("nothing seen{}", outcome.story()));
    assert_eq!(record::kind(first), kind, "{}", outcome.story());
    assert_eq!(record::text(&first["decision"]), "denied", "{}", outcome.story());
}

#[test]
fn speaking_to_a_stranger() {
    for mode in modes() {
        for (words, kind) in [
            ("connect 127.0.0.1:{port}", "net/connect"),
            ("connect [::1]:{port}", "net/connect"),
            ("tcp-fastopen 127.0.0.1:{port}", "net/connect"),
            ("mptcp-connect 127.0.0.1:{port}", "net/connect"),
            ("tcp-mapped {port}", "net/connect"),
            ("tcp-any {port}", "net/connect"),
            ("io-uring-connect 127.0.0.1:{port}", "net/connect"),
            ("udp-write 127.0.0.1:{port}", "net/connect"),
            ("sendto 127.0.0.1:{port}", "net/send"),
            ("sendto [::1]:{port}", "net/send"),
            ("udp-mapped {port}", "net/send"),
            ("sendmmsg 127.0.0.1:{port} 127.0.0.2:{port}", "net/send"),
        ] {
            let stranger = Stranger::new();
            let outcome = run(mode, &words.replace("{port}", &stranger.port.to_string()));
            assert_denied(&outcome, kind);
            assert_eq!(stranger.heard(), None, "{words}{}", outcome.story());
        }
    }
}

#[test]
fn taking_a_port() {
    for mode in modes() {
        for words in ["bind 0.0.0.0:0", "bind [::]:0"] {
            assert_denied(&run(mode, words), "net/bind");
        }
        run(mode, "self-connect 4").assert_pass();
        run(mode, "self-connect 6").assert_pass();
    }
}
