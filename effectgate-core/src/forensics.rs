//! Questions to logs: which records, by which processes, in which order, and
//! what two runs did differently.
//!
//! Records are read as they stand. What every answer rests on is checked of
//! each line: its form, its number, its job. That nothing in it was changed is
//! for [`replay::verify`](crate::replay::verify) to say, which costs more.

mod difference;
mod filter;
mod frame;
mod hosts;
mod record;
mod scan;
mod timeline;
mod touched;
mod tree;
mod when;
mod words;

pub use difference::{Change, Difference, Run, Side, TooMany};
pub use filter::{Conditions, Filter, Program, Subtree};
pub use frame::Frame;
pub use hosts::Hosts;
pub use record::{Ancestor, Known, Object, Process, Record, Rule, Scalar, Text};
pub use scan::{End, Scan};
pub use timeline::{Group, Timeline};
pub use touched::{Touch, Touched};
pub use tree::{Node, Tree};
pub use when::{Edge, when};
pub use words::{base_name, object_text, program_of};
