//! What was found, held against what a row says and against the table that is
//! committed, and told to whoever writes the document.

use std::fmt;
use std::fs::File;
use std::io::Write;

use effectgate_tests::gate;

use crate::row::{Harm, Row, Want};
use crate::watch::Mode;

/// The committed table: group, name, kernel, backend, mode, result.
const TABLE: &str = include_str!("results.tsv");

/// What came of an attempt.
#[derive(Debug, PartialEq)]
pub(crate) enum Found {
    /// Not even unwatched: the error's number.
    Impossible(i32),
    /// A violation about the right object, which was denied.
    Denied { harm: bool },
    /// A violation about the right object.
    Seen { harm: bool },
    /// A violation, but about something else alone.
    Misnamed { harm: bool },
    /// The verdict says that it is not known.
    Open { harm: bool },
    /// The observer is gone, and there is no verdict.
    NoVerdict { harm: bool },
    /// It did no harm, and is recorded.
    Recorded,
    /// It did no harm; how its process ended.
    Passed(i32),
    /// It did harm, and the verdict says that all is well.
    Evaded,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Impossible(number) => write!(f, "not possible here: {}", errno(*number)),
            Found::Denied { .. } => f.write_str("denied"),
            Found::Seen { .. } => f.write_str("seen"),
            Found::Misnamed { .. } => f.write_str("seen, with another object"),
            Found::Open { .. } => f.write_str("indeterminate"),
            Found::NoVerdict { .. } => f.write_str("no verdict"),
            Found::Recorded => f.write_str("harmless, recorded"),
            Found::Passed(0) => f.write_str("harmless"),
            Found::Passed(code) => write!(f, "failed: {}", errno(*code)),
            Found::Evaded => f.write_str("NOT SEEN"),
        }
    }
}

impl Found {
    fn did_harm(&self) -> bool {
        match self {
            Found::Denied { harm }
            | Found::Seen { harm }
            | Found::Misnamed { harm }
            | Found::Open { harm }
            | Found::NoVerdict { harm } => *harm,
            Found::Evaded => true,
            Found::Impossible(_) | Found::Recorded | Found::Passed(_) => false,
        }
    }

    fn is(&self, want: Want, denies: bool) -> bool {
        match want {
            _ if matches!(self, Found::Impossible(_)) => true,
            Want::Violation | Want::OrGone if denies => {
                matches!(self, Found::Denied { harm: false })
            }
            Want::Violation | Want::Seen => {
                matches!(self, Found::Seen { .. } | Found::Denied { .. })
            }
            Want::OrGone => {
                matches!(self, Found::Seen { .. } | Found::Denied { .. } | Found::NoVerdict { .. })
            }
            Want::Open => matches!(self, Found::Open { .. } | Found::NoVerdict { .. }),
            Want::NotPass => {
                Found::is(self, Want::Open, denies) || Found::is(self, Want::Seen, denies)
            }
            Want::Any => *self != Found::Evaded,
            Want::Either => {
                Found::is(self, Want::Pass, denies) || Found::is(self, Want::Open, denies)
            }
            Want::Pass => matches!(self, Found::Recorded | Found::Passed(0)),
        }
    }
}

/// Tells what was found, and says what is wrong with it: where something else was
/// found than is said, or than is committed.
pub(crate) fn hold(row: &Row, mode: Mode, found: &Found) -> Option<String> {
    tell(row, mode, found);
    let denies = mode == Mode::Enforce;
    let want = if gate::on_tracepoints() { row.tracepoint } else { row.lsm };
    if *found == Found::Evaded {
        return Some(format!("{}: EVADED: harm was done, and the verdict is `pass`", mode.name()));
    }
    if denies && found.did_harm() && row.harm != Harm::None {
        return Some(format!("under `enforce` harm was done: {found}"));
    }
    if !found.is(want, denies) {
        return Some(format!("{}: found {found:?}, where the row says {want:?}", mode.name()));
    }
    let accepts = std::env::var("EFFECTGATE_TEST_ACCEPT").is_ok_and(|value| value == "1");
    // Kernels that are not pinned are in no table.
    if accepts || !TABLE.lines().any(|line| line.contains(&place(mode))) {
        return None;
    }
    let committed = TABLE.lines().any(|committed| committed == line(row, mode, found));
    (!committed).then(|| {
        format!("docs/evasions.md says otherwise than {found}: `cargo xtask evasions` writes it")
    })
}

fn line(row: &Row, mode: Mode, found: &Found) -> String {
    format!("{}\t{}{}{found}", row.group, row.name, place(mode))
}

/// Kernel, backend and mode, as they stand in every line.
fn place(mode: Mode) -> String {
    let (major, minor) = gate::kernel();
    format!("\t{major}.{minor}\t{}\t{}\t", gate::backend(), mode.name())
}

/// To the file of `EFFECTGATE_TEST_RESULTS`, a line for each row. In a virtual
/// machine that is the port on which the tests print as well.
fn tell(row: &Row, mode: Mode, found: &Found) {
    let Some(path) = std::env::var_os("EFFECTGATE_TEST_RESULTS") else { return };
    let mut file = File::options().append(true).create(true).open(path).expect("open");
    let line = format!("\n@@effectgate result {}\n", line(row, mode, found));
    file.write_all(line.as_bytes()).expect("write");
}

/// The name of an error, as in `errno.h`.
pub(crate) fn errno(number: i32) -> String {
    let name = match number {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::EIO => "EIO",
        libc::ENXIO => "ENXIO",
        libc::ENOEXEC => "ENOEXEC",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::ENOTBLK => "ENOTBLK",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::EXDEV => "EXDEV",
        libc::ENODEV => "ENODEV",
        libc::EINVAL => "EINVAL",
        libc::ENOTTY => "ENOTTY",
        libc::ENOSYS => "ENOSYS",
        libc::ELOOP => "ELOOP",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::EAFNOSUPPORT => "EAFNOSUPPORT",
        libc::EPROTONOSUPPORT => "EPROTONOSUPPORT",
        libc::ENOPROTOOPT => "ENOPROTOOPT",
        libc::ESRCH => "ESRCH",
        libc::ENOKEY => "ENOKEY",
        libc::ECONNREFUSED => "ECONNREFUSED",
        libc::EBADMSG => "EBADMSG",
        libc::EKEYREJECTED => "EKEYREJECTED",
        other => return format!("status {other}"),
    };
    name.to_owned()
}
