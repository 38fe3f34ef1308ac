//! The observer's own ground: what would let effects go unseen.

use crate::input::{Backend, Guard, Reach};
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
        Guard::Socket { .. } => Judgement::violates(Rule::of_every_policy("unseen-socket")),
        Guard::Entered { .. } => Judgement::recorded("entered"),
        Guard::Escaped { .. } => Judgement::violates(Rule::of_every_policy("escaped")),
        Guard::Reached { reach: Reach::OthersIpc, .. }
            if tables.started.backend == Backend::TracePoint =>
        {
            Judgement {
                rule: Rule::of_every_policy("guard"),
                finding: Finding::RecordedWithDoubt(Doubt::OthersIpc),
            }
        }
        Guard::Reached { reach, .. } if reaches_out(*reach) => {
            Judgement::violates(Rule::of_every_policy("guard"))
        }
        Guard::Reached { .. } => Judgement::recorded("guard"),
        Guard::Unknown { .. } => Judgement {
            rule: Rule::of_every_policy("unknown-record"),
            finding: Finding::RecordedWithDoubt(Doubt::UnknownRecord),
        },
    }
}

/// Whether something outside the job is touched: the machine, other processes,
/// or the observer itself. The rest concerns nobody but the job; what it then
/// does with it is seen where it is done.
fn reaches_out(reach: Reach) -> bool {
    match reach {
        Reach::Bpf
        | Reach::Perf
        | Reach::Mount
        | Reach::Umount
        | Reach::PivotRoot
        | Reach::Load
        | Reach::Ptrace
        | Reach::Signal
        | Reach::CloneIntoCgroup
        | Reach::Capability
        | Reach::Terminal
        | Reach::Machine
        | Reach::Socket
        | Reach::Process
        | Reach::OthersIpc
        | Reach::HoldUp => true,
        Reach::Chroot
        | Reach::SqPoll
        | Reach::UserNamespace
        | Reach::Key
        | Reach::Ipc
        | Reach::Watch
        | Reach::Identity => false,
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
            assert!(judge(raw).is_violation());
            assert_eq!(
                judge(Guard::Entered { process: process.clone(), env: None }).finding,
                Finding::Recorded
            );
            assert!(judge(Guard::Escaped { pid: 1 }).is_violation());
            for (reach, violation) in [(Reach::Bpf, true), (Reach::Watch, false)] {
                let reached = Guard::Reached { reach, detail: 5, pid: 0, object: None };
                let found = judge(reached);
                assert_eq!((found.is_violation(), found.rule.name), (violation, "guard"));
            }
            assert_eq!(
                judge(Guard::Unknown { kind: 9, op: 9 }).doubt(),
                Some(&Doubt::UnknownRecord)
            );
        }
    }
}
