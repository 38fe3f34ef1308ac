//! Where records go: the evidence directory, which is authoritative, and the
//! metrics, which are not.

pub mod evidence;
pub mod metrics;
