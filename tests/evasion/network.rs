//! Hosts and sockets. Group 0 holds the plain operations.

use crate::row::Harm::{Done, None};
use crate::row::Want::{NotPass, Pass};

crate::rows! {
    0 socket_tcp "socket 2 1 0" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 tcp_connect "connect {tcp}" => "net/connect {tcp}";
    0 tcp_connect6 "connect {tcp6}" => "net/connect {tcp6}";
    0 mptcp_connect "mptcp-connect {tcp}" => "net/connect {tcp}";
    0 udp_sendto "sendto {udp}" => "net/send {udp}";
    0 udp_sendto6 "sendto {udp6}" => "net/send {udp6}";
    0 udp_sendmsg "sendmsg {udp}" => "net/send {udp}";
    0 udp_connect_send "udp-write {udp}" => "net/connect {udp}";
    0 bind_any "listen-all 0.0.0.0:0" => "net/bind 0.0.0.0" { harm: Done };
    0 bind_any6 "listen-all [::]:0" => "net/bind" { harm: Done };
    0 listen_unbound "listen-unbound" => "net/bind 0.0.0.0 | net/listen 0.0.0.0" { harm: Done, lsm: NotPass, tracepoint: NotPass };
    0 netlink "netlink-send" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 unix_pair "unix-pair" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 unix_bind "unix-bind {outside}/new" => "file/create {outside}/new";
    0 alg "alg-bind" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 send_to_a_handed_connection "send-fd {connection}" => "guard/reached socket | net/send {tcp}";

    1 io_uring_connect "io-uring-connect {tcp}" => "net/connect {tcp}";
    1 io_uring_socket_and_connect "io-uring-socket-connect {tcp}" => "net/connect {tcp}";
    1 io_uring_sendmsg "io-uring-sendmsg {udp}" => "net/send {udp}";
    2 io_uring_connect_by_a_worker "io-uring-connect-by-worker {tcp}" => "net/connect {tcp}";

    3 fast_open_by_sendto "tcp-fastopen {tcp}" => "net/connect {tcp}";
    3 fast_open_by_an_option "tcp-fastopen-option {tcp}" => "net/connect {tcp}";
    4 sendmmsg_to_mixed_destinations "sendmmsg {listed-udp} {udp}" => "net/send {udp}";
    4 splice_to_a_socket "udp-splice {udp} {root}/file" => "net/connect {udp}";
    4 sendfile_to_a_socket "tcp-sendfile {tcp} {root}/file" => "net/connect {tcp}";
    4 connected_again_elsewhere "udp-reconnect {listed-udp} {udp}" => "net/connect {udp}";
    4 mapped_address "tcp-mapped {tcp-port}" => "net/connect {tcp} | net/connect {tcp-port}";
    4 mapped_address_by_datagram "udp-mapped {udp-port}" => "net/send {udp} | net/send {udp-port}";
    4 address_that_means_here "tcp-any {tcp-port}" => "net/connect {tcp} | net/connect {tcp-port}";

    5 raw_icmp "raw-icmp 127.0.0.1:0" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 raw_udp "raw-udp {udp}" => "guard/socket | net/send" { tracepoint: NotPass };
    5 ping "ping-socket 127.0.0.1:0" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 packet "packet-send" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 vsock "vsock-connect" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 udp_lite "udp-lite {udp}" => "guard/socket | net/send {udp}" { harm: Done, tracepoint: NotPass };
    5 sctp "socket-family 2 1 132" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 bluetooth "socket-family 31 3 0" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 tipc "socket-family 30 5 0" => "guard/socket" { harm: Done, tracepoint: NotPass };
    5 xdp "socket-family 44 3 0" => "guard/socket" { harm: Done, tracepoint: NotPass };

    6 unix_stream_by_path "unix-stream {outside}/socket" => "net/ {outside}/socket" { tracepoint: NotPass };
    6 unix_stream_by_a_link "symlink {outside}/socket {directory}/l , unix-stream {directory}/l" => "net/ {outside}/socket" { tracepoint: NotPass };
    6 unix_stream_by_a_descriptor "unix-opath {outside}/socket" => "net/ {outside}/socket" { tracepoint: NotPass };
    6 unix_stream_without_a_path "unix-abstract {hidden}" => "net/ {hidden}" { tracepoint: NotPass };
    6 unix_datagram "unix-datagram {outside}/datagram" => "net/ {outside}/datagram" { tracepoint: NotPass };
    6 unix_datagram_connected "unix-datagram-connect {outside}/datagram" => "net/ {outside}/datagram" { tracepoint: NotPass };
    6 unix_datagram_without_a_path "unix-datagram-abstract {hidden}-datagram" => "net/ {hidden}-datagram" { tracepoint: NotPass };

    0 listed_address_in_anothers_network "join-namespace {network} 1073741824 , tcp-send {listed-tcp}" => "net/connect {listed-tcp}";
    4 socket_of_anothers_network "hold-socket-of {network} 9 , connect-fd 9 {listed-tcp}" => "net/connect {listed-tcp}";

    20 dns_to_an_unlisted_server "resolve {udp}" => "net/send {udp}";
    20 dns_to_the_usual_place "resolve 127.0.0.53:53" => "net/send 127.0.0.53:53" { harm: Done };
    20 dns_over_tls_and_https "attempt connect 127.0.0.9:853 , attempt connect 127.0.0.9:443" => "net/connect 127.0.0.9:443" { harm: None };
    20 hosts_file_edited "open-append /etc/hosts" => "file/open_write /etc/hosts" { harm: Done };
    20 resolver_settings_edited "open-append /etc/resolv.conf" => "file/open_write /etc/resolv.conf" { harm: Done };
}
