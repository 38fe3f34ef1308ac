//! From records to events: puts the strings of an exec together, has resolved
//! what is known only by arguments, and turns boot time into Unix time.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    rc::Rc,
};

use effectgate_common::wire::{
    self, ExecBody, FileBody, GuardBody, Header, NetBody, UnixBody, decision, namespace, obj, op,
    reach,
};
use effectgate_core::input::{
    Bytes, Coverage, Decided, Device, Event, Exec, FileId, FileObject, FileOp, Guard, JobId, Known,
    Namespace, NetOp, Reach, Root, RootMatch, UnixNanos, UnixPeer, What,
};

use super::{
    decode::{Body, Record, Tail, path, until_nul},
    identity::{Identities, Listed, Registrar},
    mounts::Mounts,
    proc,
    resolve::Resolver,
    strings::Strings,
};

const AF_INET: u32 = 2;
const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// `include/uapi/linux/fs.h`
const RENAME_EXCHANGE: u32 = 2;

/// Execs that may wait for their strings at once: these follow within the
/// same program run, so more than one for each processor means losses.
const PENDING: usize = 1024;

/// Turns records into events.
#[derive(Debug, Default)]
pub struct Attributor {
    /// Unix time minus boot time, nanoseconds.
    offset: u64,
    /// Execs whose strings have not all come, by thread.
    pending: HashMap<u32, PendingExec>,
    resolver: Resolver,
    identities: Identities,
    mounts: Mounts,
}

#[derive(Debug)]
struct PendingExec {
    event: Event,
    argv: Strings,
    envp: Strings,
}

impl Attributor {
    /// `offset`: Unix time minus boot time, nanoseconds.
    #[must_use]
    pub fn new(offset: u64) -> Attributor {
        Attributor { offset, ..Attributor::default() }
    }

    /// Has files that are known only by arguments told from others.
    #[must_use]
    pub fn asking(self, registrar: Rc<Registrar>) -> Attributor {
        Attributor { identities: Identities::new(Some(registrar)), ..self }
    }

    /// Unix time minus boot time, nanoseconds.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Unix time of a moment in boot time.
    #[must_use]
    pub fn time(&self, boot: u64) -> UnixNanos {
        boot.wrapping_add(self.offset)
    }

    /// The files that mean something to the job; its roots and the links below
    /// them, for what is known only by arguments.
    pub fn start(
        &mut self,
        job: JobId,
        listed: Listed,
        roots: Vec<Root>,
        links: Vec<(Bytes, Bytes)>,
    ) {
        self.identities.start(job, listed);
        self.resolver.start(job, roots, links);
    }

    /// Forgets a job.
    pub fn finish(&mut self, job: JobId) {
        self.identities.finish(job);
        self.resolver.finish(job);
        self.pending.retain(|_, pending| pending.event.job != job);
    }

    /// Gives out a job's execs whose strings will not come any more, in the
    /// order of their times.
    pub fn flush(&mut self, job: JobId, out: &mut Vec<Event>) {
        let of_job = |(_, pending): &(&u32, &PendingExec)| pending.event.job == job;
        let waiting = self.pending.iter().filter(of_job);
        let mut tids: Vec<_> = waiting.map(|(tid, exec)| (exec.event.ts, *tid)).collect();
        tids.sort_unstable();
        for (_, tid) in tids {
            self.give(tid, out);
        }
    }

