//! A record as it is asked about: the members that questions are about,
//! borrowed from the line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Text of a line, copied only where JSON escapes something in it. Paths and
/// arguments are escaped bytes ([`escape`](crate::escape)).
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

#[derive(Clone, Debug, Deserialize)]
pub struct Record<'a> {
    #[serde(borrow)]
    pub action: Text<'a>,
    pub class: Text<'a>,
    pub coverage: Option<Text<'a>>,
    pub decision: Text<'a>,
    pub hash: Text<'a>,
    pub job: Text<'a>,
    /// What the kernel programs came to, where it is something else.
    pub kernel: Option<Text<'a>>,
    pub object: Object<'a>,
    pub process: Option<Process<'a>>,
    pub rule: Rule<'a>,
    pub seq: u64,
    pub ts: Text<'a>,
    pub within: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Rule<'a> {
    #[serde(borrow)]
    pub file: Option<Text<'a>>,
    pub line: Option<u32>,
    pub name: Text<'a>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Process<'a> {
    #[serde(borrow, default)]
    pub ancestry: Vec<Ancestor<'a>>,
    pub comm: Text<'a>,
    pub exe: Option<Text<'a>>,
    pub pid: u32,
    pub ppid: Option<u32>,
    #[serde(default)]
    pub start: Scalar<'a>,
    pub tid: Option<u32>,
    pub uid: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Ancestor<'a> {
    #[serde(borrow)]
    pub comm: Text<'a>,
    pub exe: Option<Text<'a>>,
    pub pid: u32,
}

/// The object of any class; what a class does not have is absent.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Object<'a> {
    // Files, programs, Unix sockets.
    #[serde(borrow)]
    pub path: Option<Text<'a>>,
    pub other: Option<Other<'a>>,
    pub interpreter: Option<Text<'a>>,
    pub root: Option<Text<'a>>,
    pub dev: Option<Text<'a>>,
    pub ino: Scalar<'a>,
    #[serde(rename = "abstract")]
    pub abstract_name: Option<Text<'a>>,
    // Programs and processes.
    pub argv: Vec<Text<'a>>,
    pub pid: Option<u32>,
    pub ppid: Option<u32>,
    pub start: Scalar<'a>,
    pub code: Option<u32>,
    pub entered: Option<Known<'a>>,
    // Environment.
    pub names: Vec<Text<'a>>,
    pub outside: Vec<Text<'a>>,
    // Network.
    pub name: Option<Text<'a>>,
    pub address: Option<Text<'a>>,
    pub port: Option<u16>,
    pub protocol: Scalar<'a>,
    pub family: Scalar<'a>,
    // Guards and limits.
    pub what: Option<Text<'a>>,
    pub why: Option<Text<'a>>,
    pub reach: Option<Text<'a>>,
    pub detail: Option<u32>,
    pub limit: Option<Text<'a>>,
    pub value: Scalar<'a>,
    pub bound: Scalar<'a>,
    pub stage: Option<Text<'a>>,
    // The last record.
    pub verdict: Option<Text<'a>>,
    pub exit: Option<Exit>,
    // The first record.
    pub workspace: Option<Text<'a>>,
    pub roots: Vec<Root<'a>>,
    pub processes: Vec<Known<'a>>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Other<'a> {
    #[serde(borrow)]
    pub path: Option<Text<'a>>,
}

/// A root of the policy, or the job's `TMPDIR`, which no entry names.
#[derive(Clone, Debug, Deserialize)]
pub struct Root<'a> {
    #[serde(borrow)]
    pub path: Text<'a>,
    pub entry: Option<u64>,
}

/// A process that was not seen to start.
#[derive(Clone, Debug, Deserialize)]
pub struct Known<'a> {
    #[serde(borrow)]
    pub comm: Text<'a>,
    pub exe: Text<'a>,
    pub pid: u32,
    pub ppid: u32,
    #[serde(default)]
    pub start: Scalar<'a>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// A word, a number (large ones are written as digits), or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scalar<'a> {
    #[default]
    Absent,
    Number(u64),
    Word(Text<'a>),
}

impl<'a> Record<'a> {
    /// # Errors
    /// When the line is no record.
    pub fn of(line: &'a [u8]) -> serde_json::Result<Record<'a>> {
        serde_json::from_slice(line)
    }

    /// Every path that the effect is about.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let object = &self.object;
        let other = object.other.as_ref().and_then(|other| other.path.as_deref());
        [object.path.as_deref(), other, object.interpreter.as_deref()].into_iter().flatten()
    }
}

impl Scalar<'_> {
    pub fn number(&self) -> Option<u64> {
        match self {
            Scalar::Absent => None,
            Scalar::Number(number) => Some(*number),
            Scalar::Word(text) => text.parse().ok(),
        }
    }

    pub fn word(&self) -> Option<&str> {
        match self {
            Scalar::Word(text) => Some(text),
            Scalar::Absent | Scalar::Number(_) => None,
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Absent => f.write_str("?"),
            Scalar::Number(number) => write!(f, "{number}"),
            Scalar::Word(text) => f.write_str(text),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

/// The same name means other things in other classes: what is neither word nor
/// number is nothing.
struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_u64<E>(self, number: u64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Word(Text(number.to_string().into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Word(Text(number.to_string().into())))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Word(Text(text.into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Word(Text(text.to_owned().into())))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Absent)
    }

    fn visit_unit<E>(self) -> Result<Scalar<'de>, E> {
        Ok(Scalar::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Absent)
    }
}
