//! The digest pin and its review note.

/// A review note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewNote {}
