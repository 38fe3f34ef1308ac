//! Which job's cgroup does a cgroup lie in?

use crate::{
    kernel::{
        OFF_CGROUP_CSS, OFF_CGROUP_KN, OFF_CGROUP_ROOT, OFF_CSS_CGROUP, OFF_CSS_PARENT,
        OFF_CSS_SET_CGROUP, OFF_HIERARCHY_ID, OFF_KN_ID, OFF_TASK_CGROUPS, Ptr, follow, offset,
        read,
    },
    repeat::{GO_ON, STOP, repeat},
    scope::CGROUPS,
};

/// Levels followed towards the root of the hierarchy.
const LEVELS: u32 = 32;

struct Climb {
    cgroup: u64,
    job: u64,
}

/// The job whose cgroup is `cgroup` or an ancestor of it; 0 for none.
#[inline(always)]
pub fn job(cgroup: Ptr) -> u64 {
    let mut state = Climb { cgroup: cgroup as u64, job: 0 };
    repeat(LEVELS, climb, &mut state);
    state.job
}

extern "C" fn climb(_: u64, state: *mut Climb) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let state = unsafe { &mut *state };
    let cgroup = state.cgroup as Ptr;
    let Some(id) = follow(cgroup, &OFF_CGROUP_KN).and_then(|kn| read::<u64>(kn, &OFF_KN_ID)) else {
        return STOP;
    };
    // SAFETY: a value is a number written once.
    if let Some(job) = unsafe { CGROUPS.get(id) } {
        state.job = *job;
        return STOP;
    }
    let css = cgroup.wrapping_add(offset(&OFF_CGROUP_CSS));
    let above = follow(css, &OFF_CSS_PARENT).and_then(|css| follow(css, &OFF_CSS_CGROUP));
    let Some(above) = above else { return STOP };
    state.cgroup = above as u64;
    GO_ON
}

/// Whether a cgroup is of the hierarchy that all jobs are in. The numbers of
/// others (version 1) are their own, and may be the same as a job's.
#[inline(always)]
pub fn is_of_jobs(cgroup: Ptr) -> bool {
    follow(cgroup, &OFF_CGROUP_ROOT).and_then(|root| read::<u32>(root, &OFF_HIERARCHY_ID))
        == Some(0)
}

/// The cgroup v2 of a task.
#[inline(always)]
pub fn of(task: Ptr) -> Option<Ptr> {
    follow(task, &OFF_TASK_CGROUPS).and_then(|set| follow(set, &OFF_CSS_SET_CGROUP))
}
