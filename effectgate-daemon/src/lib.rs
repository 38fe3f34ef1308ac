//! The observer: loads the kernel side, runs jobs, serves the API and the
//! metrics. The binary is a thin wrapper.

pub mod engine;
pub mod observe;
pub mod sinks;
