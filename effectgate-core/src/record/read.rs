//! Records back into the inputs they came from.

mod members;
mod opening;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use members::Read;
use members::{Members, address, bytes, class, device, known, protocol};
pub(crate) use opening::{OpenRoot, Opening, opening};

use crate::input::{
    Bytes, Class, Coverage, Device, Event, Exec, Exit, FileObject, Guard, Input, JobId, Notice,
    RootMatch, Stage, UnixNanos, What,
};
use crate::record::{Action, EnvAction, GuardAction, ProcessAction, read_number};

/// The log has one job.
pub(crate) const JOB: JobId = 0;

/// Says where a file stands, from its path and the root that the record names.
pub(crate) type Place<'a> = dyn Fn(&FileObject, Option<&[u8]>) -> Read<RootMatch> + 'a;

/// Any record but the first.
pub(crate) fn input(record: &Value, place: &Place<'_>) -> Read<Input> {
    let all = Members::of(record, "record")?;
    let (ts, object) = (all.time()?, all.members("object")?);
    let class = all.word("class", Class::from_name)?;
    let action = Action::from_names(class, all.str("action")?).ok_or("action")?;
    let what = match action {
        Action::File(op) => {
            let coverage = all.word("coverage", Coverage::from_name)?;
            let other = match object.get("other") {
                None => None,
                Some(other) => Some(file(&Members::of(other, "other")?, place)?),
            };
            What::File { op, object: file(&object, place)?, other, coverage }
        }
        Action::Net(op) => What::Net {
            op,
            address: address(object.value("address")?)?,
            port: object.small("port")?,
            protocol: protocol(object.str("protocol")?)?,
        },
        Action::Process(action) => process_event(action, &object, place)?,
        Action::Env(EnvAction::Hold | EnvAction::Inherit | EnvAction::Make) => {
            let names = object.list("names", bytes)?;
            What::Env { names, complete: !object.flag("cut")? }
        }
        Action::Limit(limit) => {
            let notice = Notice::Limit { limit, value: object.number("value")? };
            return Ok(Input::Notice { job: JOB, ts, notice });
        }
        Action::Guard(action) => match guard(action, ts, &object)? {
            Said::ByKernel(guard) => What::Guard(guard),
            Said::ByDaemon(input) => return Ok(input),
        },
    };
    event(&all, ts, what)
}

/// Whether a record is the one that closes its log.
pub(crate) fn closes(record: &Value) -> bool {
    record["class"] == Class::Guard.name() && record["action"] == GuardAction::Verdict.name()
}

fn event(all: &Members<'_>, ts: UnixNanos, what: What) -> Read<Input> {
    let process = all.members("process")?;
    let pid = process.small("pid")?;
    let tid = if process.get("tid").is_some() { process.small("tid")? } else { pid };
    let (uid, comm) = (process.small("uid")?, bytes(process.value("comm")?)?);
    Ok(Input::Event(Event { ts, job: JOB, pid, tid, uid, comm, what }))
}

fn process_event(action: ProcessAction, object: &Members<'_>, place: &Place<'_>) -> Read<What> {
    match action {
        ProcessAction::Fork => Ok(What::Fork {
            pid: object.small("pid")?,
            ppid: object.small("ppid")?,
            start: object.number("start")?,
        }),
        ProcessAction::Exit => Ok(What::Exit { code: object.small("code")? }),
        ProcessAction::Exec => {
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
    }
}

/// Who said what stands in a guard record.
enum Said {
    ByKernel(Guard),
    ByDaemon(Input),
}

fn guard(action: GuardAction, ts: UnixNanos, object: &Members<'_>) -> Read<Said> {
    let job = JOB;
    let notice = |notice| Input::Notice { job, ts, notice };
    Ok(match action {
        GuardAction::Start => return Err("a second opening record"),
        GuardAction::Canary => Said::ByDaemon(Input::Canary {
            job,
            ts,
            seen: object.list("seen", class)?,
            missing: object.list("missing", class)?,
        }),
        GuardAction::Launch => Said::ByDaemon(Input::Launched { job, ts }),
        GuardAction::Gap => Said::ByDaemon(Input::Gap {
            job,
            ts,
            stage: object.word("stage", Stage::from_name)?,
            lost: lost(object)?.into_iter().collect(),
        }),
        GuardAction::Leftovers => {
            Said::ByDaemon(notice(Notice::Leftovers { killed: object.small("killed")? }))
        }
        GuardAction::Stopped => {
            Said::ByDaemon(notice(Notice::Stopped { why: object.string("why")? }))
        }
        GuardAction::CanaryFailed => {
            Said::ByDaemon(notice(Notice::CanaryFailed { why: object.string("why")? }))
        }
        GuardAction::Verdict => Said::ByDaemon(Input::Finished { job, ts, exit: exit(object)? }),
        GuardAction::IoUring => Said::ByKernel(Guard::IoUring),
        GuardAction::Socket => Said::ByKernel(Guard::Socket {
            family: object.small("family")?,
            kind: object.small("type")?,
            protocol: object.small("protocol")?,
        }),
        GuardAction::CompatSyscall => {
            Said::ByKernel(Guard::CompatSyscall { number: object.small("number")? })
        }
        GuardAction::Entered => {
            let env = match object.value("env")? {
                Value::Null => None,
                _ => Some(object.list("env", bytes)?),
            };
            Said::ByKernel(Guard::Entered { process: known(object.value("entered")?)?, env })
        }
        GuardAction::Escaped => Said::ByKernel(Guard::Escaped { pid: object.small("pid")? }),
        GuardAction::Unknown => {
            Said::ByKernel(Guard::Unknown { kind: object.small("kind")?, op: object.small("op")? })
        }
    })
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
