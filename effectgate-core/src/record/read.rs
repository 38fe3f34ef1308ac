//! Records back into the inputs they came from.

mod members;
mod opening;

use serde_json::Value;

pub(crate) use members::Read;
use members::{Members, address, bytes, class, device, known, protocol};
pub(crate) use opening::{OpenRoot, Opening, opening};

use crate::input::{
    Bytes, Class, Coverage, Decided, Device, Event, Exec, Exit, FileObject, Guard, Input, JobId,
    Namespace, NetOp, Notice, Reach, RootMatch, Stage, UnixNanos, UnixPeer, What,
};
use crate::judge::Decision;
use crate::record::objects::{OWN, UNIX};
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
        Action::Net(op) if object.str("family")? == UNIX => What::Unix {
            op,
            peer: unix_peer(&object, place)?,
            own: object.value("own")?.as_bool().ok_or("own")?,
        },
        Action::Net(op) => What::Net {
            op,
            address: address(object.value("address")?)?,
            port: object.small("port")?,
            protocol: protocol(object.str("protocol")?)?,
            own: match object.get("listener") {
                Some(listener) if listener == OWN => true,
                Some(_) => return Err("listener"),
                // Before the kernel said whose listener it is, the rule did.
                None => op != NetOp::Bind && all.members("rule")?.str("name")? == "loopback",
            },
            namespace: match object.get("namespace") {
                None => Namespace::Own,
                Some(_) => object.word("namespace", Namespace::from_name)?,
            },
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
        Action::Guard(action) => match guard(action, ts, &object, place)? {
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
    let kernel = decided(all)?;
    Ok(Input::Event(Event { ts, job: JOB, pid, tid, uid, comm, kernel, what }))
}

/// What the kernel programs came to. Where they agreed, it is as if nothing
/// had been compared.
fn decided(all: &Members<'_>) -> Read<Option<Decided>> {
    if all.get("kernel").is_some() {
        return all.word("kernel", Decided::from_name).map(Some);
    }
    Ok(match all.word("decision", Decision::from_name)? {
        Decision::Denied => Some(Decided::Denied),
        Decision::Killed => Some(Decided::Killed),
        Decision::Allowed | Decision::Recorded => None,
    })
}

fn unix_peer(object: &Members<'_>, place: &Place<'_>) -> Read<UnixPeer> {
    if let Some(name) = object.get("abstract") {
        return bytes(name).map(UnixPeer::Abstract);
    }
    Ok(match object.get("path") {
        Some(_) => UnixPeer::File(file(object, place)?),
        None => UnixPeer::Unnamed,
    })
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

fn guard(
    action: GuardAction,
    ts: UnixNanos,
    object: &Members<'_>,
    place: &Place<'_>,
) -> Read<Said> {
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
            lost: counts(object, "lost")?,
        }),
        GuardAction::Leftovers => {
            Said::ByDaemon(notice(Notice::Leftovers { killed: object.small("killed")? }))
        }
        GuardAction::Stopped => {
            Said::ByDaemon(notice(Notice::Stopped { why: object.string("why")? }))
        }
        GuardAction::Killed => Said::ByDaemon(notice(Notice::Killed {
            pid: match object.value("pid")? {
                Value::Null => None,
                _ => Some(object.small("pid")?),
            },
            violation: object.number("violation")?,
        })),
        GuardAction::CanaryFailed => {
            Said::ByDaemon(notice(Notice::CanaryFailed { why: object.string("why")? }))
        }
        GuardAction::Repeated => {
            Said::ByDaemon(notice(Notice::Repeated { counts: counts(object, "counts")? }))
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
            let env = match object.get("env") {
                // What a guest held was not asked.
                None => Some(Vec::new()),
                Some(Value::Null) => None,
                Some(_) => Some(object.list("env", bytes)?),
            };
            Said::ByKernel(Guard::Entered { process: known(object.value("entered")?)?, env })
        }
        GuardAction::Escaped => Said::ByKernel(Guard::Escaped { pid: object.small("pid")? }),
        GuardAction::Reached => Said::ByKernel(Guard::Reached {
            reach: object.word("reach", Reach::from_name)?,
            detail: object.small("detail")?,
            pid: if object.get("pid").is_some() { object.small("pid")? } else { 0 },
            object: object.get("path").map(|_| file(object, place)).transpose()?,
        }),
        GuardAction::Unknown => {
            Said::ByKernel(Guard::Unknown { kind: object.small("kind")?, op: object.small("op")? })
        }
    })
}

fn counts(object: &Members<'_>, key: &'static str) -> Read<Vec<(Class, u64)>> {
    let counts = object.value(key)?.as_object().ok_or(key)?;
    counts
        .iter()
        .map(|(name, count)| {
            Ok((Class::from_name(name).ok_or(key)?, read_number(count).ok_or(key)?))
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
        twin: object.twin()?,
        mode: if object.get("mode").is_some() { object.small("mode")? } else { 0 },
        rdev: optional_device("rdev")?,
        magic: if object.get("magic").is_some() { object.number("magic")? } else { 0 },
        internal: object.flag("internal")?,
        unlinked: object.flag("unlinked")?,
        own_proc: object.flag("own_proc")?,
    };
    file.root = place(&file, root_path(object)?.as_deref())?;
    Ok(file)
}

fn root_path(object: &Members<'_>) -> Read<Option<Bytes>> {
    let root = object.value("root")?;
    if root.is_null() { Ok(None) } else { bytes(root).map(Some) }
}
