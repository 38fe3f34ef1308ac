//! A format as a table of its keys. What can be said about a file without
//! knowing what its values mean is said here, for every format alike: keys
//! that are unknown, written twice, missing or too new, values of a wrong
//! type. The table is also what the JSON Schema is written from.

mod check;
mod fields;

use crate::fault::{Fault, Faults};
use crate::tree::{Node, Pos, Value};
use crate::{json, yaml};

pub(crate) use fields::Fields;

/// No file that a person reviews is longer (bytes).
const LONGEST: usize = 2 << 20;

/// A file format.
#[derive(Debug)]
pub(crate) struct Format {
    /// What such a file is, with an article: `a manifest`.
    pub name: &'static str,
    pub syntax: Syntax,
    pub root: Object,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Yaml,
}

/// An object: its keys, in the order in which they are best written.
#[derive(Debug)]
pub(crate) struct Object {
    pub keys: &'static [Key],
    /// Exactly one of these keys is there; empty for no such demand.
    pub one_of: &'static [&'static str],
}

#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    /// The version of the format that has it first.
    pub since: u8,
    pub required: bool,
    pub shape: Shape,
    /// What it says, in a sentence without a final stop.
    pub doc: &'static str,
    /// A value, as JSON, which is YAML too.
    pub example: &'static str,
}

/// What a value looks like.
#[derive(Debug)]
pub(crate) enum Shape {
    /// A version of the format.
    Version(&'static [u8]),
    /// A string that is not blank.
    Text,
    /// A string with a grammar of its own, which its reader checks; a regular
    /// expression (ECMA 262) says most of it to an editor.
    Word(&'static str),
    /// One of these words, or a fault under this rule.
    OneOf(&'static str, &'static [&'static str]),
    /// A whole number from 1.
    Count,
    Flag,
    List(&'static Shape),
    Object(&'static Object),
    /// A string, or since this version an object that says more.
    WordOr(&'static str, u8, &'static Object),
    /// Names that the writer chooses, each with such a value.
    Map(&'static Shape),
}

/// Reads a text and checks it against the table. Syntax faults end the
/// reading; the others come with what was read.
pub(crate) fn open(
    file: &str,
    bytes: &[u8],
    format: &Format,
) -> Result<(Node, Faults), Vec<Fault>> {
    let mut faults = Faults::of(file);
    let Some(root) = syntax(bytes, format, &mut faults) else { return Err(faults.into_vec()) };
    check::root(&root, format, &mut faults);
    if matches!(root.value, Value::Object(_)) { Ok((root, faults)) } else { Err(faults.into_vec()) }
}

fn syntax(bytes: &[u8], format: &Format, faults: &mut Faults) -> Option<Node> {
    if bytes.len() > LONGEST {
        faults.add(Pos::START, "too-long", "the file is longer than 2 MiB", "write less");
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (good, bad) = bytes.split_at(error.valid_up_to());
            let good = String::from_utf8_lossy(good);
            let at = good.chars().fold(Pos::START, |at, c| match c {
                '\n' => Pos { line: at.line + 1, ..Pos::START },
                _ => Pos { column: at.column + 1, ..at },
            });
            let message = format!("byte 0x{:02x} is not UTF-8", bad[0]);
            faults.add(at, "not-utf-8", message, "save the file as UTF-8");
            return None;
        }
    };
    let read = match format.syntax {
        Syntax::Json => json::read(text),
        Syntax::Yaml => yaml::read(text),
    };
    read.map_err(|broken| faults.add(broken.at, broken.rule, broken.message, broken.help)).ok()
}
