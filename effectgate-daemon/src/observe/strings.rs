//! A program's arguments, or its environment: strings that come in chunks.

use effectgate_common::wire::{ARGS_CHUNK, ARGS_CHUNKS_MAX, ArgsBody};

use super::decode::Tail;

#[derive(Debug)]
pub(super) struct Strings {
    pub bytes: Vec<u8>,
    total: usize,
    /// Chunks still to come.
    pub missing: usize,
    pub complete: bool,
}

impl Strings {
    pub fn expect(total: u32) -> Strings {
        let chunks = (total as usize).div_ceil(ARGS_CHUNK);
        let missing = chunks.min(ARGS_CHUNKS_MAX);
        Strings { bytes: Vec::new(), total: total as usize, missing, complete: chunks == missing }
    }

    pub fn take(&mut self, args: ArgsBody, tail: Tail<'_>) {
        if self.missing == 0 {
            // More than was announced: what it belongs to is not known.
            self.complete = false;
            return;
        }
        self.missing -= 1;
        let expected = (self.total.saturating_sub(args.offset as usize)).min(ARGS_CHUNK);
        match tail.get(args.bytes) {
            Some(bytes) if bytes.len() == expected && self.bytes.len() == args.offset as usize => {
                self.bytes.extend_from_slice(bytes);
            }
            _ => self.complete = false,
        }
    }

    pub fn split(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes
            .strip_suffix(b"\0")
            .into_iter()
            .chain(
                // Cut off: the last string is not whole, and is left out.
                (!self.bytes.ends_with(b"\0"))
                    .then(|| self.bytes.iter().rposition(|b| *b == 0).map(|end| &self.bytes[..end]))
                    .flatten(),
            )
            .flat_map(|block| block.split(|byte| *byte == 0))
    }
}
