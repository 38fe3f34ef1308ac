//! The pure part of EffectGate: policy, events, judging, verdict, evidence.
//! No I/O, no clock, no kernel.
#![forbid(unsafe_code)]

mod envelope;
mod fault;
mod form;
mod host;
pub mod input;
mod json;
mod note;
pub mod pin;
pub mod policy;
mod time;
