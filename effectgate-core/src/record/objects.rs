//! The objects of records, by class. `read` turns each back into the input it
//! came from; what replay needs beyond what people read is written only where
//! it is not the ordinary case.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::escape::escape;
use crate::input::{
    Bytes, Class, Device, Exec, Exit, FileObject, FileOp, Found, Guard, Known, NetOp, Notice,
    RootMatch, Stage, Started, Stream,
};
use crate::judge::Tables;
use crate::policy::Rights;
use crate::record::number;
use crate::redact;
use crate::verdict::Verdict;

/// The first record carries everything that judging needs to know of the job.
pub(crate) fn opening(started: &Started) -> Value {
    let policy = &started.policy;
    let roots: Vec<Value> = started
        .roots
        .iter()
        .map(|root| {
            let entry = root.entry.and_then(|index| policy.roots.entries.get(index));
            json!({
                "id": root.id,
                "path": escape(&root.path),
                "entry": root.entry,
                "written": entry.map(|entry| redact::path_text(&entry.path)),
                "rights": rights(root.rights),
            })
        })
        .collect();
    let hosts: Vec<Value> = started
        .hosts
        .iter()
        .enumerate()
        .map(|(index, addresses)| {
            let entry = policy.hosts.entries().get(index);
            json!({ "host": entry.map(|entry| entry.value.to_string()), "addresses": addresses })
        })
        .collect();
    let binary = |found: &Found| {
        let listed = policy.binaries.as_ref().and_then(|list| list.entries().get(found.entry));
        json!({
            "entry": found.entry,
            "name": listed.map(|listed| &listed.value.name),
            "path": escape(&found.path),
            "dev": device(found.dev),
            "ino": number(found.ino),
        })
    };
    json!({
        "what": "observation starts",
        "policy": {
            "kind": policy.kind,
            "id": policy.id,
            "sha256": policy.sha256,
            "file": policy.file,
        },
        "note": started.note,
        "boot_offset": number(started.boot_offset),
        "host": started.host,
        "kernel": started.kernel,
        "backend": started.backend,
        "coverage": started.coverage,
        "min_coverage": started.min_coverage,
        "mode": started.mode,
        "programs": started.programs,
        "argv": escaped(&started.argv),
        "cgroup": started.cgroup,
        "workspace": started.workspace.as_ref().map(|path| escape(path)),
        "home": started.home.as_ref().map(|path| escape(path)),
        "roots": roots,
        "binaries": started.binaries.iter().map(binary).collect::<Vec<_>>(),
        "own": escaped(&started.own),
        "hosts": hosts,
        "streams": started.streams.iter().map(stream).collect::<Vec<_>>(),
        "terminals": started.terminals.iter().map(|dev| device(*dev)).collect::<Vec<_>>(),
        "env": escaped(&started.env),
        "processes": started.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

/// The last record says what came out.
pub(crate) fn closing(verdict: &Verdict, exit: Option<Exit>) -> Value {
    json!({
        "what": "observation ends",
        "verdict": verdict.verdict,
        "reasons": verdict.reasons,
        "violations": number(verdict.distinct_violations()),
        "lost": verdict.lost,
        "exit": exit,
    })
}

pub(crate) fn file(
    tables: &Tables,
    op: FileOp,
    object: &FileObject,
    other: Option<&FileObject>,
) -> Value {
    let mut map = file_members(tables, object);
    map.insert("op".into(), op.name().into());
    if let Some(other) = other {
        map.insert("other".into(), Value::Object(file_members(tables, other)));
    }
    Value::Object(map)
}

pub(crate) fn exec(tables: &Tables, exec: &Exec) -> Value {
    let mut map = file_members(tables, &exec.file);
    if exec.asked != exec.file.path {
        map.insert("path".into(), escape(&exec.asked).into());
        map.insert("interpreter".into(), escape(&exec.file.path).into());
    } else {
        map.insert("interpreter".into(), Value::Null);
    }
    map.insert("argv".into(), escaped(&exec.argv));
    if !exec.argv_complete {
        map.insert("argv_cut".into(), true.into());
    }
    map.insert("ppid".into(), exec.ppid.into());
    map.insert("start".into(), number(exec.start));
    Value::Object(map)
}

pub(crate) fn fork(pid: u32, ppid: u32, start: u64) -> Value {
    json!({ "pid": pid, "ppid": ppid, "start": number(start) })
}

pub(crate) fn exit(code: u32) -> Value {
    json!({ "code": code })
}

pub(crate) fn env(names: &[Bytes], outside: &[Bytes], complete: bool) -> Value {
    let mut map = Map::new();
    map.insert("names".into(), escaped(names));
    if !outside.is_empty() {
        map.insert("outside".into(), escaped(outside));
    }
    if !complete {
        map.insert("cut".into(), true.into());
    }
    Value::Object(map)
}

pub(crate) fn net(
    op: NetOp,
    name: Option<&str>,
    address: IpAddr,
    port: u16,
    protocol: u32,
) -> Value {
    json!({
        "op": op,
        "name": name,
        "address": address,
        "port": port,
        "protocol": protocol_name(protocol),
        "family": if address.is_ipv4() { "ipv4" } else { "ipv6" },
    })
}

/// `tcp`, `udp`, or the protocol's number (IANA, Assigned Internet Protocol Numbers).
pub(crate) fn protocol_name(protocol: u32) -> String {
    match protocol {
        6 => "tcp".into(),
        17 => "udp".into(),
        other => other.to_string(),
    }
}

pub(crate) fn canary(seen: &[Class], missing: &[Class]) -> Value {
    json!({ "what": "the observer's own test effects", "seen": seen, "missing": missing })
}

pub(crate) fn gap(stage: Stage, lost: &BTreeMap<Class, u64>) -> Value {
    let lost: Map<String, Value> =
        lost.iter().map(|(class, count)| (class.name().into(), number(*count))).collect();
    json!({ "what": "records were lost", "stage": stage, "lost": lost })
}

/// `bound`: what the policy says of the limit that the notice is about.
pub(crate) fn notice(notice: &Notice, bound: Option<u64>) -> Value {
    match notice {
        Notice::Leftovers { killed } => {
            json!({ "what": "processes outlived the command and were killed", "killed": killed })
        }
        Notice::Stopped { why } => {
            json!({ "what": "the job was stopped from outside", "why": why })
        }
        Notice::CanaryFailed { why } => json!({ "what": "the canary failed", "why": why }),
        Notice::Limit { limit, value } => json!({
            "what": "the job reached a bound and was stopped",
            "limit": limit,
            "value": number(*value),
            "bound": bound.map(number),
        }),
    }
}

pub(crate) fn guard(guard: &Guard) -> Value {
    match guard {
        Guard::IoUring => json!({ "what": "an io_uring was set up" }),
        Guard::Socket { family, kind, protocol } => json!({
            "what": "a socket was made of a kind that the network hooks do not see",
            "family": family,
            "type": kind,
            "protocol": protocol,
        }),
        Guard::CompatSyscall { number } => {
            json!({ "what": "a 32-bit system call", "number": number })
        }
        Guard::Entered { process, env } => entered(process, env.as_deref()),
        Guard::Escaped { pid } => {
            json!({ "what": "a process left the job's cgroup", "pid": pid })
        }
        Guard::Unknown { kind, op } => {
            json!({ "what": "a record of an unknown kind", "kind": kind, "op": op })
        }
    }
}

fn entered(known: &Known, env: Option<&[Bytes]>) -> Value {
    json!({
        "what": "a process joined the job's cgroup from outside",
        "entered": process(known),
        "env": env.map(escaped),
    })
}

fn process(known: &Known) -> Value {
    json!({
        "pid": known.pid,
        "ppid": known.ppid,
        "start": number(known.start),
        "exe": escape(&known.exe),
        "comm": escape(&known.comm),
    })
}

fn file_members(tables: &Tables, object: &FileObject) -> Map<String, Value> {
    let mut map = Map::new();
    let mut flag = |name: &str, set: bool| {
        if set {
            map.insert(name.into(), true.into());
        }
    };
    flag("path_cut", object.path_cut);
    flag("unknown", object.root == RootMatch::Unknown);
    flag("internal", object.internal);
    flag("unlinked", object.unlinked);
    flag("credential", crate::secret::is_credential_path(&object.path));
    let root = match object.root {
        RootMatch::Below(id) => tables.root_path(id),
        RootMatch::Outside | RootMatch::Unknown => None,
    };
    map.insert("path".into(), escape(&object.path).into());
    map.insert("root".into(), root.map(escape).into());
    map.insert("dev".into(), device(object.dev).into());
    map.insert("ino".into(), number(object.ino));
    if object.mode != 0 {
        map.insert("mode".into(), object.mode.into());
    }
    if object.rdev != Device::default() {
        map.insert("rdev".into(), device(object.rdev).into());
    }
    if object.magic != 0 {
        map.insert("magic".into(), number(object.magic));
    }
    map
}

fn rights(rights: Rights) -> Vec<&'static str> {
    rights.names().collect()
}

fn stream(stream: &Stream) -> Value {
    json!({
        "dev": device(stream.dev),
        "ino": number(stream.ino),
        "read": stream.read,
        "write": stream.write,
    })
}

fn device(device: Device) -> String {
    format!("{}:{}", device.major, device.minor)
}

fn escaped(all: &[Bytes]) -> Value {
    all.iter().map(|bytes| escape(bytes)).collect()
}
