//! A record as a row.

use effectgate_core::{
    forensics::{Record, Text},
    time,
};
use memchr::memmem;

use super::columns::Cell;

/// Leaves of the schema.
pub const COLUMNS: usize = 40;

/// The cells in the schema's order; `log` is the log's name. `None` for what is
/// no record.
pub fn row<'a>(
    log: &'a str,
    record: &'a Record<'a>,
    line: &'a [u8],
) -> Option<[Cell<'a>; COLUMNS]> {
    use Cell::{Bool, Int, Ints, Long, Time};
    let object = &record.object;
    let process = record.process.as_ref();
    let ancestry = process.map(|by| by.ancestry.as_slice()).unwrap_or_default();
    let other = object.other.as_ref().and_then(|other| other.path.as_ref());
    // The name of a tool is none of a host.
    let host = object.name.as_ref().filter(|_| object.address.is_some());
    Some([
        Cell::Text(Some(log)),
        text(&record.job),
        Long(Some(record.seq)),
        Time(time::parse(&record.ts)?.try_into().ok()?),
        text(&record.class),
        text(&record.action),
        Bool(record.within),
        text(&record.decision),
        text(&record.rule.name),
        maybe(record.rule.file.as_ref()),
        Int(record.rule.line),
        maybe(record.coverage.as_ref()),
        maybe(record.kernel.as_ref()),
        Int(process.map(|by| by.pid)),
        Long(process.and_then(|by| by.start.number())),
        Int(process.and_then(|by| by.ppid)),
        Int(process.and_then(|by| by.tid)),
        Int(process.map(|by| by.uid)),
        maybe(process.and_then(|by| by.exe.as_ref())),
        maybe(process.map(|by| &by.comm)),
        Ints(ancestry.iter().map(|one| one.pid).collect()),
        Cell::Texts(ancestry.iter().map(|one| one.exe.as_deref()).collect()),
        Cell::Texts(ancestry.iter().map(|one| Some(&*one.comm)).collect()),
        maybe(object.path.as_ref()),
        maybe(other),
        maybe(object.interpreter.as_ref()),
        maybe(object.root.as_ref()),
        maybe(object.dev.as_ref()),
        Long(object.ino.number()),
        list(&object.argv),
        list(&object.names),
        list(&object.outside),
        maybe(host),
        maybe(object.address.as_ref()),
        Int(object.port.map(u32::from)),
        Cell::Text(object.protocol.word()),
        maybe(object.reach.as_ref()),
        Int(object.code),
        Cell::Text(Some(std::str::from_utf8(object_of(line)?).ok()?)),
        text(&record.hash),
    ])
}

fn text<'a>(text: &'a Text<'a>) -> Cell<'a> {
    Cell::Text(Some(text))
}

fn maybe<'a>(text: Option<&'a Text<'a>>) -> Cell<'a> {
    Cell::Text(text.map(|text| &**text))
}

fn list<'a>(texts: &'a [Text<'a>]) -> Cell<'a> {
    Cell::Texts(texts.iter().map(|text| Some(&**text)).collect())
}

/// The object as it stands in a record's line. No string can hold the names
/// around it: quotes are escaped there.
fn object_of(line: &[u8]) -> Option<&[u8]> {
    const BEFORE: &[u8] = b",\"object\":";
    let from = memmem::find(line, BEFORE)? + BEFORE.len();
    let to = memmem::rfind(line, b",\"prev\":\"")?;
    line.get(from..to)
}
