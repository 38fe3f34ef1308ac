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
        boot_offset: object.number("boot_offset")?,
        name: all.string("job")?,
        sha256: policy.string("sha256")?,
        note: note(&object)?,
        host: object.string("host")?,
        kernel: object.string("kernel")?,
        backend: object.word("backend", Backend::from_name)?,
        coverage: Coverages {
            file: coverage.word("file", Coverage::from_name)?,
            exec: coverage.word("exec", Coverage::from_name)?,
            env: coverage.word("env", Coverage::from_name)?,
            net: coverage.word("net", Coverage::from_name)?,
            tool: coverage.word("tool", Coverage::from_name)?,
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
        binaries: object.list("binaries", |value| found(value, "binaries"))?,
        sockets: match object.get("sockets") {
            Some(_) => object.list("sockets", |value| found(value, "sockets"))?,
            None => Vec::new(),
        },
        linked: match object.get("linked") {
            Some(_) => object.list("linked", linked)?,
            None => Vec::new(),
        },
        own: object.list("own", bytes)?,
        hosts: object.list("hosts", host)?,
        streams: object.list("streams", stream)?,
        terminals: object.list("terminals", device)?,
        env: object.list("env", bytes)?,
        processes: object.list("processes", known)?,
    })
}

fn root(value: &Value) -> Read<OpenRoot> {
    let root = Members::of(value, "roots")?;
    let entry = match root.value("entry")? {
        Value::Null => None,
        entry => Some(read_number(entry).and_then(|n| n.try_into().ok()).ok_or("entry")?),
    };
    let written = root.value("written")?.as_str().map(str::to_owned);
    let rights =
        root.list("rights", |name| name.as_str().and_then(Rights::from_name).ok_or("rights"))?;
    let rights = rights.into_iter().fold(Rights::default(), Rights::and);
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
    };
    Ok((members.string("name")?, found))
}

fn linked(value: &Value) -> Read<Linked> {
    let file = Members::of(value, "linked")?;
    Ok(Linked {
        path: bytes(file.value("path")?)?,
        dev: device(file.value("dev")?)?,
        ino: file.number("ino")?,
    })
}

fn stream(value: &Value) -> Read<Stream> {
    let stream = Members::of(value, "streams")?;
    let flag = |key| stream.value(key)?.as_bool().ok_or(key);
    Ok(Stream {
        dev: device(stream.value("dev")?)?,
        ino: stream.number("ino")?,
        read: flag("read")?,
        write: flag("write")?,
    })
}

fn place(object: &Members<'_>, key: &'static str) -> Read<Option<Bytes>> {
    match object.value(key)? {
        Value::Null => Ok(None),
        path => bytes(path).map(Some),
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
