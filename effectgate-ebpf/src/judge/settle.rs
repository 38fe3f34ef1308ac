//! What is done about a finding, by the job's mode.

use aya_ebpf::helpers::generated::bpf_send_signal;
use effectgate_common::{
    maps::{asks, mode},
    wire::decision,
};

use crate::{scope, verifier::veiled};

/// What is done about a finding in the job's mode. `denies`: whether the caller
/// can keep the effect from happening.
#[inline(always)]
pub fn settle(job: u64, finding: u32, denies: bool) -> u32 {
    veiled(u64::from(settled(job, finding, denies))) as u32
}

#[inline(always)]
fn settled(job: u64, finding: u32, denies: bool) -> u32 {
    if finding != decision::OUTSIDE && finding != decision::UNKNOWN {
        return finding;
    }
    match mode(job) {
        mode::ENFORCE if denies => decision::DENIED,
        mode::KILL if finding == decision::OUTSIDE => {
            // SAFETY: a number.
            unsafe { bpf_send_signal(SIGKILL) };
            decision::KILLED
        }
        _ => finding,
    }
}

/// Whether a finding will be denied by a hook that can, and nothing done yet.
#[inline(always)]
pub fn denied(job: u64, finding: u32) -> bool {
    let outside = finding == decision::OUTSIDE || finding == decision::UNKNOWN;
    outside && mode(job) == mode::ENFORCE
}

/// What is done about effects outside the job's policy.
#[inline(always)]
pub fn mode(job: u64) -> u32 {
    match scope::JOBS.get_ptr(job) {
        // SAFETY: one word, written before the job starts.
        Some(rules) => unsafe { (*rules).mode },
        None => mode::OBSERVE,
    }
}

const SIGKILL: u32 = 9;
const EPERM: i32 = 1;

/// What a hook that `denies` returns for a decision. What could not be reported
/// is denied as well, where the policy says so.
#[inline(always)]
pub fn answer(job: u64, decision: u32, sent: bool, denies: bool) -> i32 {
    let unreported = !sent && denies && denies_on_loss(job);
    if decision == decision::DENIED || unreported { -EPERM } else { 0 }
}

/// Whether, in this mode, what cannot be reported is to be denied.
#[inline(always)]
fn denies_on_loss(job: u64) -> bool {
    match scope::JOBS.get_ptr(job) {
        // SAFETY: words that are written before the job starts.
        Some(rules) => unsafe {
            (*rules).mode == mode::ENFORCE
                && (*rules).asks != asks::NOT_JUDGED
                && (*rules).asks & asks::DENY_ON_LOSS != 0
        },
        None => false,
    }
}
