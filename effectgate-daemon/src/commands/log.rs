//! `effectgate log`: a log as such, without the policy and without judging.

mod found;
mod proof;
mod prove;
mod verify;

use effectgate_core::checkpoint::Note;

use crate::{
    cli::{Format, LogCommand},
    exit::Outcomes,
    sign::PublicKey,
};

pub fn log(command: &LogCommand, format: Format) -> Outcomes {
    match command {
        LogCommand::Verify(args) => verify::verify(args, format),
        LogCommand::Prove(args) => prove::prove(args, format),
    }
}

/// A checkpoint that was read.
enum Signed {
    /// Nobody said which key it must be signed by.
    Unasked,
    /// By the key that was given.
    Holds,
    /// Not by that key, or the signature is of another text.
    Not,
}

fn signed(note: &Note, key: Option<&PublicKey>) -> Signed {
    let Some(key) = key else { return Signed::Unasked };
    let signature = note.signature_of(&key.bytes());
    let holds = signature.is_some_and(|bytes| key.verifies(note.text.as_bytes(), bytes));
    if holds { Signed::Holds } else { Signed::Not }
}
