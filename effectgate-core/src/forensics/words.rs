//! What an effect was about, in words for people. Whoever prints them makes
//! control characters visible.

use super::record::{Object, Record, Text};

/// The file's name in an escaped path.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The program that acted: its file, or the thread's name where that is not
/// known; empty for what the observer itself says.
pub fn program_of<'a>(record: &'a Record<'_>) -> &'a str {
    let Some(process) = &record.process else { return "" };
    process.exe.as_deref().filter(|exe| !exe.is_empty()).unwrap_or(&process.comm)
}

/// Characters of [`object_short`].
const SHORT: usize = 4096;

/// The same as [`object_text`], cut where it is very long: a program can have
/// megabytes of arguments.
pub(super) fn object_short(record: &Record<'_>) -> String {
    let mut text = object_text(record);
    if let Some((at, _)) = text.char_indices().nth(SHORT) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// What was touched, in a line.
pub fn object_text(record: &Record<'_>) -> String {
    let object = &record.object;
    match (&*record.class, &*record.action) {
        ("exec", "exec") => program(object),
        ("exec", "fork") => format!("process {}", known(object.pid)),
        ("exec", "exit") => exit(object.code),
        ("env", _) => {
            let names = list(&object.names, ", ");
            match list(&object.outside, ", ") {
                outside if outside.is_empty() => names,
                outside => format!("{outside} (outside), of {names}"),
            }
        }
        ("net", _) if object.address.is_some() => host(object),
        ("net", _) => match (&object.path, &object.abstract_name) {
            (Some(path), _) => format!("unix {path}"),
            (None, Some(name)) => format!("unix @{name}"),
            (None, None) => "unix, unnamed".to_owned(),
        },
        ("limit", _) => {
            format!("{} reached, of at most {}", object.value, object.bound)
        }
        ("guard", action) => guard(action, object),
        _ => match (&object.path, object.other.as_ref().and_then(|other| other.path.as_ref())) {
            (Some(path), Some(other)) => format!("{path} -> {other}"),
            (Some(path), None) => path.to_string(),
            (None, _) => object.name.as_deref().unwrap_or("?").to_owned(),
        },
    }
}

fn program(object: &Object<'_>) -> String {
    let path = object.path.as_deref().unwrap_or("?");
    let arguments = object.argv.iter().skip(1).map(|argument| quoted(argument));
    let mut text = path.to_owned();
    for argument in arguments {
        text.push(' ');
        text.push_str(&argument);
    }
    text
}

/// As a shell would have to be told it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^\\".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

fn host(object: &Object<'_>) -> String {
    let address = object.address.as_deref().unwrap_or("?");
    let port = object.port.map(|port| format!(":{port}")).unwrap_or_default();
    let protocol = &object.protocol;
    match &object.name {
        Some(name) => format!("{name}{port}/{protocol} ({address})"),
        None if address.contains(':') => format!("[{address}]{port}/{protocol}"),
        None => format!("{address}{port}/{protocol}"),
    }
}

fn guard(action: &str, object: &Object<'_>) -> String {
    let mut text = match (action, &object.reach) {
        ("verdict", _) => format!("verdict {}", object.verdict.as_deref().unwrap_or("?")),
        ("entered", _) => match &object.entered {
            Some(known) => format!("process {} joined: {}", known.pid, known.exe),
            None => "a process joined".to_owned(),
        },
        ("escaped", _) => format!("process {} left the job's cgroup", known(object.pid)),
        ("socket", _) => {
            format!("a socket of family {}, which no hook sees", object.family)
        }
        (_, Some(reach)) => format!("{reach} {}", known(object.detail)),
        _ => object.what.as_deref().unwrap_or("?").to_owned(),
    };
    let path = object.path.as_ref().map(|path| format!(" {path}"));
    let why = object.why.as_ref().map(|why| format!(": {why}"));
    text.extend(path.into_iter().chain(why));
    text
}

/// `code` as wait(2) gives it.
fn exit(code: Option<u32>) -> String {
    match code {
        None => "ended".to_owned(),
        Some(code) if code & 0x7f != 0 => format!("signal {}", code & 0x7f),
        Some(code) => format!("code {}", code >> 8),
    }
}

fn known(number: Option<u32>) -> String {
    number.map_or_else(|| "?".to_owned(), |number| number.to_string())
}

fn list(all: &[Text<'_>], between: &str) -> String {
    all.iter().map(|one| &**one).collect::<Vec<_>>().join(between)
}
