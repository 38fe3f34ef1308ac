//! Where a case is played: a scene, sockets, and the words filled in.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::{Scene, gate, record};
use serde_json::Value;

use crate::case::Effect;

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    Inside,
    Outside,
}

/// A scene with sockets outside the job, half of them listed.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    tcp: [TcpListener; 4],
    udp: [UdpSocket; 4],
    /// Beside the job's, for the cases that need one.
    cgroup: Option<Cgroup>,
}

const LOOPBACK: [&str; 4] = ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0", "[::1]:0"];

impl Stage {
    pub(crate) fn new(words: &str) -> Stage {
        let scene = Scene::new();
        let (tcp, udp) = sockets();
        let cgroup = words.contains("{cgroup}").then(Cgroup::new);
        let stage = Stage { scene, tcp, udp, cgroup };
        let listed =
            ["{tcp4}", "{tcp6}", "{udp4}", "{udp6}"].map(|word| stage.fill(word, Side::Inside));
        stage.scene.allow_hosts(&listed);
        stage
    }

    /// Puts paths and addresses in the place of words in braces.
    pub(crate) fn fill(&self, template: &str, side: Side) -> String {
        let text = |path: PathBuf| path.to_str().expect("test paths are UTF-8").to_owned();
        let index = usize::from(side == Side::Outside);
        let tcp = |index: usize| self.tcp[index].local_addr().expect("bound").to_string();
        let udp = |index: usize| self.udp[index].local_addr().expect("bound").to_string();
        let (root, outside) = (text(self.scene.root()), text(self.scene.outside()));
        let place = if side == Side::Inside { &root } else { &outside };
        let bind4 = if side == Side::Inside { "127.0.0.1:" } else { "0.0.0.0:" };
        let bind6 = if side == Side::Inside { "[::1]:" } else { "[::]:" };
        let key = if side == Side::Inside { "RUN_ID" } else { "DEPLOY_TOKEN" };
        let cgroup =
            self.cgroup.as_ref().map(|cgroup| text(cgroup.path().to_owned())).unwrap_or_default();
        template
            .replace("{place}", place)
            .replace("{root}", &root)
            .replace("{outside}", &outside)
            .replace("{key}", key)
            .replace("{bind4}", bind4)
            .replace("{bind6}", bind6)
            .replace("{tcp4}", &tcp(index))
            .replace("{tcp6}", &tcp(2 + index))
            .replace("{udp4}", &udp(index))
            .replace("{udp6}", &udp(2 + index))
            .replace("{listed-udp4}", &udp(0))
            .replace("{cgroup}", &cgroup)
            .replace("{trigger}", &text(gate::trigger()))
    }

    pub(crate) fn expected(&self, effect: &Effect, side: Side) -> Expected {
        let fill = |template: &str| self.fill(template, side);
        match effect {
            Effect::File(action, path) => {
                Expected { kind: format!("file/{action}"), object: fill(path), other: None }
            }
            Effect::Two(action, path, other) => Expected {
                kind: format!("file/{action}"),
                object: fill(path),
                other: Some(fill(other)),
            },
            Effect::Net(action, endpoint) => {
                Expected { kind: format!("net/{action}"), object: fill(endpoint), other: None }
            }
            Effect::Env(key) => {
                Expected { kind: "env/".to_owned(), object: fill(key), other: None }
            }
            Effect::Escape => {
                Expected { kind: "guard/".to_owned(), object: "escape".to_owned(), other: None }
            }
            Effect::Exit => {
                Expected { kind: "exec/exit".to_owned(), object: String::new(), other: None }
            }
        }
    }
}

/// Sockets of which no two have the same port. The kernel gives one number to
/// a TCP and to a UDP socket without a thought, but an envelope speaks of ports
/// alone: with a number twice, what is meant to be outside could be listed.
fn sockets() -> ([TcpListener; 4], [UdpSocket; 4]) {
    loop {
        let tcp = LOOPBACK.map(|address| TcpListener::bind(address).expect("loopback is up"));
        let udp = LOOPBACK.map(|address| UdpSocket::bind(address).expect("loopback is up"));
        let tcp_ports = tcp.iter().map(|socket| socket.local_addr().expect("bound").port());
        let udp_ports = udp.iter().map(|socket| socket.local_addr().expect("bound").port());
        let ports: BTreeSet<u16> = tcp_ports.chain(udp_ports).collect();
        if ports.len() == tcp.len() + udp.len() {
            return (tcp, udp);
        }
    }
}

#[derive(Debug)]
pub(crate) struct Expected {
    /// Class and the beginning of the action.
    kind: String,
    object: String,
    other: Option<String>,
}

impl Expected {
    /// Whether this is the record of the effect.
    pub(crate) fn is(&self, event: &Value) -> bool {
        if !record::kind(event).starts_with(&self.kind) {
            return false;
        }
        let object = match record::text(&event["class"]) {
            "file" => self.object.is_empty() || record::path(event) == self.object,
            "net" => record::endpoint(event).starts_with(&self.object),
            _ => event.to_string().contains(&self.object),
        };
        object && self.other.as_ref().is_none_or(|other| record::other(event) == other)
    }

    /// Whether a violation belongs to the effect: one call may be several, such
    /// as a creation and the opening of what was created.
    pub(crate) fn is_about(&self, violation: &Value, stage: &Stage) -> bool {
        let outside = stage.scene.outside();
        match record::text(&violation["class"]) {
            "file" => {
                let below = |path: &str| Path::new(path).starts_with(&outside);
                let cgroup = stage.cgroup.as_ref().is_some_and(|cgroup| {
                    Path::new(record::path(violation)).starts_with(cgroup.path())
                });
                below(record::path(violation)) || below(record::other(violation)) || cgroup
            }
            _ => self.is(violation),
        }
    }
}
