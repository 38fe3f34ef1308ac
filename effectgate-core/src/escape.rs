//! Byte strings in JSON. Names and paths of a Unix system need not be UTF-8;
//! what is stays readable, a backslash is doubled, any other byte is `\xNN`.

/// Writes bytes as text, without loss.
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                text.push('\\');
            }
            text.push(c);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Reads exactly what [`escape`] writes; `None` for any other text.
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\\') {
            bytes.push(b'\\');
            rest = after;
        } else {
            let (hex, after) = rest.strip_prefix('x')?.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = after;
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    // One text for each byte string, or a record could be rewritten unseen.
    (escape(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples() {
        for (bytes, text) in [
            (&b"/srv/repo"[..], "/srv/repo"),
            ("é".as_bytes(), "é"),
            (b"a\\x41", "a\\\\x41"),
            (b"\xff\xfea", "\\xff\\xfea"),
            (b"\xc3", "\\xc3"),
            (b"\0\n", "\0\n"),
        ] {
            assert_eq!(escape(bytes), text);
            assert_eq!(unescape(text).as_deref(), Some(bytes));
        }
        for text in ["\\", "\\x", "\\x4", "\\x41", "\\xFF", "\\xc3\\xa9", "\\n", "\\x+1"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(bytes: Vec<u8>) {
            prop_assert_eq!(unescape(&escape(&bytes)), Some(bytes));
        }

        #[test]
        fn one_text_for_each(text: String) {
            if let Some(bytes) = unescape(&text) {
                prop_assert_eq!(escape(&bytes), text);
            }
        }
    }
}
