//! What the kernel did not run. A program that is told of something, not asked,
//! is skipped while a run of it has not ended on the same processor: the kernel
//! takes another task's for a recursion when the first was preempted or interrupted
//! in it (`prog->active`, `kernel/bpf/trampoline.c`, `kernel/trace/bpf_trace.c`).
//! That an effect went by is not known then, only that one may have: it counts.

use std::{fs, os::fd::RawFd};

use anyhow::{Context, Result};
use effectgate_common::hooks::{Attach, Hook, Serves};
use effectgate_core::input::{Backend, Class};

use super::attached::DESCRIPTORS;

/// The programs, and how often each was skipped so far.
#[derive(Debug, Default)]
pub struct Skipped(Vec<Program>);

#[derive(Debug)]
struct Program {
    name: &'static str,
    class: Class,
    /// Stays open as long as the program is loaded.
    fd: RawFd,
    skipped: u64,
}

impl Skipped {
    /// Has a program be looked after, unless it is never skipped. What another one
    /// stands in for is not missed.
    pub fn watch(&mut self, hook: &Hook, backend: Backend, fd: RawFd) {
        match hook.attach {
            Attach::TracePoint(_) | Attach::Function(_) => {}
            Attach::Lsm(_) if backend != Backend::Lsm => {}
            // `bpf_prog_check_recur`; cgroups' programs pass no such check.
            Attach::Lsm(_) | Attach::SockAddr(_) | Attach::Sock(_) => return,
        }
        if let Some(first) = hook.stands_in_for {
            self.0.retain(|program| program.name != first);
        }
        let class = match hook.serves {
            Serves::File => Class::File,
            Serves::Exec => Class::Exec,
            Serves::Net => Class::Net,
            Serves::Identity | Serves::Guard => Class::Guard,
        };
        self.0.push(Program { name: hook.program, class, fd, skipped: 0 });
    }

    /// How often each was skipped so far.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn counts(&self) -> Result<Vec<u64>> {
        self.0.iter().map(Program::misses).collect()
    }

    /// Whether these counts are others than were taken last.
    #[must_use]
    pub fn is_news(&self, counts: &[u64]) -> bool {
        self.0.iter().zip(counts).any(|(program, count)| program.skipped != *count)
    }

    /// Takes counts, and says by class what is new in them.
    pub fn take(&mut self, counts: &[u64]) -> Vec<(Class, u64)> {
        let mut new = Vec::new();
        for (program, count) in self.0.iter_mut().zip(counts) {
            let times = count.saturating_sub(program.skipped);
            program.skipped = *count;
            if times > 0 {
                tracing::warn!(program = program.name, times, "{SKIPPED}");
                new.push((program.class, times));
            }
        }
        new
    }
}

const SKIPPED: &str = "the kernel skipped a program: another task was preempted in it";

impl Program {
    fn misses(&self) -> Result<u64> {
        let path = format!("{DESCRIPTORS}/{}", self.fd);
        let said = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        misses(&said).with_context(|| format!("{path} has no number behind {MISSES:?}"))
    }
}

/// `bpf_prog_show_fdinfo`, since Linux 5.12.
const MISSES: &str = "recursion_misses:";

fn misses(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.strip_prefix(MISSES))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use effectgate_common::hooks::HOOKS;

    use super::*;

    #[test]
    fn the_kernels_count_is_read() {
        let said =
            "pos:\t0\nprog_type:\t26\nrun_cnt:\t5\nrecursion_misses:\t17\nverified_insns:\t9\n";
        assert_eq!(misses(said), Some(17));
        assert_eq!(misses("prog_type:\t26\n"), None);
        assert_eq!(misses("recursion_misses:\tmany\n"), None);
    }

    #[test]
    fn who_is_stood_in_for_is_not_missed_nor_who_is_asked() {
        let mut skipped = Skipped::default();
        let hook = |name| HOOKS.iter().find(|hook| hook.program == name).expect(name);
        for name in ["task_exec", "task_exec_again", "file_open", "connect4", "network_made"] {
            skipped.watch(hook(name), Backend::Lsm, -1);
        }
        let watched: Vec<_> = skipped.0.iter().map(|program| program.name).collect();
        assert_eq!(watched, ["task_exec_again", "network_made"]);
        skipped.watch(hook("file_open"), Backend::Fentry, -1);
        assert_eq!(skipped.0.len(), 3);
        assert!(skipped.counts().is_err(), "it has no such descriptor");

        assert!(skipped.is_news(&[0, 0, 7]) && !skipped.is_news(&[0, 0, 0]));
        let new = skipped.take(&[2, 0, 7]);
        assert_eq!(new, [(Class::Exec, 2), (Class::File, 7)]);
        assert_eq!(skipped.take(&[3, 0, 7]), [(Class::Exec, 1)]);
    }
}
