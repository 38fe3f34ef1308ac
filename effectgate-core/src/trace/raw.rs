//! A line's object as it stands: every field once, flat, borrowed from the
//! line where it has no escapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The fields of a trace, in the order of the format; the first
/// [`REQUIRED`] must be there.
pub(super) const FIELDS: [&str; 13] = [
    "ts", "type", "name", "binary", "argv", "cwd", "host", "step", "env", "server", "output",
    "digest", "tools",
];
pub(super) const REQUIRED: usize = 7;

/// What stands in a field.
#[derive(Debug, Default)]
pub(super) enum Raw<'a> {
    #[default]
    Missing,
    Null,
    Bool,
    /// A whole number from 0.
    Whole(u64),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Cow<'a, str>>),
    /// A list in which this item (from 0) is something else than a string.
    BadList(usize, &'static str),
    Object,
}

impl Raw<'_> {
    pub fn kind(&self) -> &'static str {
        match self {
            Raw::Missing => "nothing",
            Raw::Null => "null",
            Raw::Bool => "a boolean",
            Raw::Whole(_) | Raw::Number(_) => "a number",
            Raw::Text(_) => "a string",
            Raw::List(_) | Raw::BadList(..) => "a list",
            Raw::Object => "an object",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RawLine<'a> {
    /// By the index in [`FIELDS`].
    pub fields: [Raw<'a>; FIELDS.len()],
    /// Fields written again, by their index.
    pub again: Vec<usize>,
    pub unknown: Vec<String>,
}

impl<'de> Deserialize<'de> for RawLine<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Line;
        impl<'de> Visitor<'de> for Line {
            type Value = RawLine<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                // No object says more; one that does is noise.
                const MOST: usize = 16;
                let mut line = RawLine::default();
                while let Some(key) = map.next_key::<Field>()? {
                    match key {
                        Field::Known(at) => {
                            let value = map.next_value()?;
                            if matches!(line.fields[at], Raw::Missing) {
                                line.fields[at] = value;
                            } else if line.again.len() < MOST {
                                line.again.push(at);
                            }
                        }
                        Field::Unknown(name) => {
                            map.next_value::<IgnoredAny>()?;
                            if line.unknown.len() < MOST {
                                line.unknown.push(name);
                            }
                        }
                    }
                }
                Ok(line)
            }
        }
        deserializer.deserialize_map(Line)
    }
}

enum Field {
    Known(usize),
    Unknown(String),
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field")
            }

            fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                let at = FIELDS.iter().position(|field| *field == name);
                Ok(at.map_or_else(|| Field::Unknown(name.to_owned()), Field::Known))
            }
        }
        deserializer.deserialize_str(Name)
    }
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

// Lists in lists are read and thrown away; `serde_json` bounds their depth.
impl<'de> Visitor<'de> for AnyValue {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Bool)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw<'de>, E> {
        Ok(Raw::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw<'de>, A::Error> {
        let mut list = Vec::new();
        let mut bad = None;
        let mut at = 0;
        while let Some(item) = items.next_element::<Raw>()? {
            match item {
                Raw::Text(text) => list.push(text),
                other => bad = bad.or(Some((at, other.kind()))),
            }
            at += 1;
        }
        Ok(bad.map_or(Raw::List(list), |(at, kind)| Raw::BadList(at, kind)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw<'de>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Raw::Object)
    }
}
