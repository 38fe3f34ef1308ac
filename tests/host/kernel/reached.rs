//! What a job reaches for that is not its own.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use effectgate_tests::{Gate, Outcome, Scene, gate, record, watched};
use serde_json::Value;

use Kind::{Recorded, Violation};
use Where::{Anywhere, Machine};

/// What these tests exercise: names in the hook table.
pub(crate) const HOOKS: &[&str] = &[
    "bpf",
    "perf_event_open",
    "sb_mount",
    "move_mount",
    "sb_remount",
    "sb_kern_mount",
    "sb_umount",
    "sb_pivotroot",
    "kernel_read_file",
    "kernel_load_data",
    "ptrace_access_check",
    "ptrace_traceme",
    "task_kill",
    "task_alloc",
    "capable",
    "file_fcntl",
    "settime",
    "syslog",
    "quotactl",
    "key_permission",
    "key_alloc",
    "userns_create",
    "ipc_permission",
    "shm_alloc_security",
    "shm_free_security",
    "sem_alloc_security",
    "sem_free_security",
    "msg_queue_alloc_security",
    "msg_queue_free_security",
    "shm_shmctl",
    "sem_semctl",
    "msg_queue_msgctl",
    "task_setrlimit",
    "task_setnice",
    "task_setioprio",
    "task_setscheduler",
    "task_movememory",
    "task_fix_setuid",
    "task_fix_setgid",
    "path_chroot",
    "path_notify",
    "uring_sqpoll",
    "syscall_guard",
    "signal_sent",
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Violation,
    Recorded,
}

/// Where an effect may be tried.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    Anywhere,
    /// On a machine that is thrown away.
    Machine,
}

/// One effect. In its words, `{directory}` and `{file}` lie in the scene's root,
/// and `{pid}` is a process outside the job.
struct Case {
    words: &'static str,
    reach: &'static str,
    kind: Kind,
    place: Where,
    /// Whether there is anything of it to be seen when system calls return.
    happens: bool,
}

macro_rules! reaches {
    ($($name:ident $words:literal $reach:literal $kind:ident $place:ident $happens:literal;)+) => {
        const CASES: &[Case] = &[$(Case {
            words: $words, reach: $reach, kind: $kind, place: $place, happens: $happens,
        }),+];
        $(#[test]
        fn $name() {
            seen(CASES.iter().find(|case| case.words == $words).expect("declared"));
        })+
    };
}

