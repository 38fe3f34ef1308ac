//! The pure part of EffectGate: policy, events, judging, verdict, evidence.
//! No clock, no kernel, and no I/O of its own: [`replay`] reads from the
//! [`BufRead`](std::io::BufRead) that it is given.
//!
//! The way through it:
//! 1. [`policy::parse`] reads an envelope or a manifest; [`pin`] holds it against its digest.
//! 2. [`State::new`] and [`step`]: every [`input::Input`] goes in, [`Line`]s
//!    for the log come out, and with the job's end its [`Verdict`].
//! 3. [`replay::replay`] checks such a log and judges it again;
//!    [`merkle`], [`checkpoint`] and [`proof`] prove one record of it alone.
//!
//! Around a run: [`diff`] says what a changed policy newly permits, [`draft`]
//! proposes one from a recorded run, [`compare`] holds a trace of an agent's
//! harness against one, and [`packet`] is what follows from both. Behind it:
//! [`forensics`] answers questions to logs.
//!
//! ```
//! let text = br#"{
//!   "envelope_id": "docs-v1", "allowed_roots": ["srv/repo"], "allowed_tools": [],
//!   "allowed_env": ["CI"], "allowed_hosts": [], "network": "deny"
//! }"#;
//! let faults = effectgate_core::policy::parse("envelope.json", text, "2026-01-31").unwrap_err();
//! assert_eq!(
//!     faults[0].to_string(),
//!     "envelope.json:2:47: allowed_roots: \"srv/repo\" is relative \
//!      (roots are absolute paths); write it from /",
//! );
//! ```
#![forbid(unsafe_code)]

pub mod bundle;
mod canonical;
pub mod chain;
pub mod checkpoint;
pub mod compare;
pub mod decide;
pub mod diff;
pub mod draft;
pub mod dropped;
pub mod dsse;
mod entries;
mod envelope;
pub mod escape;
mod fault;
#[cfg(test)]
mod fixture;
pub mod forensics;
mod form;
pub mod freeze;
mod host;
pub mod input;
mod json;
pub mod judge;
mod manifest;
pub mod merkle;
mod names;
mod note;
pub mod packet;
mod path;
pub mod pin;
pub mod policy;
pub mod process;
pub mod profile;
pub mod programs;
pub mod proof;
pub mod properties;
pub mod record;
pub mod redact;
pub mod replay;
pub mod report;
pub mod rules;
pub mod scan;
pub mod schema;
pub mod secret;
pub mod statement;
mod step;
pub mod time;
pub mod trace;
mod tree;
pub mod verdict;
mod yaml;

pub use step::{Line, Output, State, step};
pub use verdict::{Outcome, Verdict, Violation};
