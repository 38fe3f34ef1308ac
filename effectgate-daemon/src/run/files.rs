//! How many files this process may hold open: a job's roots and programs are
//! some each.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as the kernel side knows files that mean something to jobs, with as
/// many roots and the rest.
const FILES: u64 = 2 * 65_536;

/// The limit before it was raised, which is the job's.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit as far as that is allowed.
pub fn raise_limit() {
    let before = getrlimit(Resource::Nofile);
    if BEFORE.set(before).is_err() {
        return;
    }
    let most = before.maximum.map(|hard| hard.max(FILES));
    let raised = Rlimit { current: most, maximum: most };
    let allowed = Rlimit { current: before.maximum, maximum: before.maximum };
    if setrlimit(Resource::Nofile, raised)
        .or_else(|_| setrlimit(Resource::Nofile, allowed))
        .is_err()
    {
        tracing::debug!("the limit of open files stays as it is");
    }
}

/// The limit before it was raised, if it was.
#[must_use]
pub fn limit_before() -> Option<Rlimit> {
    BEFORE.get().copied()
}