    /// Takes one record; puts the events that are complete into `out`.
    pub fn take(&mut self, record: &Record<'_>, out: &mut Vec<Event>) {
        let tid = record.header.tid;
        match record.body {
            Body::Argv(args) | Body::Envp(args) => {
                let Some(pending) = self.pending.get_mut(&tid) else { return };
                if matches!(record.body, Body::Argv(_)) {
                    pending.argv.take(args, record.tail);
                } else {
                    pending.envp.take(args, record.tail);
                }
                if pending.argv.missing + pending.envp.missing == 0 {
                    self.give(tid, out);
                }
                return;
            }
            // The strings follow their exec at once; anything else from this
            // thread means that what is missing was lost.
            _ => self.give(tid, out),
        }
        let header = record.header;
        if let Body::Guard(guard) = record.body
            && header.op == op::VIEW
        {
            self.resolver.moved(header.job, guard.value != 0);
            return;
        }
        let what = match record.body {
            Body::Fork(fork) => What::Fork { pid: fork.pid, ppid: fork.ppid, start: fork.start },
            Body::Exit(exit) => What::Exit { code: exit.code },
            Body::File(file) => self.file(&header, &file, record.tail),
            Body::Net(net) => network(&header, &net),
            Body::Unix(unix) => self.unix(&header, &unix, record.tail),
            Body::Guard(guard) => What::Guard(self.guard(&header, &guard, record.tail)),
            Body::Exec(exec) => {
                self.exec(&header, &exec, record.tail, out);
                return;
            }
            Body::Argv(_) | Body::Envp(_) | Body::Unknown => {
                What::Guard(Guard::Unknown { kind: header.kind, op: header.op })
            }
        };
        out.push(self.event(&header, what));
    }

    fn event(&self, header: &Header, what: What) -> Event {
        Event {
            ts: self.time(header.ts),
            job: header.job,
            pid: header.pid,
            tid: header.tid,
            uid: header.uid,
            comm: until_nul(&header.comm).to_vec(),
            kernel: decided(header.decision),
            what,
        }
    }

    fn exec(&mut self, header: &Header, exec: &ExecBody, tail: Tail<'_>, out: &mut Vec<Event>) {
        let file = self.object(header.job, &exec.file, tail);
        let asked = tail.get(exec.filename).unwrap_or_default();
        let what = What::Exec(Exec {
            asked: proc::absolute(header.pid, asked),
            file,
            argv: Vec::new(),
            argv_complete: false,
            ppid: exec.ppid,
            start: exec.start,
        });
        if header.decision == decision::DENIED {
            // It did not start: nobody read its strings, and it holds no keys.
            out.push(self.event(header, what));
            return;
        }
        let pending = PendingExec {
            event: self.event(header, what),
            argv: Strings::expect(exec.argv_len),
            envp: Strings::expect(exec.envp_len),
        };
        let waiting = pending.argv.missing + pending.envp.missing > 0;
        if self.pending.len() >= PENDING {
            let all = self.pending.iter();
            let oldest = all.map(|(tid, exec)| (exec.event.ts, *tid)).min();
            oldest.into_iter().for_each(|(_, tid)| self.give(tid, out));
        }
        self.pending.insert(header.tid, pending);
        if !waiting {
            self.give(header.tid, out);
        }
    }

    fn give(&mut self, tid: u32, out: &mut Vec<Event>) {
        let Some(PendingExec { mut event, argv, envp }) = self.pending.remove(&tid) else { return };
        if let What::Exec(exec) = &mut event.what {
            exec.argv = argv.split().map(<[u8]>::to_vec).collect();
            exec.argv_complete = argv.complete && argv.missing == 0;
        }
        let names = envp
            .split()
            .map(|variable| variable.split(|byte| *byte == b'=').next().unwrap_or_default())
            .map(<[u8]>::to_vec)
            .collect();
        let complete = envp.complete && envp.missing == 0;
        let what = What::Env { names, complete };
        let env = Event { what, kernel: None, ..event.clone() };
        out.push(event);
        out.push(env);
    }

    fn object(&mut self, job: JobId, wire: &wire::FileObject, tail: Tail<'_>) -> FileObject {
        Files { identities: &self.identities, mounts: &mut self.mounts }.placed(job, wire, tail)
    }

    fn unix(&mut self, header: &Header, body: &UnixBody, tail: Tail<'_>) -> What {
        let op = match header.op {
            op::CONNECT => NetOp::Connect,
            op::SEND => NetOp::Send,
            op => return What::Guard(Guard::Unknown { kind: header.kind, op }),
        };
        let peer = match tail.get(body.name).unwrap_or_default() {
            _ if body.file.ino != 0 => UnixPeer::File(self.addressed(header, &body.file, tail)),
            b"" => UnixPeer::Unnamed,
            name => UnixPeer::Abstract(name.to_vec()),
        };
        What::Unix { op, peer, own: body.own != 0 }
    }

