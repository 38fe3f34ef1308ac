//! What an envelope compiles to.

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {}
