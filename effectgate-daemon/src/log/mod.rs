//! A job's log as files: the open segment `events.jsonl`, and before it those
//! that were closed when they had become large enough, `events-000000.jsonl.zst`
//! and on. The hash chain runs through all of them.

mod files;
mod found;
mod reader;
mod segments;
mod writer;

pub use files::{SMALL, digest_of, small};
pub use found::{Against, Flaw, Found, is_signed};
pub use reader::{BUFFER, Log, Open, Place};
pub use segments::is_segment;
pub use writer::{SEGMENT_BYTES, SMALLEST_SEGMENT, Writer};