    /// The file of an address, which may be no more than what was written.
    fn addressed(
        &mut self,
        header: &Header,
        wire: &wire::FileObject,
        tail: Tail<'_>,
    ) -> FileObject {
        let file = self.object(header.job, wire, tail);
        let name = tail.get(wire.name).unwrap_or_default();
        if wire.flags & obj::ARGUMENT == 0 || name.is_empty() {
            return file;
        }
        let ts = self.time(header.ts);
        let mut file = self.resolver.resolve(header, ts, &file, name, true);
        self.identities.find(header.job, &mut file);
        file
    }

    fn guard(&mut self, header: &Header, guard: &GuardBody, tail: Tail<'_>) -> Guard {
        match header.op {
            op::IO_URING => Guard::IoUring,
            op::COMPAT_SYSCALL => Guard::CompatSyscall { number: guard.value },
            op::SOCKET => Guard::Socket {
                family: guard.detail >> 16,
                kind: guard.detail & 0xffff,
                protocol: guard.value,
            },
            op::ENTERED => {
                let process = entered(guard, tail);
                let env = proc::env_names_of(&process);
                Guard::Entered { process, env }
            }
            op::ESCAPED => Guard::Escaped { pid: guard.pid },
            op::REACHED => match reach(guard.value) {
                Some(reach) => Guard::Reached {
                    reach,
                    detail: guard.detail,
                    pid: guard.pid,
                    object: (guard.file.ino != 0)
                        .then(|| self.object(header.job, &guard.file, tail)),
                },
                None => Guard::Unknown { kind: header.kind, op: header.op },
            },
            op => Guard::Unknown { kind: header.kind, op },
        }
    }

    fn file(&mut self, header: &Header, body: &FileBody, tail: Tail<'_>) -> What {
        let op = match header.op {
            op::OPEN_READ => FileOp::OpenRead,
            op::OPEN_WRITE => FileOp::OpenWrite,
            op::CREATE => FileOp::Create,
            op::MKDIR => FileOp::Mkdir,
            op::RMDIR => FileOp::Rmdir,
            op::UNLINK => FileOp::Unlink,
            op::RENAME => FileOp::Rename,
            op::LINK => FileOp::Link,
            op::SYMLINK => FileOp::Symlink,
            op::TRUNCATE => FileOp::Truncate,
            op::CHMOD => FileOp::Chmod,
            op::CHOWN => FileOp::Chown,
            op::WRITE => FileOp::Write,
            op::SETXATTR => FileOp::Setxattr,
            op::UTIMES => FileOp::Utimes,
            op::IOCTL => FileOp::Ioctl,
            op::MAP_EXEC => FileOp::MapExec,
            op => return What::Guard(Guard::Unknown { kind: header.kind, op }),
        };
        let two = matches!(op, FileOp::Rename | FileOp::Link);
        let argument =
            body.object.flags & obj::ARGUMENT != 0 || two && body.other.flags & obj::ARGUMENT != 0;
        let follows = match op {
            FileOp::Truncate
            | FileOp::Chmod
            | FileOp::Chown
            | FileOp::Setxattr
            | FileOp::Utimes => body.f_flags & AT_SYMLINK_NOFOLLOW == 0,
            FileOp::Link => body.f_flags & AT_SYMLINK_FOLLOW != 0,
            _ => false,
        };
        let ts = self.time(header.ts);
        let mut files = Files { identities: &self.identities, mounts: &mut self.mounts };
        let mut describe = |wire: &wire::FileObject, follows: bool| {
            let file = files.placed(header.job, wire, tail);
            let name = tail.get(wire.name).unwrap_or_default();
            // With an empty name (AT_EMPTY_PATH) the descriptor's file is
            // meant, whose object is known.
            let unresolved = wire.flags & obj::ARGUMENT != 0
                && file.root != RootMatch::Unknown
                && !name.is_empty();
            if !unresolved {
                return file;
            }
            let mut file = self.resolver.resolve(header, ts, &file, name, follows);
            files.identities.find(header.job, &mut file);
            file
        };
        let object = describe(&body.object, follows);
        let other = two.then(|| describe(&body.other, false));
        if argument {
            let target = tail.get(body.other.name).unwrap_or_default();
            let exchanged = op == FileOp::Rename && body.f_flags & RENAME_EXCHANGE != 0;
            match &other {
                Some(other) if exchanged => {
                    self.resolver.note_exchange(header.job, &object.path, &other.path);
                }
                other => {
                    self.resolver.note(header.job, op, &object.path, other.as_ref(), target);
                }
            }
        }
        What::File {
            op,
            object,
            other,
            coverage: if argument { Coverage::Argument } else { Coverage::Object },
        }
    }
}

