//! Where an attempt is played: a job's scene under a manifest, and around it
//! what the job must not reach: files, programs, servers, a process.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::manifest::Manifest;
use effectgate_tests::{Scene, gate};
use serde_json::json;

use crate::ipc::{Messages, Queue, Segment, Set};
use crate::servers::Servers;

/// The victim's descriptor of a file outside.
const VICTIM_FD: i32 = 7;
const HANDED: i32 = 20;
const CONNECTION: i32 = 21;
const TERMINAL: i32 = 22;

pub(crate) struct Stage {
    pub(crate) servers: Servers,
    pub(crate) victim: Option<Victim>,
    cgroup: Option<Cgroup>,
    segment: Option<Segment>,
    semaphores: Option<Set>,
    messages: Option<Messages>,
    queue: Option<Queue>,
    /// The daemon to be reached for; another process stands in for it.
    daemon: Option<u32>,
    /// Goes last: the others still have something in it.
    pub(crate) scene: Scene,
}

impl Stage {
    /// Makes what the words speak of.
    pub(crate) fn new(words: &str, daemon: Option<u32>) -> Stage {
        let scene = Scene::new();
        let (root, outside) = (scene.root(), scene.outside());
        // A machine that is emulated feels every copy. Another process makes it: what
        // a thread beside this one starts meanwhile would hold it open, and it
        // could not run.
        for (directory, name, word) in
            [(root.join("tools"), "trigger", ""), (outside.clone(), "program", "{program}")]
        {
            fs::create_dir_all(&directory).expect("mkdir");
            if words.contains(word) {
                let mut copy = Command::new("cp");
                copy.arg(gate::trigger()).arg(directory.join(name));
                assert!(copy.status().is_ok_and(|status| status.success()), "{copy:?}");
            }
        }
        let mut servers = Servers::new(&outside);
        if words.contains("{network}") {
            servers.elsewhere();
        }
        if words.contains("{bell}") {
            servers.late(bell(&root), root.join(LATE));
        }
        let hosts = json!([{ "host": "127.0.0.1", "ports": servers.listed_ports() }]);
        let manifest = Manifest::new()
            .set("network", json!({ "mode": "allowlist", "hosts": hosts }))
            .set("extends", json!(["base-linux"]));
        scene.write_manifest(&manifest.text());
        make(words, &root, &outside);
        Stage {
            victim: (words.contains("{victim}") || daemon.is_none() && words.contains("{daemon}"))
                .then(|| Victim::new(&outside.join("other"))),
            cgroup: words.contains("{cgroup}").then(Cgroup::new),
            segment: words.contains("{segment}").then(Segment::new),
            semaphores: words.contains("{semaphores}").then(Set::new),
            messages: words.contains("{messages}").then(Messages::new),
            queue: words.contains("{queue}").then(Queue::new),
            scene,
            servers,
            daemon,
        }
    }

    /// Puts paths, addresses and numbers in the place of words in braces.
    pub(crate) fn fill(&self, template: &str) -> String {
        let text = |path: PathBuf| path.to_str().expect("test paths are UTF-8").to_owned();
        let (root, outside) = (self.scene.root(), self.scene.outside());
        let number = |number: Option<String>| number.unwrap_or_default();
        let victim = self.victim.as_ref().map(|victim| victim.child.id());
        let mut filled = template.to_owned();
        for (word, value) in [
            ("{directory}", text(root.join("directory"))),
            ("{marker}", text(root.join("directory/ran"))),
            ("{program}", text(outside.join("program"))),
            ("{trigger}", text(root.join("tools/trigger"))),
            ("{deep}", text(outside.join(deep()))),
            ("{bell}", text(bell(&root))),
            ("{root}", text(root)),
            ("{outside}", text(outside)),
            ("{victim}", number(victim.map(|pid| pid.to_string()))),
            ("{victim-fd}", VICTIM_FD.to_string()),
            ("{handed}", HANDED.to_string()),
            ("{connection}", CONNECTION.to_string()),
            ("{terminal}", TERMINAL.to_string()),
            ("{address}", number(self.victim.as_ref().map(|it| it.address.to_string()))),
            ("{cgroup}", number(self.cgroup.as_ref().map(|it| text(it.path().to_owned())))),
            ("{segment}", number(self.segment.as_ref().map(|it| it.0.to_string()))),
            ("{semaphores}", number(self.semaphores.as_ref().map(|it| it.0.to_string()))),
            ("{messages}", number(self.messages.as_ref().map(|it| it.0.to_string()))),
            ("{queue}", number(self.queue.as_ref().map(Queue::name))),
            ("{daemon}", number(self.daemon.or(victim).map(|pid| pid.to_string()))),
        ] {
            filled = filled.replace(word, &value);
        }
        self.servers.fill(&filled)
    }

