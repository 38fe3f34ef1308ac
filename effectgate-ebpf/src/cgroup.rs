//! Which job's cgroup does a cgroup lie in?

use crate::{
    kernel::{
        OFF_CGROUP_CSS, OFF_CGROUP_KN, OFF_CSS_CGROUP, OFF_CSS_PARENT, OFF_CSS_SET_CGROUP,
        OFF_KN_ID, OFF_TASK_CGROUPS, Ptr, follow, offset, read,
    },
    scope::CGROUPS,
};

/// Levels followed towards the root of the hierarchy.
const LEVELS: usize = 32;

/// The job whose cgroup is `cgroup` or an ancestor of it.
#[inline(never)]
pub fn job(mut cgroup: Ptr) -> u64 {
    for _ in 0..LEVELS {
        let Some(id) = follow(cgroup, &OFF_CGROUP_KN).and_then(|kn| read::<u64>(kn, &OFF_KN_ID))
        else {
            return 0;
        };
        // SAFETY: a value is a number written once.
        if let Some(job) = unsafe { CGROUPS.get(id) } {
            return *job;
        }
        let css = cgroup.wrapping_add(offset(&OFF_CGROUP_CSS));
        let Some(above) = follow(css, &OFF_CSS_PARENT).and_then(|css| follow(css, &OFF_CSS_CGROUP))
        else {
            return 0;
        };
        cgroup = above;
    }
    0
}

/// The cgroup v2 of a task.
#[inline(always)]
pub fn of(task: Ptr) -> Option<Ptr> {
    follow(task, &OFF_TASK_CGROUPS).and_then(|set| follow(set, &OFF_CSS_SET_CGROUP))
}
