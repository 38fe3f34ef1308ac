//! A proof that a log holds a record, which shows no other record: C2SP
//! [tlog-proof]. The record itself goes along as the proof's extra data, so
//! that one file is all that is handed on.
//!
//! [tlog-proof]: https://c2sp.org/tlog-proof

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::chain::own_hash;
use crate::checkpoint::{BadNote, Note, decimal, encode, hash};
use crate::merkle::{Hash, includes, leaf};

/// The first line.
pub const HEADER: &str = "c2sp.org/tlog-proof@v1";

/// A record, its place in the tree, and the signed root of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The record's line, without newline.
    pub record: Vec<u8>,
    pub index: u64,
    pub path: Vec<Hash>,
    pub note: Note,
}

/// Why a text is no proof, or one that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadProof {
    #[error("it does not begin with `{HEADER}`")]
    Header,
    #[error("it has no line `extra` with the record in Base64")]
    Record,
    #[error("it has no line `index` with a decimal number")]
    Index,
    #[error("a line of its path is not 32 bytes in Base64")]
    Path,
    #[error("what follows its path is no checkpoint: {0}")]
    Note(BadNote),
    #[error("its record is not what its own hash says: something in it was changed")]
    Content,
    #[error("its record is not the one that stands there in the log")]
    NotIncluded,
}

impl Proof {
    /// # Errors
    /// [`BadProof`]. Whether it holds is another question.
    pub fn parse(text: &str) -> Result<Proof, BadProof> {
        let rest = text.strip_prefix(HEADER).and_then(|rest| rest.strip_prefix('\n'));
        let (record, rest) =
            member(rest.ok_or(BadProof::Header)?, "extra ").ok_or(BadProof::Record)?;
        let record = STANDARD.decode(record).map_err(|_| BadProof::Record)?;
        let (index, mut rest) = member(rest, "index ").ok_or(BadProof::Index)?;
        let index = decimal(index).ok_or(BadProof::Index)?;
        let mut path = Vec::new();
        // The checkpoint has lines of its own behind the first empty one.
        let note = loop {
            let (line, after) = rest.split_once('\n').ok_or(BadProof::Path)?;
            if line.is_empty() {
                break after;
            }
            path.push(hash(line).ok_or(BadProof::Path)?);
            rest = after;
        };
        let note = Note::parse(note).map_err(BadProof::Note)?;
        Ok(Proof { record, index, path, note })
    }

    /// Whether the record is what its hash says, and stands in the tree of the
    /// checkpoint. Whether that is signed is another question.
    ///
    /// # Errors
    /// [`BadProof`].
    pub fn check(&self) -> Result<(), BadProof> {
        own_hash(&self.record).ok_or(BadProof::Content)?;
        let tree = &self.note.checkpoint;
        let holds = includes(&tree.root, tree.size, self.index, leaf(&self.record), &self.path);
        if holds { Ok(()) } else { Err(BadProof::NotIncluded) }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}\nextra {}\nindex {}", encode(&self.record), self.index)?;
        for hash in &self.path {
            writeln!(f, "{}", encode(hash))?;
        }
        write!(f, "\n{}", self.note)
    }
}

fn member<'a>(text: &'a str, key: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(key)?.split_once('\n')
}