    /// What a process was handed from outside the job, where the words speak
    /// of it: a file to write, a connection to a host that is not listed.
    pub(crate) fn handed(&self, words: &str) -> Vec<(OwnedFd, i32)> {
        let mut handed = Vec::new();
        let open = |name: &str| {
            let path = self.scene.outside().join(name);
            fs::File::options().read(true).write(true).open(path).expect("open")
        };
        if words.contains("{handed}") {
            handed.push((open("file").into(), HANDED));
        }
        if words.contains("{connection}") {
            handed.push((self.servers.connection(), CONNECTION));
        }
        if words.contains("{terminal}") {
            // With its other end, or it would be gone.
            let [terminal, other] = terminal();
            handed.extend([(terminal, TERMINAL), (other, TERMINAL + 1)]);
        }
        handed
    }

    /// What can be seen of the segment's first byte.
    pub(crate) fn segment_byte(&self) -> Option<u8> {
        self.segment.as_ref().map(Segment::byte)
    }
}

/// The name of the server that begins late.
const LATE: &str = "late-as-no-other-program";

/// Where it is told to begin.
fn bell(root: &Path) -> PathBuf {
    root.join("directory/bell")
}

/// A path of more names than are followed.
fn deep() -> PathBuf {
    let depth = effectgate_common::wire::WALK_MAX + 10;
    std::iter::repeat_n("d", depth).collect()
}

/// Files and directories that only some attempts need.
fn make(words: &str, root: &Path, outside: &Path) {
    let file = outside.join("file");
    if words.contains("{deep}") {
        fs::create_dir_all(outside.join(deep())).expect("mkdir");
    }
    if words.contains("{root}/old") {
        fs::hard_link(&file, root.join("directory/old")).expect("link");
    }
    if words.contains("{directory}/hard") {
        fs::hard_link(&file, root.join("directory/hard")).expect("link");
    }
    for (name, place) in [("{outside}/attributed", outside), ("{root}/attributed", root)] {
        let path = place.join("attributed");
        if !words.contains(name) {
            continue;
        }
        fs::write(&path, "x").expect("write");
        let set = Command::new(gate::trigger()).arg("setxattr").arg(&path).output();
        assert!(set.is_ok(), "the trigger can be started");
    }
    for name in ["lower", "upper"] {
        if words.contains(&format!("{{outside}}/{name}")) {
            fs::create_dir_all(outside.join(name)).expect("mkdir");
            fs::write(outside.join(name).join("file"), "x").expect("write");
        }
    }
    for name in ["work", "empty"] {
        if words.contains(&format!("{{outside}}/{name}")) {
            fs::create_dir(outside.join(name)).expect("mkdir");
        }
    }
    if words.contains("{outside}/look") {
        let inner = outside.join("look").join(root.strip_prefix("/").expect("absolute"));
        fs::create_dir_all(inner.join("directory")).expect("mkdir");
        fs::write(inner.join("directory/file"), "x").expect("write");
    }
}

/// A new terminal, and the end of whoever sits there.
fn terminal() -> [OwnedFd; 2] {
    let (mut user, mut program) = (0, 0);
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: the numbers live across the call; name, settings and size are left
    // out. The kernel gives both descriptors to us, nobody else owns them.
    unsafe {
        let (user, program) = (&raw mut user, &raw mut program);
        let made = libc::openpty(
            user,
            program,
            none.cast(),
            none.cast_const().cast(),
            none.cast_const().cast(),
        );
        assert_eq!(made, 0, "{}", std::io::Error::last_os_error());
    }
    // SAFETY: as above.
    [program, user].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A process outside the job, with something to lose.
pub(crate) struct Victim {
    child: Child,
    said: BufReader<ChildStdout>,
    address: u64,
}

impl Victim {
    fn new(file: &Path) -> Victim {
        let mut child = Command::new(gate::trigger())
            .arg("victim")
            .arg(file)
            .arg(VICTIM_FD.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the trigger can be started");
        let mut said = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("it says where");
        let address = line.trim().parse().expect("an address");
        Victim { child, said, address }
    }

    /// Whether it lives as it did: a signal that it was sent comes before its
    /// answer.
    pub(crate) fn is_whole(&mut self) -> bool {
        let asked = self.child.stdin.as_mut().expect("piped").write_all(b"\n");
        let mut answer = String::new();
        asked.is_ok() && self.said.read_line(&mut answer).is_ok() && answer == "x\n"
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
