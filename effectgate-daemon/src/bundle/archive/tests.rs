//! Archives that are none of a bundle's.

use std::path::PathBuf;

use super::*;

struct Entry {
    name: &'static [u8],
    kind: EntryType,
    link: &'static str,
    data: Vec<u8>,
}

fn plain_entry(name: &'static str, data: &[u8]) -> Entry {
    Entry { name: name.as_bytes(), kind: EntryType::Regular, link: "", data: data.to_vec() }
}

fn special(name: &'static str, kind: EntryType, link: &'static str) -> Entry {
    Entry { name: name.as_bytes(), kind, link, data: Vec::new() }
}

/// The archive as any program could write it: names as they are given.
fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Vec::new();
    for entry in entries {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..entry.name.len()].copy_from_slice(entry.name);
        header.as_old_mut().linkname[..entry.link.len()].copy_from_slice(entry.link.as_bytes());
        header.set_mode(0o4777);
        header.set_entry_type(entry.kind);
        header.set_size(entry.data.len() as u64);
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(&entry.data);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

/// Names and contents, or why there are none.
type Unpacked = std::result::Result<Vec<(String, Vec<u8>)>, String>;

fn unpacked(archive: &[u8]) -> Result<Unpacked> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("b.tar.zst");
    fs::write(&path, archive)?;
    let mut problems = Vec::new();
    let to = unpack(&path, &mut problems)?;
    if let Some(problem) = problems.first() {
        return Ok(Err(problem.to_string()));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(to.path())? {
        let entry = entry?;
        assert!(entry.file_type()?.is_file());
        assert_eq!(entry.metadata()?.permissions().mode() & 0o7777, 0o600);
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    files.sort();
    Ok(Ok(files))
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory");
    encoder.include_checksum(true).expect("memory");
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn of(entries: &[Entry]) -> Unpacked {
    unpacked(&compressed(&tar(entries))).expect("it can be read")
}

#[test]
fn tars_own_form_is_taken() {
    let entries = [
        special("./", EntryType::Directory, ""),
        plain_entry("./policy", b"p"),
        plain_entry("pin", b""),
    ];
    assert_eq!(of(&entries), Ok(files(&[("pin", b""), ("policy", b"p")])));
}

fn files(files: &[(&str, &[u8])]) -> Vec<(String, Vec<u8>)> {
    files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect()
}

#[test]
fn whatever_leads_out_is_refused() {
    for (entry, says) in [
        (plain_entry("/etc/passwd", b"x"), "no bundle has such a file"),
        (plain_entry("../policy", b"x"), "no bundle has such a file"),
        (plain_entry("./../policy", b"x"), "no bundle has such a file"),
        (plain_entry("a/../policy", b"x"), "no bundle has such a file"),
        (plain_entry("/policy", b"x"), "no bundle has such a file"),
        (plain_entry("././policy", b"x"), "no bundle has such a file"),
        (plain_entry("policy/", b"x"), "no bundle has such a file"),
        (plain_entry("", b"x"), "no bundle has such a file"),
        (plain_entry("notes.txt", b"x"), "no bundle has such a file"),
        (plain_entry("\x1b[2Jpolicy", b"x"), "\\u{1b}[2Jpolicy: no bundle has such a file"),
        (special("policy", EntryType::Symlink, "/etc/passwd"), "no plain file (tar's type '2')"),
        (special("policy", EntryType::Link, "/etc/passwd"), "no plain file (tar's type '1')"),
        (special("policy", EntryType::Char, ""), "no plain file (tar's type '3')"),
        (special("policy", EntryType::Block, ""), "no plain file (tar's type '4')"),
        (special("policy", EntryType::Directory, ""), "no plain file (tar's type '5')"),
        (special("policy", EntryType::Fifo, ""), "no plain file (tar's type '6')"),
        (special("policy", EntryType::GNUSparse, ""), "no plain file (tar's type 'S')"),
        (special("policy", EntryType::XHeader, ""), "no plain file (tar's type 'x')"),
        (special("policy", EntryType::GNULongName, ""), "no plain file (tar's type 'L')"),
        (special("././@LongLink", EntryType::GNULongName, ""), "no bundle has such a file"),
        (special("sub/", EntryType::Directory, ""), "no bundle has such a file"),
        (special("..", EntryType::Directory, ""), "no bundle has such a file"),
    ] {
        let name = String::from_utf8_lossy(entry.name).into_owned();
        let problem = of(&[entry]).expect_err(&name);
        assert!(problem.contains(says), "{name}: {problem}");
    }
}

#[test]
fn a_name_is_there_once() {
    let problem = of(&[plain_entry("policy", b"a"), plain_entry("./policy", b"b")]);
    assert!(problem.expect_err("twice").contains("it is there twice"));
}

#[test]
fn bombs_end_at_the_bound() {
    let zeros = vec![0; 64 << 20];
    let mut bomb = tar(&[plain_entry("policy", &zeros)]);
    let archive = compressed(&bomb);
    assert!((archive.len() as u64) * RATIO + SMALL < bomb.len() as u64, "it is no bomb");
    let problem = unpacked(&archive).expect("it can be read").expect_err("a bomb");
    assert!(problem.contains("becomes larger than any bundle"), "{problem}");
    // Behind the archive's end, too.
    bomb = tar(&[plain_entry("policy", b"p")]);
    bomb.extend_from_slice(&zeros);
    let problem = unpacked(&compressed(&bomb)).expect("it can be read").expect_err("a bomb");
    assert!(problem.contains("becomes larger than any bundle"), "{problem}");
}

/// An empty file costs an archive nearly nothing.
#[test]
fn files_are_counted_as_well() {
    let archive = compressed(&tar(&[plain_entry("policy", b""), plain_entry("pin", b"")]));
    for (files, held) in [(2, true), (1, false), (0, false)] {
        let dir = tempfile::tempdir().expect("a directory");
        let bounds = Bounds { bytes: LARGEST, files };
        let read = entries(&archive[..], bounds, dir.path(), "b").expect("it can be read");
        assert_eq!(read.is_ok(), held, "{files}");
    }
}

#[test]
fn what_is_no_archive_cannot_be_read() {
    for bytes in [&b""[..], b"PK\x03\x04", b"\x28\xb5\x2f", b"\x1f\x8b\x08\x00"] {
        let error = unpacked(bytes).expect_err("no archive");
        assert!(format!("{error:#}").contains("neither a directory nor an archive"), "{error:#}");
    }
}

/// A change that is not found changes nothing: zstd's frame says in several
/// ways how much memory to keep ready.
#[test]
fn a_changed_or_cut_archive_is_found() {
    let whole = compressed(&tar(&[plain_entry("policy", b"content"), plain_entry("pin", b"p")]));
    let held = Ok(files(&[("pin", b"p"), ("policy", b"content")]));
    assert_eq!(unpacked(&whole).expect("read"), held);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        if let Ok(found) = unpacked(&changed) {
            assert!(found.is_err() || found == held, "byte {at}");
        }
        if let Ok(found) = unpacked(&whole[..at]) {
            assert!(found.is_err(), "cut at {at}");
        }
    }
    let more = [whole.as_slice(), b"more"].concat();
    assert!(unpacked(&more).expect("read").is_err());
    let another = [whole.as_slice(), &compressed(b"more")].concat();
    assert!(unpacked(&another).expect("read").is_err());
}

#[test]
fn what_was_packed_is_unpacked() {
    let dir = tempfile::tempdir().expect("a directory");
    let from = dir.path().join("from");
    fs::create_dir(&from).expect("a directory");
    for (name, bytes) in [("policy", &b"p"[..]), ("events.jsonl", &[7; 100_000])] {
        fs::write(from.join(name), bytes).expect("write");
    }
    let mut problems = Vec::new();
    let bundle = Bundle::open(&from, &mut problems).expect("open");
    let outputs: Vec<PathBuf> =
        ["1.tar.zst", "2.tar.zst"].iter().map(|name| dir.path().join(name)).collect();
    for output in &outputs {
        pack(&bundle, output).expect("packed");
        assert!(pack(&bundle, output).is_err(), "it is not written over");
    }
    let read = |path: &PathBuf| fs::read(path).expect("read");
    assert_eq!(read(&outputs[0]), read(&outputs[1]));
    let again = Bundle::open(&outputs[0], &mut problems).expect("open");
    assert!(problems.is_empty());
    assert_eq!(again.read("policy").expect("read"), b"p");
    assert_eq!(again.read("events.jsonl").expect("read"), [7; 100_000]);
    assert_eq!(again.digests().expect("digests"), bundle.digests().expect("digests"));
}