#[rustfmt::skip]
reaches! {
    bpf                     "bpf" "bpf" Violation Anywhere true;
    perf_event              "perf-event" "perf_event" Violation Anywhere true;
    mount                   "mount {directory}" "mount" Violation Anywhere true;
    remount                 "remount {directory}" "mount" Violation Anywhere true;
    attributes_of_a_mount   "mount-setattr /" "mount" Violation Anywhere true;
    file_system_in_the_air  "make-file-system" "mount" Violation Anywhere true;
    mount_that_is_moved     "move-mount {directory} {directory}" "mount" Violation Anywhere true;
    umount                  "umount" "umount" Violation Anywhere true;
    pivot_root              "pivot-root {directory}" "pivot_root" Violation Anywhere true;
    module_from_a_file      "load-module-file {file}" "kernel_load" Violation Machine false;
    module_from_memory      "load-module" "kernel_load" Violation Machine false;
    trace                   "trace {pid}" "ptrace" Violation Anywhere true;
    trace_me                "trace-me" "ptrace" Violation Anywhere true;
    memory_of_another       "read-memory {pid}" "ptrace" Violation Anywhere true;
    descriptor_of_another   "take-descriptor {pid}" "ptrace" Violation Anywhere true;
    advice_to_another       "advise-program {pid}" "ptrace" Violation Anywhere true;
    limits_of_another       "limit-other {pid}" "process" Violation Anywhere true;
    priority_of_another     "nice-other {pid}" "process" Violation Anywhere true;
    disk_priority_of_another "io-nice-other {pid}" "process" Violation Anywhere true;
    scheduler_of_another    "schedule-other {pid}" "process" Violation Anywhere true;
    processors_of_another   "pin-other {pid}" "process" Violation Anywhere true;
    memory_place_of_another "move-memory-other {pid}" "process" Violation Anywhere true;
    signal                  "signal {pid} 28" "signal" Violation Anywhere true;
    signal_by_descriptor    "pidfd-signal {pid} 28" "signal" Violation Anywhere true;
    signal_in_disguise      "queue-signal {pid} 28" "signal" Violation Anywhere true;
    signals_of_a_file       "own-signals {pid}" "signal" Violation Anywhere true;
    signals_of_a_socket     "signal-by-ioctl {pid}" "signal" Violation Anywhere true;
    host_name               "set-host-name" "machine" Violation Anywhere true;
    news_of_devices         "tell-device-manager" "machine" Violation Anywhere true;
    terminal_hung_up        "hang-up" "capability" Violation Anywhere true;
    opening_held_up         "fanotify-permission {directory}" "hold_up" Violation Anywhere true;
    accounting              "stop-accounting" "capability" Violation Machine true;
    reboot                  "reboot-keys" "capability" Violation Machine true;
    clock                   "set-clock" "machine" Violation Machine true;
    kernel_log              "kernel-log 5" "machine" Violation Machine true;
    quota                   "set-quota /dev/nvme0n1" "machine" Violation Machine false;
    key_by_a_helper         "request-key" "machine" Violation Anywhere true;
    key                     "add-key" "key" Recorded Anywhere true;
    user_namespace          "user-namespace" "user_namespace" Recorded Anywhere true;
    shared_memory           "shared-memory" "ipc" Recorded Anywhere true;
    system_v_objects        "system-v" "ipc" Recorded Anywhere true;
    ids                     "set-ids" "identity" Recorded Anywhere true;
    terminal_input          "terminal-input /dev/console" "terminal_input" Violation Machine false;
    root_directory          "chroot-plain {directory}" "chroot" Recorded Anywhere false;
    watch_for_names         "inotify {directory}" "watch" Recorded Anywhere false;
    watch_for_opens         "fanotify {directory}" "watch" Recorded Anywhere false;
    polling_thread          "io-uring-setup-polled" "sqpoll" Recorded Anywhere false;
}

/// A process outside the job, which waits for the test's end.
struct Other(Child);

impl Other {
    fn start() -> Other {
        let mut command = Command::new(gate::trigger());
        command.arg("copy-input").stdin(Stdio::piped()).stdout(Stdio::null());
        Other(command.spawn().expect("the trigger can be started"))
    }

