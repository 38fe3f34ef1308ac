//! From the ring's bytes to a record. Nothing else sees raw bytes, and no
//! bytes make it panic.

use effectgate_common::wire::{
    ArgsBody, ExecBody, ExitBody, FileBody, ForkBody, GuardBody, Header, NetBody, Span, UnixBody,
    kind,
};
use thiserror::Error;
use zerocopy::FromBytes;

/// A record, its strings still in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    pub header: Header,
    pub body: Body,
    pub tail: Tail<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Fork(ForkBody),
    Exec(ExecBody),
    Exit(ExitBody),
    Argv(ArgsBody),
    Envp(ArgsBody),
    File(FileBody),
    Net(NetBody),
    Unix(UnixBody),
    Guard(GuardBody),
    /// A kind that this version does not know.
    Unknown,
}

/// The bytes after the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail<'a>(&'a [u8]);

#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("record of {got} bytes: too short for its header")]
    Header { got: usize },
    #[error("record of kind {kind} says {said} bytes but has {got}")]
    Length { kind: u16, said: u32, got: usize },
    #[error("record of kind {kind} with {got} bytes: too short for its body")]
    Body { kind: u16, got: usize },
}

/// Reads one record.
///
/// # Errors
/// When the bytes are shorter than the record says it is, or than its kind needs.
pub fn decode(bytes: &[u8]) -> Result<Record<'_>, DecodeError> {
    let (header, rest) =
        Header::read_from_prefix(bytes).map_err(|_| DecodeError::Header { got: bytes.len() })?;
    if header.len as usize != bytes.len() {
        let (kind, said) = (header.kind, header.len);
        return Err(DecodeError::Length { kind, said, got: bytes.len() });
    }
    let short = |_| DecodeError::Body { kind: header.kind, got: bytes.len() };
    let (body, tail) = match header.kind {
        kind::FORK => split(rest, Body::Fork).map_err(short)?,
        kind::EXEC => split(rest, Body::Exec).map_err(short)?,
        kind::EXIT => split(rest, Body::Exit).map_err(short)?,
        kind::ARGV => split(rest, Body::Argv).map_err(short)?,
        kind::ENVP => split(rest, Body::Envp).map_err(short)?,
        kind::FILE => split(rest, Body::File).map_err(short)?,
        kind::NET => split(rest, Body::Net).map_err(short)?,
        kind::UNIX => split(rest, Body::Unix).map_err(short)?,
        kind::GUARD => split(rest, Body::Guard).map_err(short)?,
        _ => (Body::Unknown, rest),
    };
    Ok(Record { header, body, tail: Tail(tail) })
}

/// Whose record it is, and its number among the job's; `None` when it is too
/// short to say.
#[must_use]
pub fn number(bytes: &[u8]) -> Option<(u64, u64)> {
    let (header, _) = Header::read_from_prefix(bytes).ok()?;
    Some((header.job, header.seq))
}

fn split<T: FromBytes>(bytes: &[u8], body: impl Fn(T) -> Body) -> Result<(Body, &[u8]), ()> {
    T::read_from_prefix(bytes).map(|(value, rest)| (body(value), rest)).map_err(|_| ())
}

impl<'a> Tail<'a> {
    /// The bytes of a span; `None` when it points outside.
    #[must_use]
    pub fn get(self, span: Span) -> Option<&'a [u8]> {
        let start = span.offset as usize;
        self.0.get(start..start.checked_add(span.len as usize)?)
    }
}

/// The text of a fixed-size, NUL-padded field.
#[must_use]
pub fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// An absolute path from components that lead towards the root, each ended by NUL.
#[must_use]
pub fn path(components: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(components.len() + 1);
    let ended = components.strip_suffix(b"\0").unwrap_or(components);
    if !ended.is_empty() {
        for name in ended.split(|byte| *byte == 0).rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}

#[cfg(test)]
mod tests {
    use effectgate_common::wire::{FileObject, obj, op};
    use zerocopy::IntoBytes;

    use super::*;

    fn record(kind: u16, body: &[u8], tail: &[u8]) -> Vec<u8> {
        let mut header = Header { kind, op: op::CREATE, pid: 7, ..Header::default() };
        header.len = (size_of::<Header>() + body.len() + tail.len()) as u32;
        [header.as_bytes(), body, tail].concat()
    }

    fn file(tail: &[u8], path: Span) -> Vec<u8> {
        let object = FileObject { path, flags: obj::INTERNAL, ..FileObject::default() };
        record(kind::FILE, FileBody { object, ..FileBody::default() }.as_bytes(), tail)
    }

    #[test]
    fn a_whole_record_comes_back() {
        let bytes = file(b"b\0a\0", Span { offset: 0, len: 4 });
        let record = decode(&bytes).expect("it is whole");
        assert_eq!(record.header.pid, 7);
        let Body::File(body) = record.body else { panic!("a file record") };
        assert_eq!(path(record.tail.get(body.object.path).expect("inside")), b"/a/b");
    }

    #[test]
    fn every_cut_is_an_error() {
        let bytes = file(b"b\0a\0", Span { offset: 0, len: 4 });
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn spans_that_lie_give_nothing() {
        for span in [(0, 5), (4, 1), (u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
            let bytes = file(b"b\0a\0", Span { offset: span.0, len: span.1 });
            let record = decode(&bytes).expect("the record itself is whole");
            let Body::File(body) = record.body else { panic!("a file record") };
            assert_eq!(record.tail.get(body.object.path), None, "{span:?}");
        }
    }

    #[test]
    fn an_unknown_kind_stays_representable() {
        let bytes = record(999, b"whatever", b"");
        assert_eq!(decode(&bytes).expect("kept").body, Body::Unknown);
    }

    #[test]
    fn paths_of_every_shape() {
        for (components, expected) in [
            (&b""[..], &b"/"[..]),
            (b"a\0", b"/a"),
            (b"c\0b\0a\0", b"/a/b/c"),
            (b"\xff\0a\0", b"/a/\xff"),
        ] {
            assert_eq!(path(components), expected);
        }
    }
}
