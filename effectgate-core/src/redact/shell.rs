//! Where the words of a shell script end. Asked for again and again, it reads the
//! script once: who wrote it may want it to take long.

pub(super) struct Shell<'a> {
    pub bytes: &'a [u8],
    /// For each place, where a word that begins there ends; empty until asked for.
    ends: Vec<usize>,
    /// The first colon from one place on, and that place.
    colon: Option<(usize, usize)>,
}

impl<'a> Shell<'a> {
    pub fn new(bytes: &'a [u8]) -> Shell<'a> {
        Shell { bytes, ends: Vec::new(), colon: None }
    }

    /// The end of a word: quotes and backslashes keep blanks inside.
    pub fn word(&mut self, start: usize) -> usize {
        let len = self.bytes.len();
        if self.ends.is_empty() {
            self.ends = ends(self.bytes);
        }
        self.ends[start.min(len)]
    }

    /// The first colon from here on, or the end.
    pub fn colon(&mut self, start: usize) -> usize {
        match self.colon {
            Some((from, colon)) if (from..=colon).contains(&start) => colon,
            _ => {
                let rest = self.bytes.get(start..).unwrap_or_default();
                let colon = memchr::memchr(b':', rest).map_or(self.bytes.len(), |at| start + at);
                self.colon = Some((start, colon));
                colon
            }
        }
    }
}

/// From the end on, since a word ends where what is left of it does.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let len = bytes.len();
    let mut ends = vec![len; len + 1];
    // Behind the quote that closes what is open here; `single`: the next one.
    let mut double = vec![len; len + 1];
    let mut single = len;
    for (at, b) in bytes.iter().enumerate().rev() {
        double[at] = match b {
            b'\\' => double[(at + 2).min(len)],
            b'"' => at + 1,
            _ => double[at + 1],
        };
        let next = match b {
            b'\\' => at + 2,
            b'"' => double[at + 1],
            b'\'' => std::mem::replace(&mut single, at) + 1,
            b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b')' => {
                ends[at] = at;
                continue;
            }
            _ => at + 1,
        };
        ends[at] = ends[next.min(len)];
    }
    ends
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As a shell reads, from the front.
    fn read(bytes: &[u8], mut at: usize) -> usize {
        let single = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            rest.iter().position(|b| *b == b'\'').map_or(bytes.len(), |end| from + end + 1)
        };
        let double = |mut at: usize| {
            while let Some(b) = bytes.get(at) {
                at += if *b == b'\\' { 2 } else { 1 };
                if *b == b'"' {
                    break;
                }
            }
            at
        };
        while let Some(b) = bytes.get(at) {
            at = match b {
                b'\\' => at + 2,
                b'"' => double(at + 1),
                b'\'' => single(at + 1),
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b'<' | b'>' | b')' => break,
                _ => at + 1,
            };
        }
        at.min(bytes.len())
    }

    proptest! {
        #[test]
        fn words_end_where_a_shell_ends_them(text in r#"[ab:;"' \\]{0,40}"#) {
            let bytes = text.as_bytes();
            let mut shell = Shell::new(bytes);
            for start in 0..=bytes.len() {
                prop_assert_eq!(shell.word(start), read(bytes, start));
                let colon = bytes[start..].iter().position(|b| *b == b':');
                prop_assert_eq!(shell.colon(start), colon.map_or(bytes.len(), |at| start + at));
            }
        }
    }
}
