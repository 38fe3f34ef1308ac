//! The job's own listeners, and those that only look like it.

use std::net::TcpListener;

use effectgate_tests::{Outcome, Scene, record, watched};

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
