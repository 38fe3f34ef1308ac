//! Which hosts a question is about.

use std::net::IpAddr;

use super::record::Record;
use crate::host::{self, HostName};

/// Hosts: a name, all names below one (`*.example.org`), an address, or a
/// network (`10.0.0.0/8`); names and addresses with a port or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    who: Who,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Name(String),
    /// With the dot before it.
    Below(String),
    Address(IpAddr),
    Network {
        address: u128,
        bits: u32,
        v4: bool,
    },
}

impl Hosts {
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Hosts, String> {
        if let Some((address, bits)) = text.split_once('/') {
            return network(address, bits).ok_or_else(|| {
                format!("{text:?} is no network; write it as 10.0.0.0/8 or 2001:db8::/32")
            });
        }
        let (plain, below) = match text.strip_prefix("*.") {
            Some(plain) => (plain, true),
            None => (text, false),
        };
        let host = host::parse(plain).map_err(|bad| format!("{}; {}", bad.message, bad.help))?;
        let who = match (host.name, below) {
            (HostName::Name(name), false) => Who::Name(name),
            (HostName::Name(name), true) => Who::Below(format!(".{name}")),
            (HostName::Address(address), false) => Who::Address(address),
            (HostName::Address(_), true) => {
                return Err(format!("{text:?}: only names have others below them"));
            }
        };
        Ok(Hosts { who, port: host.port })
    }

    pub fn has(&self, record: &Record<'_>) -> bool {
        let object = &record.object;
        if self.port.is_some() && self.port != object.port {
            return false;
        }
        let name = object.name.as_deref().filter(|_| object.address.is_some());
        let address = || object.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
        match &self.who {
            Who::Name(own) => name.is_some_and(|name| name.eq_ignore_ascii_case(own)),
            Who::Below(tail) => name.is_some_and(|name| {
                let at = name.len().checked_sub(tail.len());
                at.filter(|at| *at > 0)
                    .and_then(|at| name.get(at..))
                    .is_some_and(|end| end.eq_ignore_ascii_case(tail))
            }),
            Who::Address(own) => address().is_some_and(|address| address.to_canonical() == *own),
            Who::Network { address: own, bits, v4 } => address().is_some_and(|address| {
                let (number, is_v4) = number(address);
                is_v4 == *v4 && masked(number, *bits) == *own
            }),
        }
    }
}

fn network(address: &str, bits: &str) -> Option<Hosts> {
    let plain = bits.len() <= 3 && bits.bytes().all(|digit| digit.is_ascii_digit());
    let (address, bits) = (address.parse::<IpAddr>().ok()?, bits.parse::<u32>().ok()?);
    let longest = if address.is_ipv4() { 32 } else { 128 };
    if !plain || bits > longest {
        return None;
    }
    let (number, v4) = match address {
        // A network of mapped addresses is one of IPv6; its addresses are IPv4.
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() && bits >= 96 => {
            return network(&v6.to_canonical().to_string(), &(bits - 96).to_string());
        }
        address => number(address),
    };
    let bits = if v4 { bits + 96 } else { bits };
    Some(Hosts { who: Who::Network { address: masked(number, bits), bits, v4 }, port: None })
}

/// The address as the last bits of a number, and whether it is one of IPv4.
fn number(address: IpAddr) -> (u128, bool) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), true),
        IpAddr::V6(v6) => (v6.to_bits(), false),
    }
}

/// The first `bits` of 128.
fn masked(number: u128, bits: u32) -> u128 {
    if bits == 0 { 0 } else { number & (u128::MAX << (128 - bits)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(hosts: &str, name: Option<&str>, address: &str, port: u16) -> bool {
        let line = serde_json::json!({
            "action": "connect", "class": "net", "coverage": null, "decision": "allowed",
            "hash": "", "job": "", "prev": "", "process": null, "rule": {"name": ""}, "seq": 0,
            "ts": "", "within": true, "object": {"name": name, "address": address, "port": port},
        });
        let line = line.to_string();
        Hosts::parse(hosts).expect(hosts).has(&Record::of(line.as_bytes()).expect("a record"))
    }

    #[test]
    fn who_is_meant() {
        for (hosts, name, address, port, yes) in [
            ("api.example", Some("api.example"), "192.0.2.1", 443, true),
            ("API.Example.", Some("api.example"), "192.0.2.1", 443, true),
            ("api.example:443", Some("api.example"), "192.0.2.1", 443, true),
            ("api.example:80", Some("api.example"), "192.0.2.1", 443, false),
            ("api.example", Some("x.api.example"), "192.0.2.1", 443, false),
            ("*.api.example", Some("x.api.example"), "192.0.2.1", 443, true),
            ("*.api.example", Some("api.example"), "192.0.2.1", 443, false),
            ("*.example", Some("ünicode.example"), "192.0.2.1", 443, true),
            ("api.example", None, "192.0.2.1", 443, false),
            ("192.0.2.1", None, "192.0.2.1", 443, true),
            ("192.0.2.1", None, "::ffff:192.0.2.1", 443, true),
            ("192.0.2.1:80", None, "192.0.2.1", 443, false),
            ("[2001:db8::1]:443", None, "2001:db8::1", 443, true),
            ("10.0.0.0/8", None, "10.255.0.1", 1, true),
            ("10.0.0.0/8", None, "11.0.0.1", 1, false),
            ("10.1.2.3/32", None, "::ffff:10.1.2.3", 1, true),
            ("10.1.2.3/32", None, "10.1.2.4", 1, false),
            ("0.0.0.0/0", None, "10.1.2.4", 1, true),
            ("0.0.0.0/0", None, "2001:db8::1", 1, false),
            ("::/0", None, "2001:db8::1", 1, true),
            ("::/0", None, "10.1.2.4", 1, false),
            ("2001:db8::/32", None, "2001:db8:ffff::1", 1, true),
            ("2001:db8::/32", None, "2001:db9::1", 1, false),
            ("::ffff:10.0.0.0/104", None, "10.9.9.9", 1, true),
            ("10.0.0.0/8", None, "no address", 1, false),
        ] {
            assert_eq!(has(hosts, name, address, port), yes, "{hosts} {name:?} {address}");
        }
    }

    #[test]
    fn what_is_no_host() {
        for bad in [
            "",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "x/8",
            "*.10.0.0.1",
            "a b",
            "::/129",
            "1.2.3.4/+8",
            "http://x",
        ] {
            assert!(Hosts::parse(bad).is_err(), "{bad}");
        }
    }
}