/// The kernel's word on an effect.
fn decided(decision: u32) -> Option<Decided> {
    Some(match decision {
        decision::NONE => return None,
        decision::WITHIN => Decided::Within,
        decision::OUTSIDE => Decided::Outside,
        decision::DENIED => Decided::Denied,
        decision::KILLED => Decided::Killed,
        // One that this version does not know is no word for `within`.
        _ => Decided::Unknown,
    })
}

fn reach(value: u32) -> Option<Reach> {
    Some(match value {
        reach::BPF => Reach::Bpf,
        reach::PERF => Reach::Perf,
        reach::MOUNT => Reach::Mount,
        reach::UMOUNT => Reach::Umount,
        reach::PIVOT_ROOT => Reach::PivotRoot,
        reach::CHROOT => Reach::Chroot,
        reach::LOAD => Reach::Load,
        reach::PTRACE => Reach::Ptrace,
        reach::SIGNAL => Reach::Signal,
        reach::CLONE_INTO_CGROUP => Reach::CloneIntoCgroup,
        reach::CAPABILITY => Reach::Capability,
        reach::TERMINAL => Reach::Terminal,
        reach::SQPOLL => Reach::SqPoll,
        reach::USER_NAMESPACE => Reach::UserNamespace,
        reach::KEY => Reach::Key,
        reach::IPC => Reach::Ipc,
        reach::WATCH => Reach::Watch,
        reach::IDENTITY => Reach::Identity,
        reach::MACHINE => Reach::Machine,
        reach::SOCKET => Reach::Socket,
        reach::PROCESS => Reach::Process,
        reach::OTHERS_IPC => Reach::OthersIpc,
        reach::HOLD_UP => Reach::HoldUp,
        _ => return None,
    })
}

fn entered(guard: &GuardBody, tail: Tail<'_>) -> Known {
    Known {
        pid: guard.pid,
        ppid: guard.ppid,
        start: guard.start,
        exe: path(tail.get(guard.file.path).unwrap_or_default()),
        comm: until_nul(&guard.comm).to_vec(),
    }
}

/// What it takes to know a file that the kernel programs described.
struct Files<'a> {
    identities: &'a Identities,
    mounts: &'a mut Mounts,
}

impl Files<'_> {
    fn placed(&mut self, job: JobId, wire: &wire::FileObject, tail: Tail<'_>) -> FileObject {
        let mut file = object(self.identities.of(job, wire), wire, tail);
        if wire.flags & obj::IN_FILE_SYSTEM != 0 && !file.internal && !file.path_cut {
            self.mounts.complete(&mut file);
        }
        file
    }
}

fn object(id: FileId, wire: &wire::FileObject, tail: Tail<'_>) -> FileObject {
    let components = tail.get(wire.path);
    let unknown = wire.flags & obj::UNKNOWN != 0 || components.is_none();
    FileObject {
        path: path(components.unwrap_or_default()),
        path_cut: components.is_none()
            || wire.flags & (obj::PATH_TRUNCATED | obj::PATH_UNREADABLE | obj::DETACHED) != 0
                && wire.flags & obj::INTERNAL == 0,
        root: match wire.root {
            _ if unknown => RootMatch::Unknown,
            0 => RootMatch::Outside,
            id => RootMatch::Below(id),
        },
        dev: id.dev,
        ino: id.ino,
        twin: id.twin,
        mode: wire.mode,
        rdev: device(wire.rdev),
        magic: wire.magic,
        internal: wire.flags & (obj::INTERNAL | obj::ANOTHERS) == obj::INTERNAL,
        unlinked: wire.flags & obj::UNLINKED != 0,
        own_proc: wire.flags & obj::OWN_PROC != 0,
    }
}

