//! An address is one of a network namespace: the job's, or another program's.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use effectgate_tests::network::{self, Network};
use effectgate_tests::{Outcome, Scene, record, watched};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["network_made", "task_fork", "syscall_socket"];

/// `CLONE_NEWNET`; with `CLONE_NEWUSER` every privilege over it is the job's.
const NETWORK: i32 = libc::CLONE_NEWNET;
const OWN: i32 = libc::CLONE_NEWNET | libc::CLONE_NEWUSER;

fn other() -> Network {
    Network::with_server("127.0.0.1:0".parse().expect("an address"))
}

/// A scene whose envelope lists the address.
fn scene(address: SocketAddr) -> Scene {
    let scene = Scene::new();
    scene.allow_hosts(&[address.to_string(), "0.0.0.0".to_owned()]);
    scene
}

fn assert_foreign(outcome: &Outcome, kind: &str) {
    outcome.assert_fail();
    let violations = outcome.violations();
    let found = violations.iter().find(|violation| {
        record::kind(violation) == kind && violation["object"]["family"] != "unix"
    });
    let found = found.unwrap_or_else(|| panic!("no {kind}{}", outcome.story()));
    assert_eq!(record::text(&found["object"]["namespace"]), "foreign", "{}", outcome.story());
    assert_eq!(record::text(&found["rule"]["name"]), "foreign-network", "{}", outcome.story());
    assert!(found.get("kernel").is_none(), "{}", outcome.story());
}

/// What is listed is not what is there.
#[test]
fn listed_address_in_anothers() {
    let network = other();
    let (address, path) = (network.address(), network.path());
    let join = format!("sequence join-namespace {} {NETWORK} ,", path.display());
    for (effect, kind) in [
        (format!("connect {address}"), "net/connect"),
        (format!("sendto {address}"), "net/send"),
        ("bind 127.0.0.1:0".to_owned(), "net/bind"),
        ("listen-unbound".to_owned(), "net/bind"),
    ] {
        let words = format!("{join} {effect}");
        let outcome = watched::trigger(&scene(address), words.split_whitespace());
        assert_foreign(&outcome, kind);
        assert_eq!(network.reached(), kind == "net/connect", "{effect}{}", outcome.story());
    }
    for mode in ["enforce", "kill"] {
        let words = format!("{join} connect {address}");
        let outcome = watched::trigger_in(&scene(address), mode, words.split_whitespace());
        assert_foreign(&outcome, "net/connect");
        let violations = outcome.violations();
        assert_eq!(record::text(&violations[0]["decision"]), "denied", "{}", outcome.story());
        assert!(!network.reached(), "{}", outcome.story());
    }
}

/// Nor is a child there at home.
#[test]
fn child_of_who_joined_anothers() {
    let network = other();
    let address = network.address();
    let path = network.path();
    let words = format!(
        "sequence join-namespace {} {NETWORK} , fork-then connect {address}",
        path.display()
    );
    assert_foreign(&watched::trigger(&scene(address), words.split_whitespace()), "net/connect");
}

/// A socket stays where it was made.
#[test]
fn socket_of_anothers() {
    let network = other();
    let address = network.address();
    let words =
        format!("sequence hold-socket-of {} 9 , connect-fd 9 {address}", network.path().display());
    assert_foreign(&watched::trigger(&scene(address), words.split_whitespace()), "net/connect");
    assert!(network.reached());
}

/// Who made it matters as little as who gave it.
#[test]
fn socket_that_was_handed() {
    let network = other();
    let address = network.address();
    let scene = scene(address);
    let path = scene.path().join("socket");
    let giver = UnixListener::bind(&path).expect("bind");
    let socket: OwnedFd = network.within(|| {
        // SAFETY: takes numbers; the descriptor is nobody else's.
        unsafe {
            let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            std::os::fd::FromRawFd::from_raw_fd(fd)
        }
    });
    let gives = std::thread::spawn(move || {
        let (stream, _) = giver.accept().expect("the job asks");
        network::give(&stream, &socket).expect("sent");
    });
    let path = path.display();
    let words = format!("sequence receive-descriptor {path} 9 , connect-fd 9 {address}");
    assert_foreign(&watched::trigger(&scene, words.split_whitespace()), "net/connect");
    gives.join().expect("given");
}

/// What the job makes is its own, whichever call made it.
#[test]
fn network_of_its_own() {
    for made in [format!("sequence unshare {OWN} ,"), format!("clone-then {OWN} sequence")] {
        let words = format!("{made} loopback-up , own-connect 127.0.0.1:0 127.0.0.1");
        let outcome = watched::trigger(&Scene::new(), words.split_whitespace());
        outcome.assert_pass();
        let connect = outcome.events.iter().find(|event| record::kind(event) == "net/connect");
        let connect = connect.unwrap_or_else(|| panic!("nothing seen{}", outcome.story()));
        assert!(connect["object"].get("namespace").is_none(), "{connect}");
    }
}

/// A stranger at home is one in a network that the job made, too.
#[test]
fn nobody_answers_in_a_network_of_its_own() {
    let stranger = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let address = stranger.local_addr().expect("bound");
    let words = format!("sequence unshare {OWN} , loopback-up , attempt connect {address}");
    let outcome = watched::trigger(&Scene::new(), words.split_whitespace());
    outcome.assert_fail();
    let violations = outcome.violations();
    assert_eq!(record::kind(violations[0]), "net/connect", "{}", outcome.story());
    assert!(violations[0]["object"].get("namespace").is_none(), "{}", outcome.story());
}

/// A job that comes from another network is at home there, and nowhere else.
#[test]
fn network_that_the_job_came_with() {
    let network = other();
    let address = network.address();
    let home = std::fs::canonicalize("/proc/self").expect("is there").join("ns/net");
    let stranger = TcpListener::bind("127.0.0.1:0").expect("loopback is up");
    let elsewhere = stranger.local_addr().expect("bound");
    network.within(move || {
        let words = format!("connect {address}");
        watched::trigger(&scene(address), words.split_whitespace()).assert_pass();
        let words =
            format!("sequence join-namespace {} {NETWORK} , connect {elsewhere}", home.display());
        let outcome = watched::trigger(&scene(elsewhere), words.split_whitespace());
        assert_foreign(&outcome, "net/connect");
    });
    assert!(network.reached());
}
