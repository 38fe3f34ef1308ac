//! What a process named, found out after the fact, where nothing but the
//! arguments of its system call are known.
//!
//! By then the names may lead elsewhere. So the directory that a name started
//! from is the kernel's word; the links that the job makes and removes are kept
//! in the order of its calls, not as they stand when somebody looks; and what
//! leads through another process's view is not known at all.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use effectgate_common::wire::Header;
use effectgate_core::input::{Bytes, FileObject, FileOp, JobId, Root, RootMatch, UnixNanos};

use super::{links::Links, proc::mount_of};

/// Resolves names as this process sees them.
#[derive(Debug, Default)]
pub struct Resolver {
    jobs: HashMap<JobId, Ground>,
}

/// What is known of a job.
#[derive(Debug, Default)]
struct Ground {
    /// By path.
    roots: HashMap<Bytes, u32>,
    /// The mounts that its roots lie on; what is mounted later is not part of them.
    mounts: HashSet<u64>,
    /// The links that the job made.
    links: Links,
    /// One of its threads was seen in another mount namespace or root directory.
    strayed: bool,
    /// What is mounted where changed since its roots were looked up.
    remounted: bool,
}

/// Symbolic links followed in one name (`MAXSYMLINKS`, include/linux/namei.h).
const LINKS_MAX: usize = 40;
/// File times come from a clock that ticks, up to 10 ms late (`CONFIG_HZ=100`).
const TICK: u64 = 10_000_000;

/// Where a thread looks names up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct View {
    /// `mnt:[…]`
    mounts: PathBuf,
    /// Device and inode of its root directory.
    root: (u64, u64),
}

impl View {
    /// The view of a thread; an error when it is gone.
    fn of(thread: &str) -> io::Result<View> {
        let root = fs::metadata(format!("/proc/{thread}/root"))?;
        Ok(View {
            mounts: fs::read_link(format!("/proc/{thread}/ns/mnt"))?,
            root: (root.dev(), root.ino()),
        })
    }
}

impl Resolver {
    /// `links`: what lies below the roots already ([`super::links::below`]).
    pub fn start(&mut self, job: JobId, roots: Vec<Root>, links: Vec<(Bytes, Bytes)>) {
        let mounts = roots.iter().filter_map(|root| mount_of(root.path.as_slice())).collect();
        let roots = roots.into_iter().map(|root| (root.path, root.id)).collect();
        let links = Links::with(links);
        self.jobs.insert(job, Ground { roots, mounts, links, ..Ground::default() });
    }

