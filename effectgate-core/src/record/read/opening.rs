//! The opening record: the job as it was when its log began.

use std::net::IpAddr;

use serde_json::Value;

use super::members::{Members, Read, address, bytes, device, known};
use crate::input::{
    Backend, Bytes, Class, Coverage, Coverages, Device, Found, Known, Linked, Mode, Stream,
    UnixNanos,
};
use crate::pin::ReviewNote;
use crate::policy::Rights;
use crate::record::{GuardAction, read_number};

/// The opening record, as it stands there.
#[derive(Debug)]
pub(crate) struct Opening {
    pub ts: UnixNanos,
    pub boot_offset: u64,
    pub name: String,
    pub sha256: String,
    /// The policy file's name, which the records' rules cite.
    pub file: String,
    pub note: Option<ReviewNote>,
    pub host: String,
    pub kernel: String,
    pub backend: Backend,
    pub coverage: Coverages,
    pub min_coverage: Coverage,
    pub mode: Mode,
    pub judged: bool,
    pub programs: String,
    pub argv: Vec<Bytes>,
    pub cgroup: String,
    pub workspace: Option<Bytes>,
    pub home: Option<Bytes>,
    pub roots: Vec<OpenRoot>,
    /// The name in the policy, and a file that it means.
    pub binaries: Vec<(String, Found)>,
    /// The path in the policy, and the file that it is bound to.
    pub sockets: Vec<(String, Found)>,
    pub linked: Vec<Linked>,
    pub own: Vec<Bytes>,
    /// What stands in the policy, and what it resolved to.
    pub hosts: Vec<(Option<String>, Vec<IpAddr>)>,
    pub streams: Vec<Stream>,
    pub terminals: Vec<Device>,
    pub env: Vec<Bytes>,
    pub processes: Vec<Known>,
    /// Written before opening records held the job's whole surroundings. What
    /// is not there was not asked, and is as that version took it to be.
    pub sparse: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct OpenRoot {
    pub id: u32,
    pub path: Bytes,
    pub entry: Option<usize>,
    /// The path in the policy, before it was resolved.
    pub written: Option<String>,
    pub rights: Rights,
}

pub(crate) fn opening(record: &Value) -> Read<Opening> {
    let all = Members::of(record, "record")?;
    if (all.str("class")?, all.str("action")?) != (Class::Guard.name(), GuardAction::Start.name()) {
        return Err("the first record does not open a log");
    }
    let object = all.members("object")?;
    let policy = object.members("policy")?;
    let coverage = object.members("coverage")?;
    Ok(Opening {
        ts: all.time()?,
        boot_offset: since(&object, "boot_offset", 0, |it| read_number(it).ok_or("boot_offset"))?,
        name: all.string("job")?,
        sha256: policy.string("sha256")?,
        file: policy.string("file")?,
        note: note(&object)?,
        host: object.string("host")?,
        kernel: object.string("kernel")?,
        backend: object.word("backend", Backend::from_name)?,
        coverage: Coverages {
            file: coverage.word("file", Coverage::from_name)?,
            exec: coverage.word("exec", Coverage::from_name)?,
            env: coverage.word("env", Coverage::from_name)?,
            net: coverage.word("net", Coverage::from_name)?,
            tool: since(&coverage, "tool", Coverage::None, |it| {
                it.as_str().and_then(Coverage::from_name).ok_or("tool")
            })?,
        },
        min_coverage: object.word("min_coverage", Coverage::from_name)?,
        mode: object.word("mode", Mode::from_name)?,
        judged: object.flag("judged")?,
        programs: object.string("programs")?,
        argv: object.list("argv", bytes)?,
        cgroup: object.string("cgroup")?,
        workspace: place(&object, "workspace")?,
        home: place(&object, "home")?,
        roots: object.list("roots", root)?,
        binaries: list(&object, "binaries", |value| found(value, "binaries"))?,
        sockets: list(&object, "sockets", |value| found(value, "sockets"))?,
        linked: list(&object, "linked", linked)?,
        own: list(&object, "own", bytes)?,
        hosts: object.list("hosts", host)?,
        streams: object.list("streams", stream)?,
        terminals: object.list("terminals", device)?,
        env: object.list("env", bytes)?,
        processes: object.list("processes", known)?,
        sparse: object.get("workspace").is_none(),
    })
}

/// A list that is left out when it is empty, or that older versions did not
/// know.
fn list<T>(
    object: &Members<'_>,
    key: &'static str,
    read: impl Fn(&Value) -> Read<T>,
) -> Read<Vec<T>> {
    if object.get(key).is_some() { object.list(key, read) } else { Ok(Vec::new()) }
}

/// A member that older versions did not write, and what it was for them.
fn since<T>(
    object: &Members<'_>,
    key: &'static str,
    before: T,
    read: impl Fn(&Value) -> Read<T>,
) -> Read<T> {
    object.get(key).map_or(Ok(before), read)
}

fn root(value: &Value) -> Read<OpenRoot> {
    let root = Members::of(value, "roots")?;
    let entry = match root.value("entry")? {
        Value::Null => None,
        entry => Some(read_number(entry).and_then(|n| n.try_into().ok()).ok_or("entry")?),
    };
    let written = root.value("written")?.as_str().map(str::to_owned);
    let right = |name: &Value| name.as_str().and_then(Rights::from_name).ok_or("rights");
    let rights = match root.get("rights") {
        Some(_) => root.list("rights", right)?.into_iter().fold(Rights::default(), Rights::and),
        // There were only the roots of envelopes.
        None => Rights::WRITE,
    };
    Ok(OpenRoot {
        id: root.small("id")?,
        path: bytes(root.value("path")?)?,
        entry,
        written,
        rights,
    })
}

fn found(value: &Value, list: &'static str) -> Read<(String, Found)> {
    let members = Members::of(value, list)?;
    let found = Found {
        entry: members.small("entry")?,
        path: bytes(members.value("path")?)?,
        dev: device(members.value("dev")?)?,
        ino: members.number("ino")?,
        twin: members.twin()?,
    };
    Ok((members.string("name")?, found))
}

fn linked(value: &Value) -> Read<Linked> {
    let file = Members::of(value, "linked")?;
    Ok(Linked {
        path: bytes(file.value("path")?)?,
        dev: device(file.value("dev")?)?,
        ino: file.number("ino")?,
        twin: file.twin()?,
    })
}

fn stream(value: &Value) -> Read<Stream> {
    let stream = Members::of(value, "streams")?;
    // Before it was asked which way a stream goes, it went both.
    let flag = |key| since(&stream, key, true, |way| way.as_bool().ok_or(key));
    Ok(Stream {
        dev: device(stream.value("dev")?)?,
        ino: stream.number("ino")?,
        twin: stream.twin()?,
        read: flag("read")?,
        write: flag("write")?,
    })
}

fn place(object: &Members<'_>, key: &'static str) -> Read<Option<Bytes>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(path) => bytes(path).map(Some),
    }
}

fn host(value: &Value) -> Read<(Option<String>, Vec<IpAddr>)> {
    let host = Members::of(value, "hosts")?;
    let name = host.value("host")?.as_str().map(str::to_owned);
    Ok((name, host.list("addresses", address)?))
}

fn note(object: &Members<'_>) -> Read<Option<ReviewNote>> {
    if object.value("note")?.is_null() {
        return Ok(None);
    }
    let note = object.members("note")?;
    Ok(Some(ReviewNote {
        reviewer: note.string("reviewer")?,
        date: note.string("date")?,
        reason: note.string("reason")?,
        old_digest: note.string("old_digest")?,
        new_digest: note.string("new_digest")?,
    }))
}
