//! Records back into the inputs they came from.

mod members;
mod opening;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use members::Read;
use members::{Members, address, bytes, class, device, known, protocol};
pub(crate) use opening::{OpenRoot, Opening, opening};

use crate::input::{
    Bytes, Class, Coverage, Device, Event, Exec, Exit, FileObject, FileOp, Guard, Input, JobId,
    NetOp, Notice, RootMatch, Stage, UnixNanos, What,
};
use crate::record::read_number;

/// The log has one job.
pub(crate) const JOB: JobId = 0;

/// Says where a file stands, from its path and the root that the record names.
pub(crate) type Place<'a> = dyn Fn(&FileObject, Option<&[u8]>) -> Read<RootMatch> + 'a;

/// Any record but the first.
pub(crate) fn input(record: &Value, place: &Place<'_>) -> Read<Input> {
    let all = Members::of(record, "record")?;
    let (ts, action, object) = (all.time()?, all.str("action")?, all.members("object")?);
    let class = all.word("class", Class::from_name)?;
    let event = |what| event(&all, ts, what);
    match class {
        Class::File => {
            let coverage = all.word("coverage", Coverage::from_name)?;
            let op = object.word("op", FileOp::from_name)?;
            let other = match object.get("other") {
                None => None,
                Some(other) => Some(file(&Members::of(other, "other")?, place)?),
            };
            event(What::File { op, object: file(&object, place)?, other, coverage })
        }
        Class::Exec => event(process_event(action, &object, place)?),
        Class::Env => {
            let names = object.list("names", bytes)?;
            event(What::Env { names, complete: !object.flag("cut")? })
        }
        Class::Net => event(What::Net {
            op: object.word("op", NetOp::from_name)?,
            address: address(object.value("address")?)?,
            port: object.small("port")?,
            protocol: protocol(object.str("protocol")?)?,
        }),
        Class::Guard => own(action, ts, &object).unwrap_or_else(|| event(guard(action, &object)?)),
        Class::Tool | Class::Limit => Err("class"),
    }
}

/// Whether a record is the one that closes its log.
pub(crate) fn closes(record: &Value) -> bool {
    record["class"] == Class::Guard.name() && record["action"] == "verdict"
}

fn event(all: &Members<'_>, ts: UnixNanos, what: What) -> Read<Input> {
    let process = all.members("process")?;
    let pid = process.small("pid")?;
    let tid = if process.get("tid").is_some() { process.small("tid")? } else { pid };
    let (uid, comm) = (process.small("uid")?, bytes(process.value("comm")?)?);
    Ok(Input::Event(Event { ts, job: JOB, pid, tid, uid, comm, what }))
}

fn process_event(action: &str, object: &Members<'_>, place: &Place<'_>) -> Read<What> {
    match action {
        "fork" => Ok(What::Fork {
            pid: object.small("pid")?,
            ppid: object.small("ppid")?,
            start: object.number("start")?,
        }),
        "exit" => Ok(What::Exit { code: object.small("code")? }),
        "exec" => {
            let mut program = file(object, place)?;
            let asked = program.path.clone();
            if let interpreter @ Value::String(_) = object.value("interpreter")? {
                program.path = bytes(interpreter)?;
                // The root is that of the file that runs, not of the script.
                program.root = place(&program, root_path(object)?.as_deref())?;
            }
            Ok(What::Exec(Exec {
                file: program,
                asked,
                argv: object.list("argv", bytes)?,
                argv_complete: !object.flag("argv_cut")?,
                ppid: object.small("ppid")?,
                start: object.number("start")?,
            }))
        }
        _ => Err("action"),
    }
}

fn guard(action: &str, object: &Members<'_>) -> Read<What> {
    Ok(What::Guard(match action {
        "io_uring" => Guard::IoUring,
        "compat_syscall" => Guard::CompatSyscall { number: object.small("number")? },
        "entered" => Guard::Entered { process: known(object.value("entered")?)? },
        "escaped" => Guard::Escaped { pid: object.small("pid")? },
        "unknown" => Guard::Unknown { kind: object.small("kind")?, op: object.small("op")? },
        _ => return Err("action"),
    }))
}

/// What the daemon said; `None` for what the kernel said.
fn own(action: &str, ts: UnixNanos, object: &Members<'_>) -> Option<Read<Input>> {
    let read = || -> Read<Option<Input>> {
        let notice = |notice| Ok(Some(Input::Notice { job: JOB, ts, notice }));
        match action {
            "canary" => Ok(Some(Input::Canary {
                job: JOB,
                ts,
                seen: object.list("seen", class)?,
                missing: object.list("missing", class)?,
            })),
            "launch" => Ok(Some(Input::Launched { job: JOB, ts })),
            "gap" => Ok(Some(Input::Gap {
                job: JOB,
                ts,
                stage: object.word("stage", Stage::from_name)?,
                lost: lost(object)?.into_iter().collect(),
            })),
            "leftovers" => notice(Notice::Leftovers { killed: object.small("killed")? }),
            "stopped" => notice(Notice::Stopped { why: object.string("why")? }),
            "canary_failed" => notice(Notice::CanaryFailed { why: object.string("why")? }),
            "verdict" => Ok(Some(Input::Finished { job: JOB, ts, exit: exit(object)? })),
            _ => Ok(None),
        }
    };
    read().transpose()
}

fn lost(object: &Members<'_>) -> Read<BTreeMap<Class, u64>> {
    let lost = object.value("lost")?.as_object().ok_or("lost")?;
    lost.iter()
        .map(|(name, count)| {
            Ok((Class::from_name(name).ok_or("lost")?, read_number(count).ok_or("lost")?))
        })
        .collect()
}

fn exit(object: &Members<'_>) -> Read<Option<Exit>> {
    let value = object.value("exit")?;
    if value.is_null() {
        return Ok(None);
    }
    let number = |key| value.get(key).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    match (number("code"), number("signal")) {
        (Some(code), None) => Ok(Some(Exit::Code(code))),
        (None, Some(signal)) => Ok(Some(Exit::Signal(signal))),
        _ => Err("exit"),
    }
}

fn file(object: &Members<'_>, place: &Place<'_>) -> Read<FileObject> {
    let optional_device = |key| object.get(key).map_or(Ok(Device::default()), device);
    let mut file = FileObject {
        path: bytes(object.value("path")?)?,
        path_cut: object.flag("path_cut")?,
        root: if object.flag("unknown")? { RootMatch::Unknown } else { RootMatch::Outside },
        dev: device(object.value("dev")?)?,
        ino: object.number("ino")?,
        mode: if object.get("mode").is_some() { object.small("mode")? } else { 0 },
        rdev: optional_device("rdev")?,
        magic: if object.get("magic").is_some() { object.number("magic")? } else { 0 },
        internal: object.flag("internal")?,
        unlinked: object.flag("unlinked")?,
    };
    file.root = place(&file, root_path(object)?.as_deref())?;
    Ok(file)
}

fn root_path(object: &Members<'_>) -> Read<Option<Bytes>> {
    let root = object.value("root")?;
    if root.is_null() { Ok(None) } else { bytes(root).map(Some) }
}
