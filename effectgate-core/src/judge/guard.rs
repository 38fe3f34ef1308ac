//! The observer's own ground: what would let effects go unseen.

use crate::input::{Backend, Guard};
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};

/// Judges what happened to the observation itself.
pub fn guard(tables: &Tables, guard: &Guard) -> Judgement {
    // Hooks in the kernel's objects see what io_uring and the 32-bit entry do;
    // system-call tracepoints do not.
    let blind = |name, doubt| match tables.started.backend {
        Backend::TracePoint => Judgement {
            rule: Rule::of_every_policy(name),
            finding: Finding::RecordedWithDoubt(doubt),
        },
        Backend::Lsm | Backend::Fentry => Judgement::recorded(name),
    };
    match guard {
        Guard::IoUring => blind("io-uring", Doubt::IoUring),
        Guard::CompatSyscall { .. } => blind("compat-syscall", Doubt::CompatSyscall),
        Guard::Socket { .. } => Judgement {
            rule: Rule::of_every_policy("unseen-socket"),
            finding: Finding::RecordedWithDoubt(Doubt::Socket),
        },
        Guard::Entered { .. } => Judgement::recorded("entered"),
        Guard::Escaped { .. } => {
            Judgement { rule: Rule::of_every_policy("escaped"), finding: Finding::Violation }
        }
        Guard::Unknown { .. } => Judgement {
            rule: Rule::of_every_policy("unknown-record"),
            finding: Finding::RecordedWithDoubt(Doubt::UnknownRecord),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::started;
    use crate::input::{Known, Started};

    #[test]
    fn every_guard_on_every_backend() {
        let process = Known { pid: 1, ppid: 0, start: 0, exe: vec![], comm: vec![] };
        for backend in Backend::ALL {
            let tables = Tables::new(Started { backend: *backend, ..started() });
            let judge = |what| guard(&tables, &what);
            let blind = *backend == Backend::TracePoint;
            assert_eq!(judge(Guard::IoUring).doubt().is_some(), blind);
            assert_eq!(judge(Guard::CompatSyscall { number: 5 }).doubt().is_some(), blind);
            let raw = Guard::Socket { family: 2, kind: 3, protocol: 1 };
            assert_eq!(judge(raw).doubt(), Some(&Doubt::Socket));
            assert_eq!(
                judge(Guard::Entered { process: process.clone(), env: None }).finding,
                Finding::Recorded
            );
            assert!(judge(Guard::Escaped { pid: 1 }).is_violation());
            assert_eq!(
                judge(Guard::Unknown { kind: 9, op: 9 }).doubt(),
                Some(&Doubt::UnknownRecord)
            );
        }
    }
}