    fn lives(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file system of the test's own.
struct Mounted(CString);

impl Mounted {
    fn on(path: &Path) -> Mounted {
        let path = CString::new(path.as_os_str().as_bytes()).expect("no NUL");
        let kind = c"tmpfs".as_ptr();
        // SAFETY: the names are NUL-terminated and live across the call.
        let mounted = unsafe { libc::mount(kind, path.as_ptr(), kind, 0, std::ptr::null()) };
        assert_eq!(mounted, 0, "{}", std::io::Error::last_os_error());
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // SAFETY: the name is NUL-terminated and lives across the call.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

fn in_a_machine() -> bool {
    std::env::var_os("EFFECTGATE_TEST_VM").is_some()
}

fn fill(scene: &Scene, words: &str, other: &Other) -> Vec<String> {
    let directory = scene.root().join("directory");
    let file = scene.root().join("file");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    words
        .split_whitespace()
        .map(|word| {
            word.replace("{directory}", &text(&directory))
                .replace("{file}", &text(&file))
                .replace("{pid}", &other.0.id().to_string())
        })
        .collect()
}

fn reaches<'a>(outcome: &'a Outcome, reach: &str) -> Vec<&'a Value> {
    let is = |event: &&Value| {
        record::kind(event) == "guard/reached" && record::text(&event["object"]["reach"]) == reach
    };
    outcome.events.iter().filter(is).collect()
}

fn seen(case: &Case) {
    if case.place == Machine && !in_a_machine() {
        println!("not tested: not on a machine that goes on");
        return;
    }
    if !case.happens && gate::on_tracepoints() {
        println!("not tested: what fails is not to be seen when the system call returns");
        return;
    }
    let (scene, other) = (Scene::new(), Other::start());
    let outcome = watched::trigger(&scene, fill(&scene, case.words, &other));
    let found = reaches(&outcome, case.reach);
    let first = found.first().unwrap_or_else(|| panic!("no {}{}", case.reach, outcome.story()));
    assert_eq!(record::exe(first), gate::trigger().to_str().expect("UTF-8"));
    if case.words.contains("{pid}") {
        assert_eq!(first["object"]["pid"], other.0.id(), "{first}");
    }
    match case.kind {
        Violation => {
            assert_eq!(first["within"], false, "{first}");
            outcome.assert_fail();
        }
        Recorded => outcome.assert_pass(),
    }
}

/// Where only system calls are seen, nobody knows whose it is.
#[test]
fn system_v_memory_of_others() {
    struct Memory(i32);
    impl Drop for Memory {
        fn drop(&mut self) {
            // SAFETY: takes numbers.
            unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
    // SAFETY: takes numbers.
    let memory = Memory(unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o1600) });
    assert!(memory.0 >= 0, "{}", std::io::Error::last_os_error());
    let outcome = watched::trigger(&Scene::new(), ["shared-memory-other", &memory.0.to_string()]);
    let found = reaches(&outcome, "others_ipc");
    let first = found.first().unwrap_or_else(|| panic!("no record{}", outcome.story()));
    assert_eq!(first["object"]["detail"], memory.0, "{first}");
    if gate::on_tracepoints() {
        outcome.assert_indeterminate();
    } else {
        outcome.assert_fail();
    }
}

/// What only looks, and what is the job's own.
#[test]
fn what_reaches_nobody_is_not_reported() {
    let (scene, other) = (Scene::new(), Other::start());
    for words in ["signal {pid} 0", "signal-children", "set-own-host-name", "kernel-log 10"] {
        let outcome = watched::trigger(&scene, fill(&scene, words, &other));
        outcome.assert_pass();
        let any = outcome.events.iter().find(|event| record::kind(event) == "guard/reached");
        assert!(any.is_none(), "{words}: {any:?}{}", outcome.story());
    }
}

/// Under `enforce` nothing of it happens.
#[test]
fn every_reach_is_denied() {
    if gate::backend() != "lsm" {
        println!("not tested: only security modules are asked");
        return;
    }
    let (scene, mut other) = (Scene::new(), Other::start());
    let denied = CASES.iter().filter(|case| case.kind == Violation);
    let denied: Vec<&Case> =
        denied.filter(|case| case.place == Anywhere || in_a_machine()).collect();
    // What first makes mounts of its own gets no further than that.
    let mounted = Mounted::on(&scene.root().join("directory"));
    let mut words =
        fill(&scene, "each-denied unmount {directory} , pivot-to {directory} ,", &other);
    for case in &denied {
        words.extend(fill(&scene, case.words, &other));
        words.push(",".to_owned());
    }
    words.extend(fill(&scene, "signal {pid} 9", &other));
    let outcome = Gate::new(&scene).option(["--mode", "enforce"]).trigger(words);
    assert!(other.lives(), "it was killed{}", outcome.story());
    outcome.assert_fail();
    assert_eq!(outcome.verdict()["command"]["exit"]["code"], 0, "{}", outcome.story());
    drop(mounted);
    // What is thrown away with its machine is often asked for more than once: the
    // first no is the last.
    for case in denied.iter().filter(|case| case.place == Anywhere) {
        let found = reaches(&outcome, case.reach);
        let decided = found.iter().all(|event| event["decision"] == "denied");
        assert!(!found.is_empty() && decided, "{}: {found:?}{}", case.words, outcome.story());
    }
}

/// The kernel's own doors, which are files: nobody has to list them.
#[test]
fn what_is_a_file_is_judged_as_one() {
    let scene = Scene::new();
    let below = effectgate_tests::cgroup::mount();
    let cgroup = below.join("cgroup.procs");
    for (file, gone) in [
        ("/proc/sys/kernel/ftrace_enabled", false),
        ("/proc/sys/vm/overcommit_memory", false),
        ("/dev/mem", true),
        ("/proc/1/oom_score_adj", false),
        ("/sys/kernel/tracing/tracing_on", true),
        (cgroup.to_str().expect("UTF-8"), false),
    ] {
        if gone && !Path::new(file).exists() {
            continue;
        }
        let outcome = watched::trigger(&scene, ["open-write", file]);
        if gone && outcome.code() != 120 && outcome.violations().is_empty() {
            println!("not tested: this kernel does not let {file} be opened");
            continue;
        }
        outcome.assert_fail();
        let violations = outcome.violations();
        assert!(violations.iter().any(|event| record::path(event) == file), "{}", outcome.story());
    }
}

/// In namespaces of its own a process is known by the machine's numbers, and its
/// directory in that namespace's `/proc` is its own.
#[test]
fn processes_of_another_namespace_are_the_jobs() {
    let scene = Scene::new();
    let words = ["as-another-first", "open-write", "/proc/self/comm"];
    let outcome = watched::trigger(&scene, words);
    let own = outcome
        .events
        .iter()
        .filter(|event| record::kind(event) == "file/open_write")
        .find(|event| record::path(event).ends_with("/comm"))
        .unwrap_or_else(|| panic!("no open of its own{}", outcome.story()));
    assert_eq!(own["within"], true, "{own}{}", outcome.story());
    assert_eq!(record::exe(own), gate::trigger().to_str().expect("UTF-8"));
}

/// A child in another cgroup is denied before it is there, and so is the move.
#[test]
fn no_other_cgroup_is_entered() {
    if gate::backend() != "lsm" {
        println!("not tested: only security modules are asked");
        return;
    }
    let scene = Scene::new();
    let cgroup = effectgate_tests::cgroup::Cgroup::new();
    let path = cgroup.path().to_str().expect("UTF-8");
    let words = ["each-denied", "clone-into-cgroup", path, ",", "join-cgroup", path];
    let outcome = Gate::new(&scene).option(["--mode", "enforce"]).trigger(words);
    outcome.assert_fail();
    assert_eq!(outcome.verdict()["command"]["exit"]["code"], 0, "{}", outcome.story());
    assert_eq!(reaches(&outcome, "clone_into_cgroup").len(), 1, "{}", outcome.story());
    let escaped = outcome.events.iter().find(|event| record::kind(event) == "guard/escaped");
    assert!(escaped.is_none(), "{escaped:?}");
}

/// The signal that the job's policy does not stop is no excuse to kill anybody.
#[test]
fn whoever_reaches_out_is_killed() {
    let (scene, mut other) = (Scene::new(), Other::start());
    let words = ["sequence", "signal", &other.0.id().to_string(), "28", ",", "print", "still here"];
    let outcome = Gate::new(&scene).option(["--mode", "kill"]).trigger(words);
    assert!(other.lives());
    outcome.assert_fail();
    assert!(!outcome.stdout().contains("still here"), "{}", outcome.story());
    assert_eq!(outcome.verdict()["command"]["exit"]["signal"], 9, "{}", outcome.story());
    let found = reaches(&outcome, "signal");
    assert_eq!(found[0]["decision"], "killed", "{}", found[0]);
}