    pub fn finish(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// Takes note of what an effect does to the links that names lead through.
    /// `target`: what a new symbolic link says.
    pub fn note(
        &mut self,
        job: JobId,
        op: FileOp,
        path: &[u8],
        other: Option<&FileObject>,
        target: &[u8],
    ) {
        let Some(ground) = self.jobs.get_mut(&job) else { return };
        let links = &mut ground.links;
        let whole = match (op, other) {
            (FileOp::Symlink, _) => links.make(path, target),
            (FileOp::Rename, Some(other)) => links.rename(path, &other.path),
            (FileOp::Link, Some(other)) => links.link(path, &other.path),
            (FileOp::Unlink | FileOp::Rmdir | FileOp::Mkdir | FileOp::Create, _) => {
                links.remove(path);
                true
            }
            _ => true,
        };
        // Too many to remember: from now on nothing is known for sure.
        ground.strayed |= !whole;
    }

    /// The same for two names that changed places.
    pub fn note_exchange(&mut self, job: JobId, one: &[u8], other: &[u8]) {
        let Some(ground) = self.jobs.get_mut(&job) else { return };
        ground.strayed |= !ground.links.exchange(one, other);
    }

    /// A thread of the job went where names lead elsewhere, or changed what is
    /// mounted where: after that, what it named is not known.
    pub fn moved(&mut self, job: JobId, mounts: bool) {
        let Some(ground) = self.jobs.get_mut(&job) else { return };
        ground.strayed = true;
        ground.remounted |= mounts;
    }

    /// The path that `name` says, from the directory `base`, to the thread of
    /// this record at `ts`, and its root. Where that cannot be told, its root is
    /// unknown, and its path no more than what was said: when the thread looks
    /// names up in another mount namespace or below another root directory, or
    /// the name leads through a process's own links in `/proc`.
    pub fn resolve(
        &mut self,
        header: &Header,
        ts: UnixNanos,
        base: &FileObject,
        name: &[u8],
        follows: bool,
    ) -> FileObject {
        let still = self.jobs.get(&header.job).is_none_or(|job| !job.remounted);
        let alike = !base.path_cut && still && self.sees_alike(header);
        let nowhere = Ground::default();
        let ground = self.jobs.get(&header.job).unwrap_or(&nowhere);
        let walked = alike.then(|| Walk { ground, header, ts }.walk(&base.path, name, follows));
        let Some((path, descends)) = walked.flatten() else {
            // `/` is the base as well: the kernel side says which root it is.
            let slashes = name.iter().take_while(|byte| **byte == b'/').count();
            let said = Path::new(OsStr::from_bytes(&base.path));
            let path = lexical(&said.join(OsStr::from_bytes(&name[slashes..])));
            let root = RootMatch::Unknown;
            return FileObject { path, path_cut: true, root, ..FileObject::default() };
        };
        let root = ground.place(base, &path, descends);
        FileObject { path, root, ..FileObject::default() }
    }

    /// Whether the thread looks names up where this process does. Asked each
    /// time: it can change between two system calls. For a thread
    /// that is gone its process stands in; one that is gone as well is taken to
    /// have seen alike unless its job is known to stray.
    fn sees_alike(&mut self, header: &Header) -> bool {
        let view = View::of(&header.tid.to_string()).or_else(|_| View::of(&header.pid.to_string()));
        let alike = match (View::of("thread-self"), view) {
            (Ok(own), Ok(view)) => own == view,
            (Err(_), _) => false,
            (_, Err(_)) => return self.jobs.get(&header.job).is_none_or(|job| !job.strayed),
        };
        if !alike && let Some(job) = self.jobs.get_mut(&header.job) {
            job.strayed = true;
        }
        alike
    }
}

impl Ground {
    /// Where a path lies. The kernel's word on the directory that the name
    /// started from holds for what lies below it: a mount can make the text of
    /// a path say otherwise.
    fn place(&self, base: &FileObject, path: &[u8], descends: bool) -> RootMatch {
        if descends && base.root != self.below(&base.path) {
            return base.root;
        }
        let parent = Path::new(OsStr::from_bytes(path)).parent().unwrap_or(Path::new("/"));
        match (self.below(path), mount_of(parent.as_os_str().as_bytes())) {
            (RootMatch::Below(_), Some(mount)) if !self.mounts.contains(&mount) => {
                RootMatch::Outside
            }
            (found, _) => found,
        }
    }

    /// The nearest root that holds `path`, by its text.
    fn below(&self, path: &[u8]) -> RootMatch {
        let above = Path::new(OsStr::from_bytes(path)).ancestors();
        let mut ids = above.filter_map(|above| self.roots.get(above.as_os_str().as_bytes()));
        ids.next().map_or(RootMatch::Outside, |id| RootMatch::Below(*id))
    }
}

/// One name on its way to a file.
struct Walk<'a> {
    ground: &'a Ground,
    header: &'a Header,
    ts: UnixNanos,
}

/// What a component turns out to be.
enum Step {
    Plain,
    Link(Bytes),
    /// Stands for these components.
    Instead(Vec<Bytes>),
    Unknown,
}

