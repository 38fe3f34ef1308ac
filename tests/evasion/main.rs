//! Attempts to get around the gate: every operation that changes or opens
//! something, done outside the policy, and every evasion that is known. Each is
//! tried unwatched first, so that none holds because it does not work; then as
//! a job, where
//!
//! - no attempt that did harm may end with the verdict `pass`;
//! - under `enforce` no harm may be done;
//! - the record has to name the right object;
//! - the result has to be the one that the committed table says
//!   (`results.tsv`, from which `cargo xtask evasions` writes the document).
//!
//! Under `lsm` as a job that is kept from it and as one that is observed.

mod files;
mod fresh;
mod games;
mod ipc;
mod kernel;
mod network;
mod observer;
mod others;
mod play;
mod programs;
mod results;
mod row;
mod servers;
mod stage;
mod watch;
mod world;

/// Declares rows, and a test for each: name, words for `trigger sequence`,
/// records of which one has to be there, and what differs from [`row::ROW`].
macro_rules! rows {
    ($($group:literal $name:ident $words:literal => $sees:literal
        $({ $($field:ident: $value:expr),+ $(,)? })?;)+) => {$(
        #[test]
        fn $name() {
            crate::play::play(&crate::row::Row {
                group: $group,
                name: stringify!($name),
                words: concat!("sequence ", $words),
                sees: $sees,
                $($($field: $value,)+)?
                ..crate::row::ROW
            });
        }
    )+};
}
pub(crate) use rows;
