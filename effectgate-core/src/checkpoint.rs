//! A log's head, signed: C2SP [tlog-checkpoint], which is a C2SP [signed note].
//! Here is its text; keys and signing are the daemon's.
//!
//! [tlog-checkpoint]: https://c2sp.org/tlog-checkpoint
//! [signed note]: https://c2sp.org/signed-note

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use crate::merkle::Hash;
use crate::verdict::Log;

/// The tree over a log's first records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whose log it is. The name of the signing key as well.
    pub origin: String,
    /// Count of records.
    pub size: u64,
    pub root: Hash,
}

/// A checkpoint with what was signed and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub checkpoint: Checkpoint,
    /// What the signatures are over.
    pub text: String,
    signatures: Vec<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Signature {
    name: String,
    key: [u8; 4],
    bytes: Vec<u8>,
}

/// Why a text is no checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNote {
    #[error("its text is not three lines (origin, size, root) and an empty one behind them")]
    Text,
    #[error("its size is no decimal number")]
    Size,
    #[error("its root is not 32 bytes in Base64")]
    Root,
    #[error("a line of it is no signature")]
    Signature,
    #[error("it holds more than 16 signatures")]
    Crowd,
}

/// Signatures of a note that are read; the specification asks for as many.
const SIGNATURES: usize = 16;

impl Checkpoint {
    /// The checkpoint of a log as far as it goes.
    pub fn of(log: Log) -> Checkpoint {
        Checkpoint { origin: log.origin, size: log.records, root: log.root }
    }

    /// The note of this checkpoint with the Ed25519 signature of one key over
    /// the checkpoint's text.
    pub fn note(self, public_key: &[u8; 32], signature: &[u8; 64]) -> Note {
        let (name, key) = (self.origin.clone(), key_id(&self.origin, public_key));
        let signatures = vec![Signature { name, key, bytes: signature.to_vec() }];
        Note { text: self.to_string(), checkpoint: self, signatures }
    }
}

/// The text that is signed.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, encode(&self.root))
    }
}

impl Note {
    /// # Errors
    /// [`BadNote`].
    pub fn parse(note: &str) -> Result<Note, BadNote> {
        let end = note.rfind("\n\n").ok_or(BadNote::Text)?;
        let (text, signatures) = (&note[..=end], &note[end + 2..]);
        let checkpoint = body(text)?;
        let signatures = signatures.strip_suffix('\n').ok_or(BadNote::Signature)?;
        let lines = signatures.split('\n');
        if lines.clone().count() > SIGNATURES {
            return Err(BadNote::Crowd);
        }
        let signatures: Option<Vec<_>> = lines.map(signature).collect();
        let signatures = signatures.ok_or(BadNote::Signature)?;
        Ok(Note { checkpoint, text: text.to_owned(), signatures })
    }

    /// What says that it is the signature of this key, by the log's own name,
    /// over [`Note::text`]. Whether it is has to be checked.
    pub fn signature_of(&self, public_key: &[u8; 32]) -> Option<&[u8]> {
        let origin = &self.checkpoint.origin;
        let key = key_id(origin, public_key);
        let by = |one: &&Signature| one.name == *origin && one.key == key;
        self.signatures.iter().find(by).map(|one| one.bytes.as_slice())
    }
}

/// The note as it is written to a file.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        for Signature { name, key, bytes } in &self.signatures {
            writeln!(f, "\u{2014} {name} {}", encode(&[&key[..], bytes].concat()))?;
        }
        Ok(())
    }
}

/// The key as other readers of such notes take it: `name+id+key`.
pub fn verifier_key(name: &str, public_key: &[u8; 32]) -> String {
    let id = crate::pin::hex(&key_id(name, public_key));
    format!("{name}+{id}+{}", encode(&[&[ED25519][..], public_key].concat()))
}

/// The signature type of plain Ed25519.
const ED25519: u8 = 1;

fn key_id(name: &str, public_key: &[u8; 32]) -> [u8; 4] {
    let hash = Sha256::new().chain_update(name).chain_update([b'\n', ED25519]);
    let [a, b, c, d, ..]: Hash = hash.chain_update(public_key).finalize().into();
    [a, b, c, d]
}