/// The kernel's own encoding (`include/linux/kdev_t.h`).
pub fn device(dev: u32) -> Device {
    Device { major: dev >> 20, minor: dev & 0xf_ffff }
}

fn network(header: &Header, body: &NetBody) -> What {
    let op = match header.op {
        op::CONNECT => NetOp::Connect,
        op::BIND => NetOp::Bind,
        op::SEND => NetOp::Send,
        op => return What::Guard(Guard::Unknown { kind: header.kind, op }),
    };
    let [a, b, c, d, ..] = body.addr;
    let address = if body.family == AF_INET {
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    } else {
        IpAddr::V6(Ipv6Addr::from(body.addr))
    };
    let (port, protocol, own) = (body.port as u16, body.protocol, body.own != 0);
    let namespace = match body.namespace {
        namespace::OWN => Namespace::Own,
        namespace::FOREIGN => Namespace::Foreign,
        _ => Namespace::Unknown,
    };
    What::Net { op, address, port, protocol, own, namespace }
}

#[cfg(test)]
mod tests {
    use effectgate_common::wire::{ARGS_CHUNK, ArgsBody, Span, kind};
    use effectgate_core::policy::Rights;
    use proptest::prelude::*;
    use zerocopy::{FromBytes, IntoBytes};

    use super::*;
    use crate::observe::decode::decode;

    /// A record of this kind, whose body is these bytes.
    fn record(header: Header, body: &[u8], tail: &[u8]) -> Vec<u8> {
        let len = (size_of::<Header>() + body.len() + tail.len()) as u32;
        [Header { len, ..header }.as_bytes(), body, tail].concat()
    }

    fn exec(job: JobId, tid: u32, ts: u64, argv_len: u32) -> Vec<u8> {
        let header = Header { kind: kind::EXEC, job, pid: tid, tid, ts, ..Header::default() };
        record(header, ExecBody { argv_len, ..ExecBody::default() }.as_bytes(), b"")
    }

    fn take(attributor: &mut Attributor, bytes: &[u8]) -> Vec<Event> {
        let mut out = Vec::new();
        attributor.take(&decode(bytes).expect("it is whole"), &mut out);
        out
    }

    fn argv(tid: u32, total: u32, offset: u32, bytes: &[u8]) -> Vec<u8> {
        let header = Header { kind: kind::ARGV, job: 1, pid: tid, tid, ..Header::default() };
        let span = Span { offset: 0, len: bytes.len() as u32 };
        record(header, ArgsBody { offset, total, bytes: span }.as_bytes(), bytes)
    }

    #[test]
    fn strings_come_together() {
        let mut attributor = Attributor::new(5);
        assert!(take(&mut attributor, &exec(1, 9, 2, 8)).is_empty());
        let events = take(&mut attributor, &argv(9, 8, 0, b"ls\0-l\0/\0"));
        assert_eq!(events.len(), 2, "more than was announced is not taken: {events:?}");
        let mut attributor = Attributor::new(5);
        assert!(take(&mut attributor, &exec(1, 9, 2, 6)).is_empty());
        let events = take(&mut attributor, &argv(9, 6, 0, b"ls\0-l\0"));
        let What::Exec(exec) = &events[0].what else { panic!("{events:?}") };
        assert_eq!((events[0].ts, exec.argv_complete), (7, true));
        assert_eq!(exec.argv, [b"ls", b"-l"]);
    }

