//! Who watches: one daemon for all rows, or one for a row alone.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock};

use effectgate_tests::daemon::Daemon;
use effectgate_tests::gate;

/// The daemon that all rows share that do not need their own.
static SHARED: Mutex<Option<Daemon>> = Mutex::new(None);

/// As long as it lives, nobody else starts or ends a daemon.
pub(crate) struct Watch {
    shared: MutexGuard<'static, Option<Daemon>>,
    alone: bool,
}

/// A mode of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    Observe,
    Enforce,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Observe => "observe",
            Mode::Enforce => "enforce",
        }
    }
}

impl Watch {
    pub(crate) fn daemon(&self) -> &Daemon {
        self.shared.as_ref().expect("it is started with the watch")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.alone {
            self.shared.take();
        }
    }
}

/// A daemon; for a row alone one that ends with the watch.
pub(crate) fn somebody(alone: bool) -> Watch {
    let mut shared = lock();
    if shared.is_none() {
        *shared = Some(start());
    }
    Watch { shared, alone }
}

/// No daemon is there.
pub(crate) fn nobody() -> Watch {
    let mut shared = lock();
    shared.take();
    Watch { shared, alone: true }
}

/// The modes in which every attempt is made, the one first that lets none do harm.
pub(crate) fn modes() -> &'static [Mode] {
    if gate::backend() == "lsm" { &[Mode::Enforce, Mode::Observe] } else { &[Mode::Observe] }
}

fn lock() -> MutexGuard<'static, Option<Daemon>> {
    // What a failed row leaves behind is whole: a daemon, or none.
    SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A daemon dies with the thread that started it, so one that stays does it.
fn start() -> Daemon {
    static STARTER: OnceLock<Mutex<Sender<Sender<Daemon>>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, asked) = channel::<Sender<Daemon>>();
        // SAFETY: the function is there as long as the process is.
        let registered = unsafe { libc::atexit(end) };
        assert_eq!(registered, 0, "no more functions can be registered for the exit");
        std::thread::spawn(move || {
            for answer in asked {
                // Nobody waits for it any more when the row that asked has failed.
                let _ = answer.send(Daemon::start());
            }
        });
        Mutex::new(sender)
    });
    let (sender, started) = channel();
    starter.lock().expect("nothing panics under it").send(sender).expect("the starter stays");
    started.recv().expect("the daemon starts")
}

extern "C" fn end() {
    if let Ok(mut shared) = SHARED.try_lock() {
        shared.take();
    }
}
