//! What a file that a person wrote holds, before it is known what it means:
//! values with their places. JSON and YAML are read into the same tree.

/// A place in a text, and how much of its line to mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pos {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// In characters, at least 1; never past the end of the line.
    pub width: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub at: Pos,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// As written.
    Number(String),
    String(String),
    List(Vec<Node>),
    /// In the order of the file; duplicates are kept for the caller to refuse.
    Object(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub key: String,
    /// The key's place.
    pub at: Pos,
    pub value: Node,
}

/// Why a text could not be read. Nothing behind it was looked at.
#[derive(Debug, PartialEq)]
pub(crate) struct Broken {
    pub at: Pos,
    pub rule: &'static str,
    pub message: String,
    pub help: &'static str,
}

/// Lists and objects may be nested this deep, so that no file can exhaust the
/// stack.
pub(crate) const DEEPEST: usize = 32;

/// So many values a file may hold (keys of YAML are some too): few enough
/// that no file can exhaust the memory.
pub(crate) const MOST: usize = 1 << 18;

impl Broken {
    /// More than [`MOST`] values.
    pub fn too_many(at: Pos) -> Self {
        let message = format!("more than {MOST} values");
        Broken { at, rule: "too-long", message, help: "write less" }
    }
}

impl Pos {
    pub const START: Pos = Pos { line: 1, column: 1, width: 1 };

    /// This place, marked up to `end` when that is in the same line.
    pub fn to(self, end: Pos) -> Pos {
        let width = if end.line == self.line { end.column.saturating_sub(self.column) } else { 1 };
        Pos { width: width.max(1), ..self }
    }
}

impl Value {
    /// The type's name, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing (null)",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }
}
