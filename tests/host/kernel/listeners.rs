//! The job's own listeners, and those that only look like it.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{FromRawFd, OwnedFd};

use effectgate_tests::{Outcome, Scene, record, watched};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["socket_listen", "syscall_socket"];

fn stranger() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

fn watch(hosts: &[&str], words: &str) -> Outcome {
    let scene = Scene::new();
    if !hosts.is_empty() {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        scene.allow_hosts(&hosts);
    }
    watched::trigger(&scene, words.split_whitespace())
}

/// The same port elsewhere is another listener.
#[test]
fn port_of_a_stranger() {
    for own in ["127.0.0.2", "[::1]"] {
        let (_listener, port) = stranger();
        let theirs = format!("127.0.0.1:{port}");
        let outcome = watch(&[], &format!("sequence listen {own}:{port} , connect {theirs}"));
        outcome.assert_fail();
        let violations = outcome.violations();
        assert_eq!(violations.len(), 1, "{}", outcome.story());
        assert_eq!(record::kind(violations[0]), "net/connect", "{}", outcome.story());
        assert_eq!(record::endpoint(violations[0]), theirs, "{}", outcome.story());
    }
}

/// What listens everywhere answers everywhere.
#[test]
fn own_port_everywhere() {
    for (any, address) in
        [("0.0.0.0", "127.0.0.1"), ("0.0.0.0", "127.0.0.3"), ("[::]", "::1"), ("[::]", "127.0.0.1")]
    {
        let host = any.trim_matches(['[', ']']);
        watch(&[host], &format!("own-connect {any}:0 {address}")).assert_pass();
    }
}

#[test]
fn own_port_at_one_address() {
    for own in ["127.0.0.1", "127.0.0.2"] {
        watch(&[], &format!("own-connect {own}:0 {own}")).assert_pass();
    }
}

/// Datagrams go both ways: a client's port is one that the kernel chose.
#[test]
fn own_answers() {
    for (any, address) in
        [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("0.0.0.0", "127.0.0.1"), ("[::]", "::1")]
    {
        let host = any.trim_matches(['[', ']']);
        watch(&[host], &format!("own-answers {any}:0 {address}")).assert_pass();
    }
}

/// Who is at a port where nobody listens any more is not known.
#[test]
fn own_port_that_was_closed() {
    let outcome = watch(&[], "own-closed 127.0.0.1:0");
    outcome.assert_fail();
    assert_eq!(record::kind(outcome.violations()[0]), "net/connect", "{}", outcome.story());
}

/// Listens with `SO_REUSEPORT`.
fn sharing() -> (TcpListener, u16) {
    // SAFETY: takes numbers; the descriptor is nobody else's.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        OwnedFd::from_raw_fd(fd)
    };
    let (fd, one) = (std::os::fd::AsRawFd::as_raw_fd(&socket), 1_i32);
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let (at, len) = ((&raw const address).cast(), size_of_val(&address) as libc::socklen_t);
    // SAFETY: number and address live across the calls and have these lengths.
    let done = unsafe {
        let option = libc::SO_REUSEPORT;
        libc::setsockopt(fd, libc::SOL_SOCKET, option, (&raw const one).cast(), 4)
            | libc::bind(fd, at, len)
            | libc::listen(fd, 16)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let listener = TcpListener::from(socket);
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// Whoever shares a port may be the one who answers.
#[test]
fn port_shared_with_a_stranger() {
    let (_listener, port) = sharing();
    let outcome = watch(&[], &format!("shared-port 127.0.0.1:{port}"));
    outcome.assert_fail();
    assert_eq!(record::kind(outcome.violations()[0]), "net/connect", "{}", outcome.story());
    let (listener, port) = sharing();
    drop(listener);
    watch(&[], &format!("shared-port 127.0.0.1:{port}")).assert_pass();
}

/// The address that means this machine, and IPv4 written as IPv6.
#[test]
fn other_words_for_loopback() {
    let listener = TcpListener::bind("[::]:0").expect("loopback is up");
    let port = listener.local_addr().expect("bound").port();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    for effect in ["tcp-any", "tcp-mapped"] {
        let outcome = watch(&[], &format!("{effect} {port}"));
        outcome.assert_fail();
        assert_eq!(outcome.violations().len(), 1, "{}", outcome.story());
    }
    watch(&[], "own-connect 127.0.0.1:0 0.0.0.0").assert_pass();
}

/// Listening takes a port at every address, without any bind.
#[test]
fn listening_without_a_bind() {
    let outcome = watch(&[], "listen-unbound");
    outcome.assert_fail();
    let violations = outcome.violations();
    assert_eq!(violations.len(), 1, "{}", outcome.story());
    assert_eq!(record::kind(violations[0]), "net/bind", "{}", outcome.story());
    let address = record::text(&violations[0]["object"]["address"]);
    assert_eq!(address, "0.0.0.0", "{}", outcome.story());
    watch(&["0.0.0.0"], "listen-unbound").assert_pass();
}
