//! A strict JSON reader (RFC 8259) that remembers where everything stands.
//! Files written by people need faults with line and column, for values as
//! well as for syntax; `serde_json` forgets positions once a value is built.

mod scalar;

use std::iter::Peekable;
use std::str::Chars;

use crate::tree::{Broken, DEEPEST, MOST, Member, Node, Pos, Value};

/// Reads exactly one JSON text.
pub(crate) fn read(text: &str) -> Result<Node, Broken> {
    let mut reader = Reader { rest: text.chars().peekable(), at: Pos::START, depth: 0, values: 0 };
    if reader.peek() == Some('\u{feff}') {
        return Err(reader.broken("json-syntax", "a byte-order mark", "save the file without one"));
    }
    reader.space();
    if reader.peek().is_none() {
        return Err(reader.broken("empty-file", "the file is empty", "write one JSON object"));
    }
    let node = reader.value()?;
    reader.space();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.broken(
            "json-trailing",
            "something follows the JSON text",
            "keep one JSON object in the file and remove the rest",
        )),
    }
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    at: Pos,
    depth: usize,
    /// How many were read.
    values: usize,
}

impl Reader<'_> {
    fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.at = Pos { line: self.at.line.saturating_add(1), ..Pos::START };
        } else {
            self.at.column = self.at.column.saturating_add(1);
        }
        Some(c)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.bump();
        }
    }

    fn broken(&self, rule: &'static str, message: impl Into<String>, help: &'static str) -> Broken {
        Broken { at: self.at, rule, message: message.into(), help }
    }

    fn unexpected(&mut self, wanted: &str) -> Broken {
        let found = match self.peek() {
            None => "the file ends".to_owned(),
            Some('\0') => "a NUL byte stands".to_owned(),
            Some(c) => format!("{c:?} stands"),
        };
        self.broken(
            "json-syntax",
            format!("{found} where {wanted} was expected"),
            "write it as JSON (RFC 8259: no comments, no trailing commas)",
        )
    }

    fn value(&mut self) -> Result<Node, Broken> {
        let at = self.at;
        self.values += 1;
        if self.values > MOST {
            return Err(Broken::too_many(at));
        }
        let value = match self.peek() {
            Some('{') => self.object()?,
            Some('[') => self.array()?,
            Some('"') => Value::String(self.string()?),
            Some('-' | '0'..='9') => self.number()?,
            Some('t') => self.word("true", Value::Bool(true))?,
            Some('f') => self.word("false", Value::Bool(false))?,
            Some('n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { at: at.to(self.at), value })
    }

    fn enter(&mut self) -> Result<(), Broken> {
        if self.depth == DEEPEST {
            return Err(self.broken(
                "json-depth",
                format!("more than {DEEPEST} levels of nesting"),
                "write the file flat",
            ));
        }
        self.depth += 1;
        self.bump();
        self.space();
        Ok(())
    }

    fn object(&mut self) -> Result<Value, Broken> {
        self.enter()?;
        let mut members = Vec::new();
        if self.peek() != Some('}') {
            loop {
                let at = self.at;
                if self.peek() != Some('"') {
                    return Err(self.unexpected("a key in double quotes"));
                }
                let key = self.string()?;
                let at = at.to(self.at);
                self.space();
                if self.peek() != Some(':') {
                    return Err(self.unexpected("':'"));
                }
                self.bump();
                self.space();
                let value = self.value()?;
                members.push(Member { key, at, value });
                if !self.comma('}')? {
                    break;
                }
            }
        }
        self.bump();
        self.depth -= 1;
        Ok(Value::Object(members))
    }

    fn array(&mut self) -> Result<Value, Broken> {
        self.enter()?;
        let mut items = Vec::new();
        if self.peek() != Some(']') {
            loop {
                items.push(self.value()?);
                if !self.comma(']')? {
                    break;
                }
            }
        }
        self.bump();
        self.depth -= 1;
        Ok(Value::List(items))
    }

    /// True after a comma, false before the closing bracket.
    fn comma(&mut self, close: char) -> Result<bool, Broken> {
        self.space();
        match self.peek() {
            Some(',') => {
                self.bump();
                self.space();
                Ok(true)
            }
            Some(c) if c == close => Ok(false),
            _ => Err(self.unexpected(&format!("',' or {close:?}"))),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Broken> {
        for c in word.chars() {
            if self.peek() != Some(c) {
                return Err(self.unexpected(&format!("`{word}`")));
            }
            self.bump();
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_lines_and_characters() {
        let Value::Object(members) = read("{\n  \"é\": [1, \"x\"]\n}").unwrap().value else {
            panic!()
        };
        assert_eq!(members[0].at, Pos { line: 2, column: 3, width: 3 });
        let Value::List(items) = &members[0].value.value else { panic!() };
        assert_eq!(items[1].at, Pos { line: 2, column: 12, width: 3 });
        assert_eq!(items[1].value, Value::String("x".into()));
    }

    #[test]
    fn escapes() {
        let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#;
        let want = "\"\\/\u{8}\u{c}\n\r\té😀";
        assert_eq!(read(text).unwrap().value, Value::String(want.into()));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            "1e",
            "-",
            "tru",
            "nul",
            "'a'",
            "\"a",
            "\"\t\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "{} {}",
            "// c\n{}",
            "\u{feff}{}",
            "\0",
            "{a:1}",
            "{\"a\" 1}",
            "[1 2]",
            "+1",
            "NaN",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(read(&deep(DEEPEST)).is_ok());
        assert_eq!(read(&deep(DEEPEST + 1)).unwrap_err().rule, "json-depth");
        assert_eq!(read(&"[".repeat(1_000_000)).unwrap_err().rule, "json-depth");
    }
}
