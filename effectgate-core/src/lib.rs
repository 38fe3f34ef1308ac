//! The pure part of EffectGate: policy, events, judging, verdict, evidence.
//! No I/O, no clock, no kernel.
#![forbid(unsafe_code)]

pub mod input;
pub mod pin;
pub mod policy;