    #[test]
    fn what_waits_is_given_in_time_order_and_dropped_with_its_job() {
        let mut attributor = Attributor::new(0);
        for (job, tid, ts) in [(1, 30, 3), (1, 10, 2), (1, 20, 1), (2, 40, 0)] {
            assert!(take(&mut attributor, &exec(job, tid, ts, 5)).is_empty());
        }
        let mut out = Vec::new();
        attributor.flush(1, &mut out);
        let execs = out.iter().filter(|event| matches!(event.what, What::Exec(_)));
        assert_eq!(execs.map(|event| event.ts).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(attributor.pending.len(), 1);
        attributor.finish(1);
        assert_eq!(attributor.pending.len(), 1);
        attributor.finish(2);
        assert!(attributor.pending.is_empty());
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut attributor = Attributor::new(0);
        let threads = 2 * PENDING as u32;
        let given: usize =
            (0..threads).map(|tid| take(&mut attributor, &exec(1, tid, 0, 5)).len()).sum();
        assert_eq!((attributor.pending.len(), given), (PENDING, 2 * PENDING));
        // Nor does one grow beyond what was announced.
        let mut strings = Strings::expect(ARGS_CHUNK as u32 * 3);
        let bytes = vec![7; ARGS_CHUNK];
        let chunk = record(Header { kind: kind::ARGV, ..Header::default() }, &[0; 16], &bytes);
        let tail = decode(&chunk).expect("it is whole").tail;
        for n in 0..9 {
            let span = Span { offset: 0, len: ARGS_CHUNK as u32 };
            let offset = n * ARGS_CHUNK as u32;
            strings.take(ArgsBody { offset, total: 0, bytes: span }, tail);
        }
        assert_eq!((strings.bytes.len(), strings.complete), (ARGS_CHUNK * 3, false));
    }

    /// Every kind, with a body of noise: spans, lengths and flags that lie.
    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        let head = (0..11u16, 0..72u16, 0..4u64, 0..6u32, any::<u64>());
        let small = prop_oneof![Just(0u8), Just(1), Just(32), any::<u8>()];
        let body = prop::collection::vec(small, size_of::<FileBody>());
        (head, body, prop::collection::vec(any::<u8>(), 0..64)).prop_map(
            |((kind, op, job, tid, ts), body, tail)| {
                let header = Header { kind, op, job, tid, ts, ..Header::default() };
                let size = match kind {
                    kind::FORK => size_of::<wire::ForkBody>(),
                    kind::EXEC => size_of::<ExecBody>(),
                    kind::EXIT => size_of::<wire::ExitBody>(),
                    kind::ARGV | kind::ENVP => size_of::<ArgsBody>(),
                    kind::NET => size_of::<NetBody>(),
                    kind::UNIX => size_of::<UnixBody>(),
                    kind::GUARD => size_of::<GuardBody>(),
                    _ => size_of::<FileBody>(),
                };
                record(header, &body[..size], &tail)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_bytes_panic(
            records in prop::collection::vec(
                prop_oneof![4 => any_record(), 1 => prop::collection::vec(any::<u8>(), 0..200)],
                0..40,
            ),
            offset: u64,
        ) {
            let mut attributor = Attributor::new(offset);
            let root = Root { id: 1, path: b"/srv".to_vec(), entry: None, rights: Rights::WRITE };
            attributor.start(1, Listed::default(), vec![root], Vec::new());
            let mut out = Vec::new();
            for bytes in &records {
                if let Ok(record) = decode(bytes) {
                    attributor.take(&record, &mut out);
                }
                prop_assert!(attributor.pending.len() <= PENDING);
            }
            for job in 0..4 {
                attributor.flush(job, &mut out);
                attributor.finish(job);
            }
            prop_assert!(attributor.pending.is_empty());
        }

        #[test]
        fn headers_of_noise_never_panic(bytes in prop::collection::vec(any::<u8>(), size_of::<Header>()..200)) {
            let mut header = Header::read_from_prefix(&bytes).expect("long enough").0;
            header.kind %= 11;
            let whole = record(header, &bytes[size_of::<Header>()..], b"");
            if let Ok(record) = decode(&whole) {
                Attributor::new(0).take(&record, &mut Vec::new());
            }
        }
    }
}
