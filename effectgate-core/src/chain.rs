//! The hash chain over a job's records.
//!
//! Each line is the record in canonical JSON (RFC 8785). Its `hash` is the
//! SHA-256 of: `prev` as its 64 lower-case hexadecimal characters, then the
//! canonical JSON of the record without the member `hash`. The `prev` of a
//! record is the `hash` of the one before it; the first is [`genesis`].

use serde_json::{Map, Value, json};

use crate::canonical::canonical;
use crate::input::{Backend, Started};
use crate::merkle::{Tree, leaf};
use crate::pin::{digest, hex};
use crate::record::{Record, number, read_number};
use crate::verdict::Log;

/// What the name of a log in checkpoints begins with; its first record's hash
/// follows.
pub const ORIGIN: &str = "effectgate/log/";

/// The `prev` of the first record: the SHA-256 of the canonical JSON of an
/// object that binds the log to its policy, job and observer.
pub fn genesis(started: &Started) -> String {
    genesis_of(
        &started.policy.sha256,
        &started.name,
        &started.host,
        &started.kernel,
        started.backend,
        &started.programs,
    )
}

pub(crate) fn genesis_of(
    policy: &str,
    job: &str,
    host: &str,
    kernel: &str,
    backend: Backend,
    programs: &str,
) -> String {
    digest(&canonical(&json!({
        "schema": crate::record::SCHEMA,
        "policy": policy,
        "job": job,
        "host": host,
        "kernel": kernel,
        "backend": backend,
        "programs": programs,
    })))
}

/// A chain, at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The last record's hash; before the first, what its `prev` must be.
    pub head: String,
    /// The next record's number, and so the count of records.
    pub next: u64,
    /// Over the records' lines.
    pub tree: Tree,
    /// The log's name in checkpoints; empty before its first record.
    origin: String,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("the log is empty")]
    Empty,
    #[error("the log ends without its closing record")]
    Unclosed,
    #[error("something follows the closing record")]
    AfterClosing,
    #[error("the line is cut off: it does not end with a newline")]
    Truncated,
    #[error("the line is longer than any record")]
    TooLong,
    #[error("the line is no record in canonical JSON: something in it was changed")]
    NotCanonical,
    #[error(
        "the record is number {found} where {expected} was expected: records were removed, added or moved"
    )]
    Sequence { expected: u64, found: u64 },
    #[error("the record follows another one (its `prev` is not the hash before it)")]
    Prev,
    #[error("the record's hash is not the hash of its content: something in it was changed")]
    Hash,
    /// Found by what reads the log's files.
    #[error("{0}")]
    Damaged(String),
    #[error("the record cannot be understood: {0}")]
    Content(&'static str),
}

impl Chain {
    pub fn new(genesis: String) -> Self {
        Chain { head: genesis, next: 0, tree: Tree::default(), origin: String::new() }
    }

    /// The chain so far, as a verdict names it.
    pub fn log(&self) -> Log {
        let root = self.tree.root();
        Log { origin: self.origin.clone(), records: self.next, head: self.head.clone(), root }
    }

    /// The record's line, without newline. The chain moves on to it.
    pub fn append(&mut self, record: &Record<'_>) -> Vec<u8> {
        let bare = canonical(&record.to_json(self.next, &self.head));
        let hash = link(&self.head, &bare);
        let line = with_hash(bare, record, &hash);
        self.move_on(&line, hash);
        line
    }

    /// Any object's line, likewise; `seq`, `prev` and `hash` are added to it.
    pub fn append_object(&mut self, mut object: Map<String, Value>) -> Vec<u8> {
        object.insert("seq".to_owned(), number(self.next));
        object.insert("prev".to_owned(), self.head.as_str().into());
        let hash = link(&self.head, &canonical(&Value::Object(object.clone())));
        object.insert("hash".to_owned(), hash.as_str().into());
        let line = canonical(&Value::Object(object));
        self.move_on(&line, hash);
        line
    }