impl Walk<'_> {
    /// The path without links and `..`, and whether it never left `base`.
    fn walk(&self, base: &[u8], name: &[u8], follows: bool) -> Option<(Bytes, bool)> {
        let mut path = components(base);
        let depth = path.len();
        let mut descends = true;
        let mut todo: VecDeque<Bytes> = components(name).into();
        let mut links = 0;
        while let Some(component) = todo.pop_front() {
            if component == b".." {
                descends &= path.len() > depth;
                path.pop();
                continue;
            }
            path.push(component);
            if todo.is_empty() && !follows {
                break;
            }
            match self.step(&path) {
                Step::Plain => {}
                Step::Unknown => return None,
                Step::Instead(others) => {
                    path.pop();
                    path.extend(others);
                    descends = false;
                }
                Step::Link(target) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return None;
                    }
                    path.pop();
                    if target.starts_with(b"/") {
                        path.clear();
                        descends = false;
                    }
                    for part in components(&target).into_iter().rev() {
                        todo.push_front(part);
                    }
                }
            }
        }
        Some((join(&path), descends))
    }

    fn step(&self, path: &[Bytes]) -> Step {
        if let [proc, rest @ ..] = path
            && proc == b"proc"
        {
            return self.step_in_proc(rest);
        }
        let whole = join(path);
        match self.ground.links.get(&whole) {
            Some(Some(target)) => return Step::Link(target.to_vec()),
            Some(None) => {}
            None if self.newer(&whole) => return Step::Plain,
            None => {}
        }
        match fs::read_link(OsStr::from_bytes(&whole)) {
            Ok(target) => Step::Link(target.into_os_string().into_vec()),
            Err(_) => Step::Plain,
        }
    }

    /// `self` is another one for this process, and what a process's own links
    /// lead to can be asked of the process only.
    fn step_in_proc(&self, rest: &[Bytes]) -> Step {
        let Header { pid, tid, .. } = self.header;
        let text = |number: &u32| number.to_string().into_bytes();
        let parts: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
        match parts[..] {
            [b"self"] => Step::Instead(vec![text(pid)]),
            [b"thread-self"] => Step::Instead(vec![text(pid), b"task".to_vec(), text(tid)]),
            [_, b"cwd" | b"root" | b"exe"]
            | [_, b"task", _, b"cwd" | b"root" | b"exe"]
            | [_, b"fd" | b"map_files" | b"ns", _]
            | [_, b"task", _, b"fd" | b"map_files" | b"ns", _] => Step::Unknown,
            _ => Step::Plain,
        }
    }

    /// Whether what lies at `path` was put there after the call: then it is not
    /// what the call met. Links that the job made before are known.
    fn newer(&self, path: &[u8]) -> bool {
        fs::symlink_metadata(OsStr::from_bytes(path)).is_ok_and(|meta| {
            let changed = meta.ctime() as u64 * 1_000_000_000 + meta.ctime_nsec() as u64;
            changed.saturating_add(TICK) > self.ts
        })
    }
}

fn components(path: &[u8]) -> Vec<Bytes> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(<[u8]>::to_vec)
        .collect()
}

fn join(path: &[Bytes]) -> Bytes {
    if path.is_empty() {
        b"/".to_vec()
    } else {
        path.iter().fold(Bytes::new(), |mut whole, part| {
            whole.push(b'/');
            whole.extend_from_slice(part);
            whole
        })
    }
}

