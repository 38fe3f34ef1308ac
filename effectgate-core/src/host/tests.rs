use proptest::prelude::*;

use super::*;

proptest! {
    /// Whatever is accepted has one form, which means the same again.
    #[test]
    fn accepted_hosts_are_in_normal_form(
        noise: String,
        text in "[0-9a-fx:.%A-Z\\[\\]-]{1,24}",
        name in "([a-zA-Z0-9-]{1,6}[.]){0,3}[a-zA-Z0-9-]{1,6}[.]?(:[0-9]{1,5})?",
    ) {
        for text in [noise, text, name] {
            if let Ok(host) = parse(&text) {
                let normal = host.to_string();
                prop_assert_eq!(parse(&normal), Ok(host), "{} is {}", text, normal);
                prop_assert_eq!(normal.to_ascii_lowercase(), normal);
            }
        }
    }
}

#[test]
fn good_hosts() {
    for (text, want) in [
        ("Example.COM.", "example.com"),
        ("example.com:443", "example.com:443"),
        ("localhost", "localhost"),
        ("LocalHost.", "localhost"),
        ("example.com.:443", "example.com:443"),
        ("metadata.google.internal", "metadata.google.internal"),
        ("169.254.169.254", "169.254.169.254"),
        ("fd00:ec2::254", "fd00:ec2::254"),
        ("FE80::1", "fe80::1"),
        ("1.2.3.4a", "1.2.3.4a"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:65535", "192.0.2.1:65535"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ("[::1]", "::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:A9FE:A9FE", "169.254.169.254"),
        ("0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"),
        ("2001:0db8:0:0:0:0:0:1", "2001:db8::1"),
        ("[::ffff:c000:201]:80", "192.0.2.1:80"),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
    ] {
        let host = parse(text).unwrap_or_else(|bad| panic!("{text}: {bad:?}"));
        assert_eq!(host.to_string(), want);
        assert_eq!(parse(&host.to_string()).unwrap(), host);
    }
}

#[test]
fn addresses_that_must_be_named() {
    for text in [
        "169.254.169.254",
        "169.254.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::169.254.169.254",
        "fe80::1",
        "febf::1",
        "fd00:ec2::254",
        "100.100.100.200",
        "168.63.129.16",
    ] {
        assert!(must_be_named(text.parse().unwrap()), "{text}");
    }
    for text in ["192.0.2.1", "169.253.0.1", "fec0::1", "fd00:ec2::1", "64:ff9b::192.0.2.1"] {
        assert!(!must_be_named(text.parse().unwrap()), "{text}");
    }
}

#[test]
fn bad_hosts() {
    for (text, rule) in [
        ("", "host-empty"),
        ("*.example.com", "host-wildcard"),
        ("*", "host-wildcard"),
        ("https://example.com", "host-form"),
        ("10.0.0.0/8", "host-form"),
        ("exаmple.com", "host-not-ascii"),
        ("ｅｘａｍｐｌｅ.com", "host-not-ascii"),
        ("example。com", "host-not-ascii"),
        ("１２７.0.0.1", "host-not-ascii"),
        ("example\u{200b}.com", "host-not-ascii"),
        ("exam%70le.com", "host-name"),
        ("example.com%2f", "host-name"),
        ("me@example.com", "host-name"),
        ("example.com\\", "host-name"),
        ("example.com#", "host-name"),
        ("example.com\0", "host-name"),
        ("example..", "host-name"),
        (".", "host-name"),
        ("//example.com", "host-form"),
        ("example.com/", "host-form"),
        ("[example.com]", "host-address"),
        ("example.com:443:80", "host-address"),
        ("0x7f.1", "host-address"),
        ("127.1", "host-address"),
        ("127.0.0.1.", "host-address"),
        ("0177.0.0.1", "host-address"),
        ("0x7f.0x0.0x0.0x1", "host-address"),
        ("0X7F000001", "host-address"),
        ("017700000001", "host-address"),
        ("127.0.0.0x1", "host-address"),
        ("0x", "host-address"),
        ("1.2.3", "host-address"),
        ("1.2.3.4.", "host-address"),
        ("00.0.0.0", "host-address"),
        ("169.254.43518", "host-address"),
        ("[fe80::1%25eth0]", "host-address"),
        ("[fe80::1%2]:443", "host-address"),
        ("::ffff:127.1", "host-address"),
        ("::ffff:0x7f.0.0.1", "host-address"),
        ("0:0:0:0:0:ffff:169.254.169.256", "host-address"),
        ("[192.0.2.1]", "host-address"),
        ("12345::1", "host-address"),
        ("010.0.0.1", "host-address"),
        ("2130706433", "host-address"),
        ("0x7f000001", "host-address"),
        ("1.2.3.256", "host-address"),
        ("1.2.3.4.5", "host-address"),
        ("fe80::1%eth0", "host-address"),
        (":::", "host-address"),
        ("[::1", "host-form"),
        ("[::1]443", "host-form"),
        ("example.com:0", "host-port"),
        ("example.com:65536", "host-port"),
        ("example.com:0443", "host-port"),
        ("example.com:+443", "host-port"),
        ("example.com:", "host-port"),
        ("a b", "host-name"),
        ("-a.example", "host-name"),
        ("a-.example", "host-name"),
        ("a..example", "host-name"),
        (".example", "host-name"),
        ("a_b.example", "host-name"),
    ] {
        assert_eq!(parse(text).unwrap_err().rule, rule, "{text}");
    }
    assert!(parse(&format!("{}.example", "a".repeat(64))).is_err());
}