    /// Checks a line and moves on to it.
    pub fn check(&mut self, line: &[u8]) -> Result<Value, Flaw> {
        let value = parse(line)?;
        let members = value.as_object().ok_or(Flaw::NotCanonical)?;
        let seq = members.get("seq").and_then(read_number).ok_or(Flaw::Content("seq"))?;
        if seq != self.next {
            return Err(Flaw::Sequence { expected: self.next, found: seq });
        }
        let text = |key| members.get(key).and_then(Value::as_str);
        let hash = text("hash").ok_or(Flaw::Content("hash"))?.to_owned();
        let prev = text("prev").ok_or(Flaw::Content("prev"))?;
        if prev != self.head {
            return Err(Flaw::Prev);
        }
        if hash_of(line, members, prev, &hash) != Some(hash.clone()) {
            return Err(Flaw::Hash);
        }
        self.move_on(line, hash);
        Ok(value)
    }

    fn move_on(&mut self, line: &[u8], hash: String) {
        self.tree.push(leaf(line));
        if self.next == 0 {
            self.origin = format!("{ORIGIN}{hash}");
        }
        self.head = hash;
        self.next += 1;
    }
}

/// A record's hash as its line says and its content gives it; `None` where the
/// line is no record or the two differ. What is before and after the record is
/// not asked.
pub(crate) fn own_hash(line: &[u8]) -> Option<String> {
    let value = parse(line).ok()?;
    let members = value.as_object()?;
    let text = |key| members.get(key).and_then(Value::as_str);
    let (prev, hash) = (text("prev")?, text("hash")?);
    hash_of(line, members, prev, hash).filter(|found| found == hash)
}

/// The hash that a canonical line's content gives, which says that it is
/// `hash`.
fn hash_of(line: &[u8], members: &Map<String, Value>, prev: &str, hash: &str) -> Option<String> {
    use sha2::{Digest as _, Sha256};
    // Without the member, the line is its two sides: members are sorted, so
    // what is before it has a known length. Writing it again would cost more.
    let before = members.iter().take_while(|(key, _)| key.as_str() < "hash");
    let at = 1 + before.map(|(key, value)| member(key, value).len() + 1).sum::<usize>();
    let member = member("hash", &hash.into());
    let (left, rest) = line.split_at_checked(at)?;
    let right = rest.strip_prefix(&member[..])?.strip_prefix(b",")?;
    let hashed = Sha256::new().chain_update(prev).chain_update(left).chain_update(right);
    Some(hex(&hashed.finalize()))
}

/// `"key":value`, canonical.
fn member(key: &str, value: &Value) -> Vec<u8> {
    [&canonical(&key.into())[..], b":", &canonical(value)].concat()
}

/// A line as JSON, when it is canonical: two lines with the same meaning are
/// the same bytes, so that no byte can change unseen.
pub(crate) fn parse(line: &[u8]) -> Result<Value, Flaw> {
    let value: Value = serde_json::from_slice(line).map_err(|_| Flaw::NotCanonical)?;
    if value.is_object() && canonical(&value) == line { Ok(value) } else { Err(Flaw::NotCanonical) }
}

fn link(prev: &str, bare: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    hex(&Sha256::new().chain_update(prev).chain_update(bare).finalize())
}

/// Puts the hash where canonical order has it: behind the four members of
/// plain words that sort before it. Serialising twice would cost twice.
fn with_hash(mut bare: Vec<u8>, record: &Record<'_>, hash: &str) -> Vec<u8> {
    let coverage = record.coverage.map_or("null".to_owned(), |known| format!("{:?}", known.name()));
    let before = format!(
        r#"{{"action":"{}","class":"{}","coverage":{coverage},"decision":"{}","#,
        record.action.name(),
        record.action.class().name(),
        record.decision.name(),
    );
    debug_assert!(bare.starts_with(before.as_bytes()));
    let at = before.len().min(bare.len());
    bare.splice(at..at, format!(r#""hash":"{hash}","#).into_bytes());
    bare
}
