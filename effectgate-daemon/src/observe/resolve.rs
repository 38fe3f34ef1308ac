//! What a process named, found out after the fact, where nothing but the
//! arguments of its system call are known.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs, io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::MetadataExt,
    },
    path::{Path, PathBuf},
};

use effectgate_common::wire::Header;
use effectgate_core::input::{Bytes, FileObject, JobId, Root, RootMatch};

use super::proc;

/// Resolves names as this process sees them.
#[derive(Debug, Default)]
pub struct Resolver {
    jobs: HashMap<JobId, Ground>,
}

/// What is known of a job.
#[derive(Debug)]
struct Ground {
    roots: Vec<Root>,
    /// One of its threads was seen in another mount namespace or root directory.
    strayed: bool,
}

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
    pub fn start(&mut self, job: JobId, roots: Vec<Root>) {
        self.jobs.insert(job, Ground { roots, strayed: false });
    }

    pub fn finish(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// The file that `name` says, from the directory `base`, to the thread of
    /// this record. Symbolic links are followed as they stand now. Where the
    /// thread looks names up in another mount namespace or below another root
    /// directory, this process cannot tell: the file's root is unknown, and
    /// its path no more than what was said.
    ///
    /// `detached`: the base directory is in no mount of the host's tree.
    pub fn resolve(
        &mut self,
        header: &Header,
        base: &[u8],
        name: &[u8],
        follows: bool,
        detached: bool,
    ) -> FileObject {
        let base = Path::new(OsStr::from_bytes(base));
        // `/` is the base as well: the kernel side says which root it is.
        let slashes = name.iter().take_while(|byte| **byte == b'/').count();
        let said = base.join(OsStr::from_bytes(&name[slashes..]));
        if detached || !self.sees_alike(header) {
            let path = lexical(&said);
            let root = RootMatch::Unknown;
            return FileObject { path, path_cut: true, root, ..FileObject::default() };
        }
        let mut file =
            FileObject { path: real(&said, follows, header.pid), ..FileObject::default() };
        let ground = self.jobs.get(&header.job);
        file.root = below(ground.map_or(&[], |ground| &ground.roots), &file.path);
        if let Ok(meta) = fs::symlink_metadata(OsStr::from_bytes(&file.path)) {
            proc::identify(&mut file, &meta);
        }
        file
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

/// The nearest of `roots` that holds `path`.
fn below(roots: &[Root], path: &[u8]) -> RootMatch {
    let inside = |root: &&Root| {
        path.strip_prefix(&root.path[..]).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(b"/") || root.path.ends_with(b"/")
        })
    };
    match roots.iter().filter(inside).max_by_key(|root| root.path.len()) {
        Some(root) => RootMatch::Below(root.id),
        None => RootMatch::Outside,
    }
}

/// `path` without links and `..`: by the file system where it still answers,
/// by the text alone where not.
fn real(path: &Path, follows: bool, pid: u32) -> Bytes {
    // This process's own self is another one.
    let path = &match path.strip_prefix("/proc/self") {
        Ok(rest) => Path::new("/proc").join(pid.to_string()).join(rest),
        Err(_) => path.to_owned(),
    };
    if follows && let Ok(whole) = fs::canonicalize(path) {
        return whole.into_os_string().into_vec();
    }
    if let (Some(parent), Some(name)) = (path.parent(), path.file_name())
        && let Ok(parent) = fs::canonicalize(parent)
    {
        return parent.join(name).into_os_string().into_vec();
    }
    lexical(path)
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
        resolver.start(JOB, vec![Root { id: 4, path: path.clone(), entry: Some(0) }]);
        (resolver, dir, path)
    }

    fn header(tid: u32) -> Header {
        Header { job: JOB, pid: tid, tid, ..Header::default() }
    }

    #[test]
    fn what_sees_alike_is_resolved() {
        let (mut resolver, _dir, base) = job();
        let file = resolver.resolve(&header(std::process::id()), &base, b"./file", true, false);
        assert_eq!((file.root, file.path_cut), (RootMatch::Below(4), false));
        assert!(file.ino != 0 && file.path.ends_with(b"/file"));
        let file = resolver.resolve(&header(std::process::id()), &base, b"..", true, false);
        assert_eq!(file.root, RootMatch::Outside);
    }

    #[test]
    fn what_sees_otherwise_is_unknown() {
        let (mut resolver, _dir, base) = job();
        let file = resolver.resolve(&header(NOBODY), &base, b"file", true, false);
        assert_eq!(file.root, RootMatch::Below(4), "gone, and nobody strayed");
        let file = resolver.resolve(&header(NOBODY), &base, b"a/../file", true, true);
        assert_eq!((file.root, file.path_cut), (RootMatch::Unknown, true));
        assert!(file.path.ends_with(b"/file") && file.ino == 0);
        resolver.jobs.get_mut(&JOB).expect("started").strayed = true;
        let file = resolver.resolve(&header(NOBODY), &base, b"file", true, false);
        assert_eq!(file.root, RootMatch::Unknown, "gone, and some strayed");
        let own = resolver.resolve(&header(std::process::id()), &base, b"file", true, false);
        assert_eq!(own.root, RootMatch::Below(4), "seen to see alike");
    }

    /// Another view is a privilege; where it is not to be had, there is
    /// nothing to notice.
    #[test]
    fn another_view_is_noticed() {
        for flags in [libc::CLONE_FS, libc::CLONE_NEWNS] {
            let (mut resolver, dir, base) = job();
            let mut look = |tid| resolver.resolve(&header(tid), &base, b"file", true, false).root;
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
