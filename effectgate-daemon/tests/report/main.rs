//! Reports of bundles: what they say, that those who read such formats take
//! them, and that nothing in a log can break out of them.

#[path = "../../../effectgate-core/tests/common/mod.rs"]
mod common;

mod bundle;
mod command;
mod content;
mod hostile;
mod schemas;
mod secrets;
