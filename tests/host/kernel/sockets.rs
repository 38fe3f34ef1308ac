//! Sockets whose traffic no hook can hold against a list of hosts are a violation
//! as soon as they are made; all others do not bother the verdict.

use effectgate_tests::{Scene, gate, record, watched};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &["socket_create", "socket_setsockopt", "syscall_exit"];

const UDP_LITE: i32 = 136;
const MPTCP: i32 = 262;

#[derive(Clone, Copy, PartialEq)]
enum Socket {
    Unseen,
    Seen,
}

use Socket::{Seen, Unseen};

macro_rules! sockets {
    ($($name:ident $socket:ident $family:expr, $kind:expr, $protocol:expr;)+) => {
        $(#[test]
        fn $name() {
            make($socket, [$family, $kind, $protocol]);
        })+
    };
}

#[rustfmt::skip]
sockets! {
    raw_icmp      Unseen  libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP;
    raw_icmp6     Unseen  libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6;
    raw_udp       Unseen  libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_UDP;
    ping          Unseen  libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_ICMP;
    packet        Unseen  libc::AF_PACKET, libc::SOCK_RAW, 0;
    packet_cooked Unseen  libc::AF_PACKET, libc::SOCK_DGRAM, 0;
    udp_lite      Unseen  libc::AF_INET, libc::SOCK_DGRAM, UDP_LITE;
    udp_lite6     Unseen  libc::AF_INET6, libc::SOCK_DGRAM, UDP_LITE;
    virtual_host  Unseen  libc::AF_VSOCK, libc::SOCK_STREAM, 0;

    tcp           Seen libc::AF_INET, libc::SOCK_STREAM, 0;
    tcp_by_name   Seen libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, libc::IPPROTO_TCP;
    tcp6          Seen libc::AF_INET6, libc::SOCK_STREAM, 0;
    udp           Seen libc::AF_INET, libc::SOCK_DGRAM, 0;
    udp_by_name   Seen libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_UDP;
    udp6          Seen libc::AF_INET6, libc::SOCK_DGRAM, 0;
    mptcp         Seen libc::AF_INET, libc::SOCK_STREAM, MPTCP;
    local_stream  Seen libc::AF_UNIX, libc::SOCK_STREAM, 0;
    local_packets Seen libc::AF_UNIX, libc::SOCK_SEQPACKET, 0;
    netlink       Seen libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE;
}

fn make(socket: Socket, numbers: [i32; 3]) {
    let numbers = numbers.map(|number| number.to_string());
    let words = ["socket", &numbers[0], &numbers[1], &numbers[2]];
    let bare = std::process::Command::new(gate::trigger())
        .args(words)
        .output()
        .expect("the trigger can be started");
    if !bare.status.success() {
        println!("not tested: this kernel has no such socket: {bare:?}");
        return;
    }
    let scene = Scene::new();
    let outcome = watched::trigger(&scene, words);
    let guard = outcome.events.iter().find(|event| record::kind(event) == "guard/socket");
    if socket == Seen {
        outcome.assert_pass();
        assert!(guard.is_none(), "{guard:?}");
        return;
    }
    outcome.assert_fail();
    let guard = guard.unwrap_or_else(|| panic!("no record of the socket{}", outcome.story()));
    for (key, number) in ["family", "type", "protocol"].into_iter().zip(&numbers) {
        assert_eq!(guard["object"][key].to_string(), *number, "{key} of {guard}");
    }
}

/// A packet that is sent by way of another address reaches that one first.
#[test]
fn packets_that_go_another_way() {
    let server = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is up");
    let address = server.local_addr().expect("bound").to_string();
    for effect in ["source-route", "source-route-message"] {
        let scene = Scene::new();
        scene.allow_hosts(std::slice::from_ref(&address));
        let outcome = watched::trigger(&scene, [effect, &address]);
        outcome.assert_fail();
        let violations = outcome.violations();
        assert_eq!(violations.len(), 1, "{}", outcome.story());
        assert_eq!(record::kind(violations[0]), "guard/socket", "{}", outcome.story());
    }
    let scene = Scene::new();
    scene.allow_hosts(std::slice::from_ref(&address));
    watched::trigger(&scene, ["sendto", &address]).assert_pass();
}
