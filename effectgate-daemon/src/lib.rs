//! The observer: loads the kernel side, runs jobs, serves the API and the
//! metrics. The binary is a thin wrapper around [`commands::dispatch`].

pub mod bundle;
pub mod cli;
mod clock;
pub mod commands;
pub mod diagnose;
pub mod engine;
pub mod exit;
pub mod held;
mod ledger;
mod lock;
pub mod log;
pub mod observe;
mod properties;
pub mod report;
pub mod run;
pub mod serve;
pub mod sign;
pub mod sinks;
mod whole;