fn body(text: &str) -> Result<Checkpoint, BadNote> {
    let mut lines = text.strip_suffix('\n').ok_or(BadNote::Text)?.split('\n');
    let mut line = || lines.next().filter(|line| !line.is_empty()).ok_or(BadNote::Text);
    let (origin, size, root) = (line()?, line()?, line()?);
    // Nothing of ours has extension lines, and no one would check them.
    if lines.next().is_some() || origin.contains(['+', ' ']) || origin.contains(char::is_control) {
        return Err(BadNote::Text);
    }
    let size = decimal(size).ok_or(BadNote::Size)?;
    let root = hash(root).ok_or(BadNote::Root)?;
    Ok(Checkpoint { origin: origin.to_owned(), size, root })
}

fn signature(line: &str) -> Option<Signature> {
    let (name, code) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
    let bytes = STANDARD.decode(code).ok()?;
    let (key, bytes) = bytes.split_first_chunk::<4>().filter(|_| !name.is_empty())?;
    Some(Signature { name: name.to_owned(), key: *key, bytes: bytes.to_vec() })
}

/// A number written in the one way there is.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    text.parse().ok().filter(|n: &u64| n.to_string() == text)
}

pub(crate) fn hash(text: &str) -> Option<Hash> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From the specification of signed notes.
    const KEY: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";

    #[test]
    fn a_published_key_has_its_published_name() {
        let (name, rest) = KEY.split_once('+').expect("three parts");
        let (_, key) = rest.split_once('+').expect("three parts");
        let key = STANDARD.decode(key).expect("Base64");
        let key: [u8; 32] = key[1..].try_into().expect("32 bytes behind the type");
        assert_eq!(verifier_key(name, &key), KEY);
    }

    /// From the specification of checkpoints.
    const PUBLISHED: &str = "example.com/behind-the-sofa\n20852163\n\
        CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
        \u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n";

    #[test]
    fn a_published_checkpoint_is_read_and_written_as_it_is() {
        let note = Note::parse(PUBLISHED).expect("a checkpoint");
        assert_eq!(note.checkpoint.origin, "example.com/behind-the-sofa");
        assert_eq!(note.checkpoint.size, 20_852_163);
        assert_eq!(note.to_string(), PUBLISHED);
        assert_eq!(note.checkpoint.to_string(), note.text);
        assert_eq!(note.signature_of(&[0; 32]), None, "of another key");
    }

    #[test]
    fn what_is_no_checkpoint_is_refused() {
        for (from, to, why) in [
            ("\n20852163", "\n020852163", BadNote::Size),
            ("\n20852163", "\n-1", BadNote::Size),
            ("\n20852163", "", BadNote::Text),
            ("q2I=\n\n", "q2I=\nmore\n\n", BadNote::Text),
            ("q2I=\n\n", "q2I=\n", BadNote::Text),
            ("q2I=", "q2J=", BadNote::Root),
            ("CsUY", "", BadNote::Root),
            ("YQ8=\n", "YQ8=", BadNote::Signature),
            ("\u{2014}", "-", BadNote::Signature),
            ("YQ8=\n", "YQ8=\n\u{2014} other AA==\n", BadNote::Signature),
        ] {
            assert_eq!(Note::parse(&PUBLISHED.replacen(from, to, 1)), Err(why), "{from} -> {to}");
        }
        let line = PUBLISHED.lines().last().expect("a signature");
        let many = |count: usize| format!("{PUBLISHED}{}", format!("{line}\n").repeat(count - 1));
        assert!(Note::parse(&many(16)).is_ok());
        assert_eq!(Note::parse(&many(17)), Err(BadNote::Crowd));
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(size: u64, root: Hash, key: [u8; 32], signature: [u8; 64]) {
            let checkpoint = Checkpoint { origin: "effectgate/log/00".into(), size, root };
            let note = checkpoint.clone().note(&key, &signature);
            let read = Note::parse(&note.to_string()).expect("it was written as one");
            prop_assert_eq!(&read.checkpoint, &checkpoint);
            prop_assert_eq!(read.signature_of(&key), Some(&signature[..]));
            prop_assert_eq!(read, note);
        }

        #[test]
        fn anything_else_never_panics(text: String, at in 0..PUBLISHED.len(), with: char) {
            let _ = Note::parse(&text);
            let changed: String =
                PUBLISHED.chars().enumerate().map(|(n, c)| if n == at { with } else { c }).collect();
            let _ = Note::parse(&changed);
        }
    }
}
