//! Any bytes as a trace: findings with a reason and a place, never a panic;
//! the same whatever the reads they come in; and no secret's value.
#![no_main]

use std::io::BufReader;

use effectgate_core::compare::{Against, Comparison, compare};
use effectgate_core::policy::{self, Policy};
use libfuzzer_sys::fuzz_target;

const MANIFEST: &[u8] = include_bytes!("../../policies/cases/trace/agent-egress.yml");
const TODAY: &str = "2026-01-31";

fuzz_target!(|bytes: &[u8]| {
    let policy = policy::parse("agent-egress.yml", MANIFEST, TODAY).expect("it holds");
    let whole = held(bytes, usize::MAX, &policy);
    assert!(whole.findings.iter().all(|one| !one.why.is_empty() && !one.help.is_empty()));
    assert_eq!(whole.holds, whole.counts.is_empty());
    assert_eq!(held(bytes, 7, &policy), whole);
});

fn held(bytes: &[u8], read: usize, policy: &Policy) -> Comparison {
    let resolve = &mut |_: &str| None;
    let against = Against { policy, workspace: "/srv/repo", today: TODAY, resolve };
    let trace = BufReader::with_capacity(read.min(1 << 16), bytes);
    compare(trace, against).expect("bytes can be read")
}
