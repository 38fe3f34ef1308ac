//! The part of a line that is shown, with the marked place in it.

use std::ops::Range;

/// What is shown of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub text: String,
    /// In bytes of `text`.
    pub mark: Range<usize>,
}

const CUT: &str = "…";

/// Characters that the gutter and the marks of a cut line take.
const GUTTER: usize = 16;

/// In a longer line (bytes) not every place is looked up: it may hold as many
/// faults as it has characters.
pub(super) const LONGEST_LINE: usize = 1 << 12;

impl Excerpt {
    /// The place of `width` characters from `column` (from 1, in characters;
    /// a byte that is not UTF-8 counts as one), and as much around it as fits
    /// into `room` characters.
    pub fn of(line: &[u8], column: u32, width: u32, room: usize) -> Excerpt {
        let room = room.saturating_sub(GUTTER).max(GUTTER);
        let from = match (column as usize).saturating_sub(1) {
            from if from < line.len() => from,
            from => from.min(characters(line).count()),
        };
        // Only these can be shown, however long the line is.
        let first = from.saturating_sub(room);
        let near = characters(line).skip(first).take(2 * room + 1);
        let mut near: Vec<String> = near.map(Character::drawn).collect();
        let is_cut = near.len() > 2 * room;
        near.truncate(2 * room);
        let end = first + near.len();
        let from = from.min(end);
        let to = from.saturating_add(width.max(1) as usize).min(end);
        let mark = from - first..to - first;
        let shown = window(&near, mark.clone(), room);

        let mut text = String::from(if first + shown.start > 0 { CUT } else { "" });
        text += &near[shown.start..mark.start].concat();
        let marked = text.len();
        text += &near[mark.start..mark.end.min(shown.end)].concat();
        let marked = marked..text.len();
        text += &near[mark.end.min(shown.end)..shown.end].concat();
        if is_cut || shown.end < near.len() {
            text += CUT;
        }
        Excerpt { text, mark: marked }
    }
}

/// Text in which nothing steers a terminal or reorders what is read: control
/// characters, overrides of direction and what has no shape are escaped.
#[must_use]
pub fn visible(text: &str) -> String {
    // Nearly every text, and logs have millions of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().map(|c| Character::Good(c).drawn()).collect()
}

/// What counts as one column.
#[derive(Clone, Copy)]
pub(super) enum Character {
    Good(char),
    /// Not UTF-8.
    Byte(u8),
}

impl Character {
    fn drawn(self) -> String {
        match self {
            // They need an escape in a Rust literal, not on a terminal.
            Character::Good(c @ ('"' | '\'' | '\\')) => c.to_string(),
            Character::Good('\t') => "    ".to_owned(),
            Character::Good(c) => c.escape_debug().to_string(),
            Character::Byte(byte) => format!("\\x{byte:02x}"),
        }
    }
}

/// The characters of a line.
pub(super) fn characters(line: &[u8]) -> impl Iterator<Item = Character> {
    line.utf8_chunks().flat_map(|chunk| {
        let good = chunk.valid().chars().map(Character::Good);
        good.chain(chunk.invalid().iter().copied().map(Character::Byte))
    })
}

/// The width of a mark that ends where a quoted text does. The YAML parser
/// lets it reach to the next token, over blanks and a comment.
pub(super) fn to_quote(line: &[u8], column: u32, width: u32) -> u32 {
    if line.len() > LONGEST_LINE {
        return width;
    }
    let from = column.saturating_sub(1) as usize;
    let mut marked = characters(line).skip(from).take(width as usize).zip(1..);
    let Some((Character::Good(quote @ ('"' | '\'')), _)) = marked.next() else { return width };
    let mut is_escaped = false;
    for (character, end) in marked {
        match character {
            _ if is_escaped => is_escaped = false,
            Character::Good('\\') if quote == '"' => is_escaped = true,
            Character::Good(c) if c == quote => return end,
            _ => {}
        }
    }
    width
}

