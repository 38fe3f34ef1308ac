//! Hosts: exact DNS names and addresses, with an optional port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::fault::quoted;

/// A host that a policy allows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    pub name: HostName,
    /// `None` is every port.
    pub port: Option<u16>,
    /// `None` is every protocol.
    pub protocol: Option<Protocol>,
}

/// A transport protocol that a manifest can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    Tcp,
    Udp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostName {
    /// Lower case, without the final dot.
    Name(String),
    /// IPv4-mapped IPv6 is written as IPv4.
    Address(IpAddr),
}

impl Host {
    /// Whether this entry lets `port` of a matching host through; `protocol`
    /// is a number of IANA's registry (`IPPROTO_…`).
    pub fn allows(&self, port: u16, protocol: u32) -> bool {
        self.port.is_none_or(|own| own == port)
            && self.protocol.is_none_or(|own| own.number() == protocol)
    }
}

impl Protocol {
    /// `IPPROTO_TCP`, `IPPROTO_UDP`: include/uapi/linux/in.h.
    pub fn number(self) -> u32 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }
    }

    /// The word in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        }
    }
}

/// A host as a trace writes it, with `/udp` behind it, or `/tcp`; and its
/// protocol by number, which is TCP where none is written.
pub(crate) fn reached(text: &str) -> Result<(Host, u32), BadHost> {
    let (plain, protocol) = match text.rsplit_once('/') {
        Some((plain, "udp")) => (plain, Protocol::Udp),
        Some((plain, "tcp")) => (plain, Protocol::Tcp),
        _ => (text, Protocol::Tcp),
    };
    Ok((parse(plain)?, protocol.number()))
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostName::Name(name) => f.write_str(name),
            HostName::Address(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.port) {
            (name, None) => write!(f, "{name}")?,
            (HostName::Address(IpAddr::V6(v6)), Some(port)) => write!(f, "[{v6}]:{port}")?,
            (name, Some(port)) => write!(f, "{name}:{port}")?,
        }
        match self.protocol {
            None => Ok(()),
            Some(protocol) => write!(f, "/{}", protocol.name()),
        }
    }
}

/// Whether an address is link-local or one of those at which clouds hand out
/// metadata and credentials: it is never meant by a name that resolves to it.
pub(crate) fn must_be_named(address: IpAddr) -> bool {
    // AWS (EC2, ECS, EKS), Alibaba, Azure, Oracle: their documentation. Most
    // clouds use the link-local 169.254.169.254.
    const METADATA: [IpAddr; 5] = [
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
        IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
        IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
        IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    ];
    let address = address.to_canonical();
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    link_local || METADATA.contains(&address) || translated(address).is_some_and(must_be_named)
}

/// Whether a name is one that clouds give their metadata service.
pub(crate) fn is_metadata_name(name: &str) -> bool {
    const NAMES: [&str; 6] = [
        "metadata.google.internal",
        "metadata.goog",
        "metadata",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.azure.internal",
    ];
    NAMES.contains(&name)
}

/// The IPv4 address that a translator takes an IPv6 address for (RFC 6052, 2.1).
fn translated(address: IpAddr) -> Option<IpAddr> {
    match address {
        IpAddr::V6(v6)
            if v6.octets().starts_with(&[0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]) =>
        {
            let [.., a, b, c, d] = v6.octets();
            Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
        _ => None,
    }
}

/// Why a text is no host.
#[derive(Debug, PartialEq)]
pub(crate) struct BadHost {
    pub rule: &'static str,
    pub message: String,
    pub help: &'static str,
}

pub(crate) fn parse(text: &str) -> Result<Host, BadHost> {
    let bad = |rule, what: &str, help| BadHost {
        rule,
        message: format!("{} {what}", quoted(text)),
        help,
    };
    if text.is_empty() {
        return Err(bad("host-empty", "is empty", "name a host or remove the entry"));
    }
    if !text.is_ascii() {
        let help = "write the name's punycode form (xn--…), in which look-alikes differ";
        return Err(bad("host-not-ascii", "is not ASCII", help));
    }
    if text.contains('*') {
        return Err(bad("host-wildcard", "is a wildcard", "list every host by its exact name"));
    }
    if text.contains('/') {
        let help = "write the host alone: no scheme, no path, no network mask";
        return Err(bad("host-form", "is a URL, a path or a network", help));
    }
    let (name, port) = split(text).ok_or_else(|| {
        bad("host-form", "is not in the form [address]:port", "write IPv6 with a port as [::1]:443")
    })?;
    let port = match port {
        None => None,
        Some(port) => Some(parse_port(port).ok_or_else(|| {
            bad("host-port", "has no port between 1 and 65535", "write host:443, or the host alone")
        })?),
    };
    let name = match name {
        Part::V6(v6) => HostName::Address(address6(v6).ok_or_else(|| {
            bad("host-address", "is no IPv6 address", "write it as in 2001:db8::1, without a zone")
        })?),
        Part::Name(name) => parse_name(name).map_err(|(rule, what, help)| bad(rule, what, help))?,
    };
    Ok(Host { name, port, protocol: None })
}

enum Part<'a> {
    Name(&'a str),
    V6(&'a str),
}

fn split(text: &str) -> Option<(Part<'_>, Option<&str>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((Part::V6(address), Some(port))),
            None if rest.is_empty() => Some((Part::V6(address), None)),
            None => None,
        };
    }
    match text.split_once(':') {
        None => Some((Part::Name(text), None)),
        Some((_, rest)) if rest.contains(':') => Some((Part::V6(text), None)),
        Some((name, port)) => Some((Part::Name(name), Some(port))),
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

fn address6(text: &str) -> Option<IpAddr> {
    text.parse::<Ipv6Addr>().ok().map(|v6| IpAddr::V6(v6).to_canonical())
}

type NameFault = (&'static str, &'static str, &'static str);

fn parse_name(text: &str) -> Result<HostName, NameFault> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    // What resolvers would read as a number must be one in the only form that
    // everybody reads alike: 0x7f.1, 127.1 and 010.0.0.1 are other addresses
    // to other programs.
    let digits = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    if digits || last.starts_with("0x") {
        return text.parse::<Ipv4Addr>().map(|v4| HostName::Address(IpAddr::V4(v4))).map_err(
            |_| {
                (
                    "host-address",
                    "is no IPv4 address",
                    "write four decimal numbers, as in 192.0.2.1",
                )
            },
        );
    }
    let letters = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(letters)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if name.len() > 253 || !name.split('.').all(label) {
        return Err((
            "host-name",
            "is no DNS name",
            "use letters, digits and inner hyphens, in labels of 1 to 63 joined by dots",
        ));
    }
    Ok(HostName::Name(name))
}

#[cfg(test)]
mod tests;
