//! JSON that is safe to look at: what steers a terminal or reorders what is
//! read is escaped, which JSON allows for every character (RFC 8259, 7).

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// One line, without its end.
///
/// # Errors
/// When the value cannot be serialised.
pub fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Visible(CompactFormatter)))?;
    Ok(bytes)
}

struct Visible(CompactFormatter);

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut kept = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| is_hidden(*c)) {
            writer.write_all(&text.as_bytes()[kept..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            kept = at + c.len_utf8();
        }
        writer.write_all(&text.as_bytes()[kept..])
    }
}

/// What Rust would not show in a string literal either.
fn is_hidden(c: char) -> bool {
    !matches!(c, '"' | '\'' | '\\') && c.escape_debug().len() > 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_same_value_comes_back(text: String, tail in "[\u{202e}\u{9b}\u{0}-\u{1f}\u{e0001}a\"\\\\é]{0,8}") {
            let text = text + &tail;
            let bytes = line(&text).unwrap();
            prop_assert_eq!(&serde_json::from_slice::<String>(&bytes).unwrap(), &text);
            let shown = String::from_utf8(bytes).unwrap();
            prop_assert!(!shown.contains(is_hidden), "{}", shown);
        }
    }
}
