//! The observer: loads the kernel side, runs jobs, serves the API and the
//! metrics. The binary is a thin wrapper around [`observe`]'s users.

pub mod observe;
