//! What the kernel did not run. A program that is told of something, not asked,
//! is skipped while a run of it has not ended on the same processor: the kernel
//! takes another task's for a recursion when the first was preempted in it
//! (`prog->active`, `kernel/bpf/trampoline.c`, `kernel/trace/bpf_trace.c`). That
//! an effect went by is not known then, only that one may have: it counts.

use std::{fs, os::fd::RawFd};

use anyhow::{Context, Result};
use effectgate_common::hooks::{Hook, Serves};
use effectgate_core::input::Class;

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
    /// Has a program be looked after. What another one stands in for is not missed.
    pub fn watch(&mut self, hook: &Hook, fd: RawFd) {
        if let Some(first) = hook.again {
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

    /// How often programs were skipped since this was last asked, by class.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn take(&mut self) -> Result<Vec<(Class, u64)>> {
        let mut counts = Vec::new();
        for program in &mut self.0 {
            let path = format!("/proc/self/fdinfo/{}", program.fd);
            let said = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
            let now =
                misses(&said).with_context(|| format!("{path} has no number behind {MISSES:?}"))?;
            let new = now.saturating_sub(program.skipped);
            if new > 0 {
                tracing::warn!(
                    program = program.name,
                    times = new,
                    "the kernel skipped a program, in which another task was preempted"
                );
                counts.push((program.class, new));
                program.skipped = now;
            }
        }
        Ok(counts)
    }
}

/// `bpf_prog_show_fdinfo`, since Linux 5.12.
const MISSES: &str = "recursion_misses:";

fn misses(said: &str) -> Option<u64> {
    said.lines().find_map(|line| line.strip_prefix(MISSES))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_count_is_read() {
        let said =
            "pos:\t0\nprog_type:\t26\nrun_cnt:\t5\nrecursion_misses:\t17\nverified_insns:\t9\n";
        assert_eq!(misses(said), Some(17));
        assert_eq!(misses("prog_type:\t26\n"), None);
        assert_eq!(misses("recursion_misses:\tmany\n"), None);
    }
}
