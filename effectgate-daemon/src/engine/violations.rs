//! What is done about an effect that the kernel programs let happen, though it
//! is outside the policy or not known to be inside: in some modes only user
//! space can answer it.

use effectgate_core::{
    Line,
    input::{Backend, JobId, Mode, Notice},
    judge::Decision,
};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::work::Work;

impl Work {
    /// Answers a record by the mode of its job.
    pub(super) fn answer(&mut self, line: &Line) {
        let Some(job) = self.jobs.get(&line.job) else { return };
        let violation = line.violations.first();
        match job.mode {
            Mode::Observe => {}
            Mode::Kill if job.stopped => {}
            // The kernel programs kill the process; the job is more than that.
            Mode::Kill if violation.is_some() => {
                let notice = Notice::Killed { pid: None, violation: line.seq };
                self.put_an_end_to(line.job, notice);
            }
            Mode::Kill => {}
            // What takes names or arguments to judge, no kernel program denies.
            Mode::Enforce => {
                let process = violation.and_then(|violation| violation.process.as_ref());
                let pid = process.map(|process| process.pid).or(line.doubted);
                let denies = self.backend() == Backend::Lsm;
                let let_happen = denies && line.decision == Decision::Recorded;
                if let Some(pid) = pid.filter(|_| let_happen)
                    && self.kill_process(line.job, pid)
                {
                    let notice = Notice::Killed { pid: Some(pid), violation: line.seq };
                    self.note(line.job, notice);
                }
            }
        }
    }

    /// Kills a process of the job, all its threads. False when it is gone.
    fn kill_process(&mut self, job: JobId, pid: u32) -> bool {
        let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // Held before it is asked whose it is: a number can be given again.
        let held = known.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let Some(held) = held.filter(|_| self.kernel.is_labelled(pid, job)) else { return false };
        pidfd_send_signal(held, Signal::KILL).is_ok()
    }
}