/// The mark from its start, then what is around it, as much as fits.
fn window(characters: &[String], mark: Range<usize>, room: usize) -> Range<usize> {
    let mut left = room;
    let mut take = |index: Option<usize>| {
        let size = index.and_then(|index| characters.get(index)).map(|text| text.chars().count());
        let fits = size.is_some_and(|size| size <= left);
        left -= size.filter(|_| fits).unwrap_or(0);
        fits
    };
    let mut end = mark.start;
    while end < mark.end && take(Some(end)) {
        end += 1;
    }
    let mut start = mark.start;
    let (mut before, mut after) = (true, end == mark.end);
    while before || after {
        after = after && take(Some(end));
        end += usize::from(after);
        before = before && take(start.checked_sub(1));
        start -= usize::from(before);
    }
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The excerpt with its mark in brackets.
    fn shown(line: &[u8], column: u32, width: u32, room: usize) -> String {
        let Excerpt { text, mark } = Excerpt::of(line, column, width, room);
        format!("{}[{}]{}", &text[..mark.start], &text[mark.clone()], &text[mark.end..])
    }

    #[test]
    fn short_lines_are_whole() {
        for (line, column, width, expected) in [
            (&b"a: b"[..], 4, 1, "a: [b]"),
            (b"a: bcd", 4, 2, "a: [bc]d"),
            (b"a: b", 4, 99, "a: [b]"),
            (b"a: b", 5, 1, "a: b[]"),
            (b"a: b", 99, 7, "a: b[]"),
            (b"", 1, 1, "[]"),
            (b"a", 0, 0, "[a]"),
            ("é: ü".as_bytes(), 4, 1, "é: [ü]"),
            (b"a\tb", 3, 1, "a    [b]"),
        ] {
            assert_eq!(shown(line, column, width, 80), expected);
        }
    }

    #[test]
    fn nothing_in_a_line_steers_the_terminal() {
        for (line, expected) in [
            (&b"\x1b[31mred"[..], "[\\u{1b}][31mred"),
            ("\u{202e}txt".as_bytes(), "[\\u{202e}]txt"),
            ("\u{200b}x".as_bytes(), "[\\u{200b}]x"),
            (b"\xff\xfex", "[\\xff]\\xfex"),
            (b"\0a\rb", "[\\0]a\\rb"),
            ("\u{9b}1m".as_bytes(), "[\\u{9b}]1m"),
        ] {
            assert_eq!(shown(line, 1, 1, 80), expected);
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_mark() {
        let line = "0123456789".repeat(100);
        assert_eq!(shown(line.as_bytes(), 1, 2, 36), "[01]234567890123456789…");
        assert_eq!(shown(line.as_bytes(), 501, 2, 36), "…123456789[01]234567890…");
        assert_eq!(shown(line.as_bytes(), 1000, 1, 36), "…0123456789012345678[9]");
        assert_eq!(shown(line.as_bytes(), 501, 400, 36), "…[01234567890123456789]…");
    }

    #[test]
    fn a_mark_ends_with_its_quote() {
        for (line, column, width, expected) in [
            (r#"a: "b"  # c"#, 4, 8, 3),
            (r#"a: "b\"c" # d"#, 4, 10, 6),
            ("a: '' # b", 4, 6, 2),
            ("a: b # c", 4, 5, 5),
            (r#"a: "b"#, 4, 2, 2),
            ("", 1, 1, 1),
        ] {
            assert_eq!(to_quote(line.as_bytes(), column, width), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_fits_and_is_harmless(line: Vec<u8>, column: u32, width: u32, room in 0_usize..200) {
            let Excerpt { text, mark } = Excerpt::of(&line, column, width, room);
            prop_assert!(text.get(mark).is_some());
            prop_assert!(text.chars().count() <= room.max(2 * GUTTER));
            prop_assert!(!text.chars().any(char::is_control));
        }

        #[test]
        fn near_places_too(line in "[a-z\u{202e}é]{0,300}", column in 0_u32..320, width in 0_u32..9) {
            let Excerpt { text, mark } = Excerpt::of(line.as_bytes(), column, width, 40);
            // As a string, the override's escape would be read as a format.
            let turned = text.contains('\u{202e}');
            prop_assert!(text.get(mark).is_some() && !turned);
        }
    }
}
