//! Addresses, by the hosts that the policy lists.

use aya_ebpf::{macros::map, maps::HashMap};
use effectgate_common::{
    maps::{Host, mode},
    wire::{decision, namespace, op},
};

use super::{judges, mode};

/// Addresses that jobs may reach.
#[map]
static HOSTS: HashMap<Host, u8> = HashMap::with_max_entries(65536, 0);

/// An address that a job binds, connects or sends to.
#[derive(Clone, Copy)]
pub struct Address {
    /// In four words as they stand in memory; IPv4 as IPv4-mapped IPv6.
    pub words: [u32; 4],
    /// Host byte order.
    pub port: u32,
    /// `IPPROTO_…`
    pub protocol: u32,
    /// The socket that answers there was made inside the job.
    pub own: bool,
    /// Whose network namespace it is an address of: one of `wire::namespace`.
    pub namespace: u32,
}

/// `IPPROTO_UDP`.
const UDP: u32 = 17;

impl Address {
    #[inline(always)]
    pub fn is_ipv4(&self) -> bool {
        self.words[0] == 0 && self.words[1] == 0 && self.words[2] == 0xffff_u32.to_be()
    }

    #[inline(always)]
    pub fn is_loopback(&self) -> bool {
        let [a, b, c, d] = self.words;
        if self.is_ipv4() {
            return d & 0xff == 127;
        }
        a | b | c == 0 && d == 1u32.to_be()
    }

    #[inline(always)]
    pub fn is_unspecified(&self) -> bool {
        let [a, b, c, d] = self.words;
        d == 0 && (self.is_ipv4() || a | b | c == 0)
    }

    /// What is sent there is for every socket that is bound to its port.
    #[inline(always)]
    pub fn is_broadcast(&self) -> bool {
        self.is_ipv4() && self.words[3] == 0x7fff_ffff_u32.to_be()
    }

    /// The four keys are all that a list of hosts can say of it.
    #[inline(always)]
    fn is_listed(&self, job: u64) -> bool {
        // SAFETY: sixteen bytes either way.
        let addr: [u8; 16] = unsafe { core::mem::transmute(self.words) };
        let has = |port, protocol| HOSTS.get_ptr(Host { job, addr, port, protocol }).is_some();
        has(self.port, self.protocol) || has(0, self.protocol) || has(self.port, 0) || has(0, 0)
    }
}

/// Judges what a socket does at an address.
#[inline(always)]
pub fn address(job: u64, op: u16, address: &Address) -> u32 {
    if !judges(job) {
        return decision::NONE;
    }
    let own = if op == op::BIND {
        address.is_loopback()
    } else {
        // How resolvers ask which source address they would have: nothing is
        // sent, and nothing can listen there.
        let probe = op == op::CONNECT && address.protocol == UDP && address.port == 0;
        (address.own || probe) && (address.is_loopback() || address.is_unspecified())
    };
    match address.namespace {
        // The same words say something else there.
        namespace::FOREIGN => decision::OUTSIDE,
        _ if !own && !address.is_listed(job) => decision::OUTSIDE,
        namespace::OWN => decision::WITHIN,
        _ => decision::UNKNOWN,
    }
}

/// Whether the job is kept from addresses that its policy does not list: the
/// network is cut off in every mode that does more than to observe.
#[inline(always)]
pub fn cuts_off(job: u64) -> bool {
    mode(job) != mode::OBSERVE
}
