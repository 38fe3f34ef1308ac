//! The pure part of EffectGate: policy, events, judging, verdict, evidence.
//! No I/O, no clock, no kernel.
//!
//! The way through it:
//! 1. [`policy::parse`] reads an envelope; [`pin`] holds it against its digest.
//! 2. [`State::new`] and [`step`]: every [`input::Input`] goes in, [`Line`]s
//!    for the log come out, and with the job's end its [`Verdict`].
//! 3. [`replay::replay`] checks such a log and judges it again.
#![forbid(unsafe_code)]

pub mod chain;
mod envelope;
pub mod escape;
mod fault;
#[cfg(test)]
mod fixture;
mod form;
mod host;
pub mod input;
mod json;
pub mod judge;
mod names;
mod note;
pub mod pin;
pub mod policy;
pub mod process;
pub mod record;
pub mod redact;
pub mod replay;
pub mod secret;
mod step;
pub mod time;
pub mod verdict;

pub use step::{Line, Output, State, step};
pub use verdict::{Outcome, Verdict, Violation};