fn lexical(path: &Path) -> Bytes {
    use std::path::Component;
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean.into_os_string().into_vec()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use effectgate_core::policy::Rights;

    use super::*;

    const JOB: JobId = 1;
    /// `pid_max` is at most 2^22.
    const NOBODY: u32 = 1 << 23;

    /// A job whose only root is a directory with a file in it.
    fn job() -> (Resolver, tempfile::TempDir, Bytes) {
        let dir = tempfile::tempdir().expect("there is room");
        fs::write(dir.path().join("file"), "").expect("it is ours");
        let path = fs::canonicalize(dir.path()).expect("it is there").into_os_string().into_vec();
        let mut resolver = Resolver::default();
        let root = Root { id: 4, path: path.clone(), entry: Some(0), rights: Rights::WRITE };
        resolver.start(JOB, vec![root], Vec::new());
        (resolver, dir, path)
    }

    fn header(tid: u32) -> Header {
        Header { job: JOB, pid: tid, tid, ..Header::default() }
    }

    fn directory(path: &[u8], root: RootMatch) -> FileObject {
        FileObject { path: path.to_vec(), root, ..FileObject::default() }
    }

    fn look(resolver: &mut Resolver, tid: u32, base: &[u8], name: &[u8]) -> FileObject {
        let base = directory(base, RootMatch::Below(4));
        resolver.resolve(&header(tid), u64::MAX, &base, name, true)
    }

    fn detached(resolver: &mut Resolver, base: &[u8]) -> FileObject {
        let base = FileObject { path_cut: true, ..directory(base, RootMatch::Below(4)) };
        resolver.resolve(&header(NOBODY), u64::MAX, &base, b"a/../file", true)
    }

    #[test]
    fn the_kernels_word_on_the_directory_holds_below_it() {
        let (mut resolver, _dir, base) = job();
        let own = header(std::process::id());
        let mut look = |root, name: &[u8]| {
            resolver.resolve(&own, u64::MAX, &directory(&base, root), name, false).root
        };
        // Something else is mounted where the root's text is.
        assert_eq!(look(RootMatch::Outside, b"file"), RootMatch::Outside);
        assert_eq!(look(RootMatch::Outside, b"d/../file"), RootMatch::Outside);
        assert_eq!(look(RootMatch::Below(4), b"file"), RootMatch::Below(4));
        assert_eq!(look(RootMatch::Below(4), b"d/../../x"), RootMatch::Outside);
    }

    #[test]
    fn links_lead_where_they_led_at_the_time() {
        let (mut resolver, dir, base) = job();
        let own = header(std::process::id());
        let at = |name: &str| [&base[..], b"/", name.as_bytes()].concat();
        let place = |resolver: &mut Resolver, name: &[u8]| {
            let base = directory(&base, RootMatch::Below(4));
            resolver.resolve(&own, u64::MAX, &base, name, false).path
        };
        // Made and removed by the job; by now a directory stands there.
        resolver.note(JOB, FileOp::Symlink, &at("l"), None, b"/usr/share");
        fs::create_dir(dir.path().join("l")).expect("it is ours");
        assert_eq!(place(&mut resolver, b"l/victim"), b"/usr/share/victim");
        assert_eq!(place(&mut resolver, b"l"), at("l"), "the link itself");
        let moved = directory(&at("m"), RootMatch::Below(4));
        resolver.note(JOB, FileOp::Rename, &at("l"), Some(&moved), b"");
        assert_eq!(place(&mut resolver, b"m/victim"), b"/usr/share/victim");
        assert_eq!(place(&mut resolver, b"l/own"), at("l/own"));
        resolver.note(JOB, FileOp::Unlink, &at("m"), None, b"");
        assert_eq!(place(&mut resolver, b"m/own"), at("m/own"));
        resolver.note(JOB, FileOp::Symlink, &at("up"), None, b"..");
        assert_eq!(place(&mut resolver, b"up/up/x").last(), Some(&b'x'));
    }

    #[test]
    fn a_link_that_came_later_was_not_met() {
        let (mut resolver, dir, base) = job();
        std::os::unix::fs::symlink("/usr/share", dir.path().join("d")).expect("it is ours");
        let mut place = |ts| {
            let base = directory(&base, RootMatch::Below(4));
            resolver.resolve(&header(std::process::id()), ts, &base, b"d/x", false).path
        };
        assert_eq!(place(1), [&base[..], b"/d/x"].concat());
        assert_eq!(place(u64::MAX), b"/usr/share/x");
    }

    #[test]
    fn proc_is_the_process_own_or_unknown() {
        let (mut resolver, ..) = job();
        let own = header(std::process::id());
        let mut place = |name: &[u8]| {
            let base = directory(b"/", RootMatch::Outside);
            let file = resolver.resolve(&own, u64::MAX, &base, name, true);
            (file.root, String::from_utf8(file.path).expect("UTF-8"))
        };
        let pid = std::process::id();
        assert_eq!(place(b"/proc/self/comm"), (RootMatch::Outside, format!("/proc/{pid}/comm")));
        for name in ["self/cwd/x", "self/fd/3", "thread-self/root/x", "1/exe", "self/task/1/fd/0"] {
            assert_eq!(place(format!("/proc/{name}").as_bytes()).0, RootMatch::Unknown, "{name}");
        }
    }

    #[test]
    fn what_sees_alike_is_resolved() {
        let (mut resolver, _dir, base) = job();
        let file = look(&mut resolver, std::process::id(), &base, b"./file");
        assert_eq!((file.root, file.path_cut), (RootMatch::Below(4), false));
        assert!(file.path.ends_with(b"/file"));
        let file = look(&mut resolver, std::process::id(), &base, b"..");
        assert_eq!(file.root, RootMatch::Outside);
    }

    #[test]
    fn what_sees_otherwise_is_unknown() {
        let (mut resolver, _dir, base) = job();
        let file = look(&mut resolver, NOBODY, &base, b"file");
        assert_eq!(file.root, RootMatch::Below(4), "gone, and nobody strayed");
        let file = detached(&mut resolver, &base);
        assert_eq!((file.root, file.path_cut), (RootMatch::Unknown, true));
        assert!(file.path.ends_with(b"/file"));
        resolver.jobs.get_mut(&JOB).expect("started").strayed = true;
        let file = look(&mut resolver, NOBODY, &base, b"file");
        assert_eq!(file.root, RootMatch::Unknown, "gone, and some strayed");
        let own = look(&mut resolver, std::process::id(), &base, b"file");
        assert_eq!(own.root, RootMatch::Below(4), "seen to see alike");
    }

    /// Another view is a privilege; where it is not to be had, there is
    /// nothing to notice.
    #[test]
    fn another_view_is_noticed() {
        for flags in [libc::CLONE_FS, libc::CLONE_NEWNS] {
            let (mut resolver, dir, base) = job();
            let mut look = |tid| look(&mut resolver, tid, &base, b"file").root;
            let root = dir.path();
            std::thread::scope(|scope| {
                let (say, hear) = mpsc::channel();
                let (end, wait) = mpsc::channel::<()>();
                scope.spawn(move || {
                    let tid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
                    say.send((tid, true)).expect("heard");
                    wait.recv().expect("told to go on");
                    // SAFETY: of this thread alone, which ends below.
                    let mut apart = unsafe { libc::unshare(flags) } == 0;
                    if flags == libc::CLONE_FS {
                        apart &= std::os::unix::fs::chroot(root).is_ok();
                    }
                    say.send((tid, apart)).expect("heard");
                    wait.recv().expect("told to end");
                });
                let (tid, _) = hear.recv().expect("it lives");
                assert_eq!(look(tid), RootMatch::Below(4), "not yet");
                end.send(()).expect("it waits");
                if hear.recv().expect("it lives").1 {
                    assert_eq!(look(tid), RootMatch::Unknown, "{flags:#x}");
                    assert_eq!(look(NOBODY), RootMatch::Unknown, "{flags:#x}");
                }
                end.send(()).expect("it waits");
            });
        }
    }

    #[test]
    fn paths_by_their_text() {
        for (path, clean) in [("/a/./b/../c", "/a/c"), ("/../x", "/x"), ("a//b/", "/a/b")] {
            assert_eq!(lexical(Path::new(path)), clean.as_bytes());
        }
    }
}
