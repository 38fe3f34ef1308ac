//! Every text of an input that a job can choose, in the one place that all
//! inputs pass on their way in. What judging asks of a path (is it the
//! process's own `/proc`, does it lead upwards) is asked of what is written:
//! a record that is read back is judged as it was live. Where a file stands is
//! the kernel's answer and no text.
//!
//! The operator's own words stay: the names of job and host, and the policy,
//! but for its roots.

use crate::input::{Event, Exec, FileObject, Guard, Input, Known, Notice, Started, UnixPeer, What};
use crate::redact::{argv, comm, path, path_text, text};

/// Takes the secrets out of an input.
pub fn input(input: &mut Input) {
    match input {
        Input::Started(start) => started(start),
        Input::Event(seen) => event(seen),
        Input::Notice {
            notice: Notice::Stopped { why } | Notice::CanaryFailed { why }, ..
        } => {
            *why = String::from_utf8_lossy(&text(why.as_bytes())).into_owned();
        }
        Input::Notice {
            notice:
                Notice::Leftovers { .. }
                | Notice::Killed { .. }
                | Notice::Repeated { .. }
                | Notice::Limit { .. },
            ..
        }
        | Input::Canary { .. }
        | Input::Launched { .. }
        | Input::Gap { .. }
        | Input::Finished { .. } => {}
    }
}

fn started(started: &mut Started) {
    started.argv = argv(&started.argv);
    started.cgroup = path_text(&started.cgroup);
    let roots = started.roots.iter_mut().map(|root| &mut root.path);
    let files = started.binaries.iter_mut().chain(&mut started.sockets);
    let files = files.map(|found| &mut found.path);
    let places = started.workspace.iter_mut().chain(&mut started.home).chain(&mut started.own);
    let linked = started.linked.iter_mut().map(|file| &mut file.path);
    for place in roots.chain(files).chain(places).chain(linked) {
        *place = path(place);
    }
    names(&mut started.env);
    started.processes.iter_mut().for_each(known);
}

fn event(event: &mut Event) {
    event.comm = comm(&event.comm);
    match &mut event.what {
        What::Exec(exec) => self::exec(exec),
        What::Env { names: held, .. } => names(held),
        What::File { object, other, .. } => {
            file(object);
            other.iter_mut().for_each(file);
        }
        What::Guard(Guard::Entered { process, env }) => {
            known(process);
            env.iter_mut().for_each(|held| names(held));
        }
        What::Unix { peer, .. } => match peer {
            UnixPeer::File(bound) => file(bound),
            UnixPeer::Abstract(name) => *name = path(name),
            UnixPeer::Unnamed => {}
        },
        What::Guard(Guard::Reached { object, .. }) => object.iter_mut().for_each(file),
        What::Guard(
            Guard::IoUring
            | Guard::CompatSyscall { .. }
            | Guard::Socket { .. }
            | Guard::Escaped { .. }
            | Guard::Unknown { .. },
        )
        | What::Fork { .. }
        | What::Exit { .. }
        | What::Net { .. } => {}
    }
}

fn exec(exec: &mut Exec) {
    file(&mut exec.file);
    exec.asked = path(&exec.asked);
    exec.argv = argv(&exec.argv);
}

fn file(file: &mut FileObject) {
    file.path = path(&file.path);
}

fn known(known: &mut Known) {
    known.exe = path(&known.exe);
    known.comm = comm(&known.comm);
}

fn names(names: &mut [Vec<u8>]) {
    for name in names {
        *name = text(name);
    }
}
