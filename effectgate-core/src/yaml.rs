//! A strict YAML 1.2 reader on top of an event parser: one document, and
//! nothing in it that two readers could understand differently. What YAML can
//! do beyond plain data (anchors, aliases, tags, merge keys, directives) is
//! refused, and so is a scalar that YAML 1.1 and 1.2 read as different things.

mod scalar;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};

use crate::tree::{Broken, DEEPEST, MOST, Member, Node, Pos, Value};

/// Reads exactly one YAML document.
pub(crate) fn read(text: &str) -> Result<Node, Broken> {
    characters(text)?;
    let mut reader = Reader { events: Parser::new_from_str(text), depth: 0, values: 0 };
    let node = reader.document()?;
    reader.end()?;
    Ok(node)
}

/// Refuses what a reviewer cannot see, and line ends that not everybody takes
/// for one.
fn characters(text: &str) -> Result<(), Broken> {
    let mut at = Pos::START;
    let mut indent = true;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' => {
                at = Pos { line: at.line.saturating_add(1), ..Pos::START };
                indent = true;
                continue;
            }
            '\t' if indent => {
                let message = "a tab where the line is indented";
                return Err(broken(at, "yaml-tab", message, "indent with blanks"));
            }
            '%' if at.column == 1 => {
                let message = "a line begins with `%`, as a YAML directive does";
                return Err(broken(at, "yaml-directive", message, "remove the line"));
            }
            '\r' if rest.peek() == Some(&'\n') => {}
            '\t' => {}
            c if c.is_control() || is_hidden(c) => {
                let message = format!("the character U+{:04X} cannot be seen", u32::from(c));
                return Err(broken(at, "hidden-character", message, "remove it"));
            }
            _ => {}
        }
        indent &= c == ' ';
        at.column = at.column.saturating_add(1);
    }
    Ok(())
}

/// Characters that take no room, look like a blank and are none, turn the text
/// around it, or break lines for some readers only: those that Unicode has
/// ignored by default (DerivedCoreProperties.txt, `Default_Ignorable_Code_Point`)
/// but for the variation selectors of emoji, and the empty pattern of Braille.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn broken(at: Pos, rule: &'static str, message: impl Into<String>, help: &'static str) -> Broken {
    Broken { at, rule, message: message.into(), help }
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    depth: usize,
    /// How many were read.
    values: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Pos), Broken> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, place(span))),
            Some(Err(error)) => {
                let mark = *error.marker();
                let at = place(Span::empty(mark));
                Err(broken(at, syntax_rule(error.info()), error.info(), SYNTAX_HELP))
            }
            None => Ok((Event::StreamEnd, Pos::START)),
        }
    }

    fn document(&mut self) -> Result<Node, Broken> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::Nothing, _) => {}
                (Event::DocumentStart(_), _) => break,
                (_, at) => return Err(empty(at)),
            }
        }
        let (event, at) = self.next()?;
        self.node(event, at)
    }

    /// Nothing may follow the first document.
    fn end(&mut self) -> Result<(), Broken> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), at) => {
                    let message = "a second document begins";
                    let help = "keep one document in the file and remove the rest";
                    return Err(broken(at, "yaml-documents", message, help));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'a>, at: Pos) -> Result<Node, Broken> {
        self.values += 1;
        if self.values > MOST {
            return Err(Broken::too_many(at));
        }
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            return Err(broken(at, "yaml-anchor", "a YAML anchor (`&name`)", ANCHOR_HELP));
        }
        if tag {
            let help = "write the value alone, in quotes if it is a string";
            return Err(broken(at, "yaml-tag", "a YAML tag (`!name`)", help));
        }
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => scalar::resolve(&text, at)?,
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::SequenceStart(..) => self.list(at)?,
            Event::MappingStart(..) => self.object(at)?,
            Event::Alias(_) => {
                return Err(broken(at, "yaml-anchor", "a YAML alias (`*name`)", ANCHOR_HELP));
            }
            _ => return Err(broken(at, "yaml-syntax", "a value is missing", SYNTAX_HELP)),
        };
        Ok(Node { at, value })
    }

    fn enter(&mut self, at: Pos) -> Result<(), Broken> {
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} levels of nesting");
            return Err(broken(at, "yaml-depth", message, "write the file flat"));
        }
        self.depth += 1;
        Ok(())
    }

    fn list(&mut self, at: Pos) -> Result<Value, Broken> {
        self.enter(at)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => break,
                (event, at) => items.push(self.node(event, at)?),
            }
        }
        self.depth -= 1;
        Ok(Value::List(items))
    }

    fn object(&mut self, at: Pos) -> Result<Value, Broken> {
        self.enter(at)?;
        let mut members = Vec::new();
        loop {
            let (event, at) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let Node { at, value } = self.node(event, at)?;
            let Value::String(key) = value else {
                let message = format!("{} is used as a key", value.kind());
                return Err(broken(at, "yaml-key", message, "write a key that is a string"));
            };
            let (event, value_at) = self.next()?;
            // A value that is left out has no place of its own.
            let absent =
                matches!(&event, Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty());
            let mut value = self.node(event, value_at)?;
            if absent {
                value.at = at;
            }
            members.push(Member { key, at, value });
        }
        self.depth -= 1;
        Ok(Value::Object(members))
    }
}

const SYNTAX_HELP: &str = "write it as YAML 1.2: `key: value`, two blanks for each level, no tabs, \
     quotes around what has `: `, ` #` or begins with a mark";
const ANCHOR_HELP: &str = "write the value where it is meant: what is reviewed must stand there";

fn empty(at: Pos) -> Broken {
    let help = "begin with `version: 1`, and `effectgate check` says what else is needed";
    broken(at, "empty-file", "the file is empty", help)
}

/// The parser looks names of anchors up itself.
fn syntax_rule(info: &str) -> &'static str {
    if info.contains("unknown anchor") { "yaml-anchor" } else { "yaml-syntax" }
}

fn place(span: Span) -> Pos {
    let pos = |mark: saphyr_parser::Marker| Pos {
        line: u32::try_from(mark.line()).unwrap_or(u32::MAX).max(1),
        column: u32::try_from(mark.col()).unwrap_or(u32::MAX).saturating_add(1),
        width: 1,
    };
    pos(span.start).to(pos(span.end))
}

#[cfg(test)]
mod tests;
