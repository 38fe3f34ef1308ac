//! The objects of records, by class. `read` turns each back into the input it
//! came from; what replay needs beyond what people read is written only where
//! it is not the ordinary case.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::escape::escape;
use crate::input::{
    Bytes, Class, Device, Exec, Exit, FileId, FileObject, FileOp, Found, Guard, Known, Linked,
    Namespace, NetOp, Notice, RootMatch, Stage, Started, Stream, UnixPeer,
};
use crate::judge::{Peer, Tables};
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
    let file = |found: &Found, name: Option<&String>| {
        let file = json!({ "entry": found.entry, "name": name, "path": escape(&found.path) });
        identified(file, found.id())
    };
    let binary = |found: &Found| {
        let listed = policy.binaries.as_ref().and_then(|list| list.entries().get(found.entry));
        file(found, listed.map(|listed| &listed.value.name))
    };
    let socket = |found: &Found| {
        let listed = policy.unix_sockets.entries().get(found.entry);
        file(found, listed.map(|listed| redact::path_text(&listed.value)).as_ref())
    };
    let mut object = json!({
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
    });
    if started.judged {
        object["judged"] = true.into();
    }
    let denied = started.mode.denies(started.backend);
    if !denied.is_empty() {
        object["denied"] = json!(denied);
    }
    if !started.sockets.is_empty() {
        object["sockets"] = started.sockets.iter().map(socket).collect();
    }
    if !started.linked.is_empty() {
        object["linked"] = started.linked.iter().map(linked).collect();
    }
    object
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

pub(crate) fn net(tables: &Tables, op: NetOp, name: Option<&str>, peer: Peer) -> Value {
    let mut object = json!({
        "op": op,
        "name": name,
        "address": peer.address,
        "port": peer.port,
        "protocol": protocol_name(peer.protocol),
        "family": if peer.address.is_ipv4() { "ipv4" } else { "ipv6" },
    });
    if peer.own && tables.started.judged {
        object["listener"] = OWN.into();
    }
    if peer.namespace != Namespace::Own {
        object["namespace"] = peer.namespace.name().into();
    }
    object
}

/// Who listens, when it is the job itself.
pub(crate) const OWN: &str = "job";
/// The family of a socket that has no host.
pub(crate) const UNIX: &str = "unix";

pub(crate) fn unix(tables: &Tables, op: NetOp, peer: &UnixPeer, own: bool) -> Value {
    let mut map = match peer {
        UnixPeer::File(file) => file_members(tables, file),
        UnixPeer::Abstract(name) => Map::from_iter([("abstract".to_owned(), escape(name).into())]),
        UnixPeer::Unnamed => Map::new(),
    };
    map.insert("op".into(), op.name().into());
    map.insert("family".into(), UNIX.into());
    map.insert("own".into(), own.into());
    Value::Object(map)
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
    json!({ "what": "records were lost", "stage": stage, "lost": counts(lost) })
}

/// Counts by class, each class once.
pub(crate) fn sums(counts: &[(Class, u64)]) -> BTreeMap<Class, u64> {
    let mut sums: BTreeMap<Class, u64> = BTreeMap::new();
    for (class, count) in counts {
        let sum = sums.entry(*class).or_default();
        *sum = sum.saturating_add(*count);
    }
    sums
}

fn counts(sums: &BTreeMap<Class, u64>) -> Value {
    sums.iter().map(|(class, count)| (class.name().to_owned(), number(*count))).collect()
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
        Notice::Killed { pid, violation } => json!({
            "what": match pid {
                Some(_) => "a process was killed for a violation",
                None => "the job was killed for a violation",
            },
            "pid": pid,
            "violation": number(*violation),
        }),
        Notice::CanaryFailed { why } => json!({ "what": "the canary failed", "why": why }),
        Notice::Repeated { counts: all } => json!({
            "what": "effects inside the policy that were seen before happened again",
            "counts": counts(&sums(all)),
        }),
        Notice::Limit { limit, value } => json!({
            "what": "the job reached a bound and was stopped",
            "limit": limit,
            "value": number(*value),
            "bound": bound.map(number),
        }),
    }
}

pub(crate) fn guard(tables: &Tables, guard: &Guard) -> Value {
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
        Guard::Reached { reach, detail, pid, object } => {
            let mut map = object.as_ref().map_or_else(Map::new, |file| file_members(tables, file));
            map.insert("what".into(), "the job reached for what is not its own".into());
            map.insert("reach".into(), reach.name().into());
            map.insert("detail".into(), (*detail).into());
            if *pid != 0 {
                map.insert("pid".into(), (*pid).into());
            }
            Value::Object(map)
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
    flag("own_proc", object.own_proc);
    flag("credential", crate::secret::is_credential_path(&object.path));
    let root = match object.root {
        RootMatch::Below(id) => tables.root_path(id),
        RootMatch::Outside | RootMatch::Unknown => None,
    };
    map.insert("path".into(), escape(&object.path).into());
    map.insert("root".into(), root.map(escape).into());
    map.insert("dev".into(), device(object.dev).into());
    map.insert("ino".into(), number(object.ino));
    if object.twin != 0 {
        map.insert("twin".into(), object.twin.into());
    }
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

fn linked(file: &Linked) -> Value {
    identified(json!({ "path": escape(&file.path) }), file.id())
}

fn stream(stream: &Stream) -> Value {
    identified(json!({ "read": stream.read, "write": stream.write }), stream.id())
}

/// With what tells it from other files.
fn identified(mut file: Value, id: FileId) -> Value {
    file["dev"] = device(id.dev).into();
    file["ino"] = number(id.ino);
    if id.twin != 0 {
        file["twin"] = id.twin.into();
    }
    file
}

fn device(device: Device) -> String {
    format!("{}:{}", device.major, device.minor)
}

fn escaped(all: &[Bytes]) -> Value {
    all.iter().map(|bytes| escape(bytes)).collect()
}
