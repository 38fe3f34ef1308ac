//! A log's lines in order, as far as they are good, without their hashes.

use std::io::{BufRead, Read as _};

use super::frame::Frame;
use crate::chain::Flaw;
use crate::replay::LONGEST;

/// A log being read, a line at a time.
#[derive(Debug)]
pub struct Scan<R> {
    log: R,
    line: Vec<u8>,
    job: Vec<u8>,
    next: u64,
    closed: bool,
}

/// How a log ended.
#[derive(Debug)]
pub enum End {
    /// With its closing record.
    Closed,
    /// Without it: the job still runs, or its observer was stopped. The last
    /// line may be incomplete.
    Open,
    /// Not as a log does.
    Flawed(Flaw),
    /// It could not be read on.
    Io(std::io::Error),
}

impl<R: BufRead> Scan<R> {
    pub fn new(log: R) -> Self {
        Scan { log, line: Vec::new(), job: Vec::new(), next: 0, closed: false }
    }

    /// Good records so far.
    pub fn records(&self) -> u64 {
        self.next
    }

    /// Steps to the next line; it comes without its newline.
    ///
    /// # Errors
    /// How the log ended, when there is none.
    pub fn step(&mut self) -> Result<(Frame<'_>, &[u8]), End> {
        self.line.clear();
        let read = self.log.by_ref().take(LONGEST).read_until(b'\n', &mut self.line);
        match read.map_err(End::Io)? {
            0 if self.closed => return Err(End::Closed),
            0 if self.next == 0 => return Err(End::Flawed(Flaw::Empty)),
            0 => return Err(End::Open),
            _ if self.closed => return Err(End::Flawed(Flaw::AfterClosing)),
            _ if self.line.pop() == Some(b'\n') => {}
            length if length as u64 == LONGEST => return Err(End::Flawed(Flaw::TooLong)),
            _ if self.next == 0 => return Err(End::Flawed(Flaw::Truncated)),
            _ => return Err(End::Open),
        }
        let frame = Frame::of(&self.line).ok_or(End::Flawed(Flaw::NotCanonical))?;
        if frame.seq != self.next {
            let flaw = Flaw::Sequence { expected: self.next, found: frame.seq };
            return Err(End::Flawed(flaw));
        }
        if self.next == 0 {
            self.job = frame.job.to_vec();
        } else if frame.job != self.job {
            return Err(End::Flawed(Flaw::Content("job")));
        }
        self.next += 1;
        self.closed = frame.class == b"guard" && frame.action == b"verdict";
        Ok((frame, &self.line))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::canonical::canonical;

    /// A record of any class, without newline, as a log could hold it.
    pub fn line() -> impl Strategy<Value = Vec<u8>> {
        record().prop_map(|record| canonical(&record))
    }

    pub fn record() -> impl Strategy<Value = Value> {
        let name = || {
            prop::sample::select(vec!["a", "b", "ab", "a b", "\"path\":\"/a", "ü\u{9b}", "\\x9b"])
        };
        let path = move || {
            prop::collection::vec(name(), 0..4).prop_map(|names| format!("/{}", names.join("/")))
        };
        let address =
            prop::sample::select(vec!["127.0.0.1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8::1"]);
        let host =
            prop::option::of(prop::sample::select(vec!["a.example", "b.a.example", "example"]));
        let file = (
            prop::sample::select(vec!["open_read", "create", "rename"]),
            path(),
            prop::option::of(path()),
        )
            .prop_map(|(action, path, other)| {
                let mut object =
                    json!({"path": path, "op": action, "dev": "1:2", "ino": 7, "root": null});
                if let Some(other) = other {
                    object["other"] = json!({"path": other, "dev": "1:2", "ino": 8, "root": null});
                }
                ("file", action, object)
            });
        let net = (address, host, 1u16..4).prop_map(|(address, name, port)| {
            let object = json!({"address": address, "name": name, "port": port, "op": "connect",
                "protocol": "tcp", "family": "ipv4"});
            ("net", "connect", object)
        });
        let exec = (path(), prop::collection::vec(name(), 0..3)).prop_map(|(path, argv)| {
            (
                "exec",
                "exec",
                json!({"path": path, "argv": argv, "interpreter": null, "ppid": 1, "start": 9}),
            )
        });
        let guard =
            Just(("guard", "socket", json!({"family": 16, "type": 3, "protocol": 0, "what": "x"})));
        let process = (1u32..4, path(), name()).prop_map(|(pid, exe, comm)| {
            json!({"ancestry": [], "comm": comm, "exe": exe, "pid": pid, "ppid": 1, "start": 9, "uid": 0})
        });
        let rest = (
            prop::option::of(process),
            prop::sample::select(vec!["run", "run-1", "a \"job\""]),
            0u64..9,
            any::<bool>(),
            prop::sample::select(vec!["allowed", "recorded", "denied"]),
            prop::sample::select(vec!["network", "allowed_roots", "made-inside"]),
        );
        (prop_oneof![3 => file, 1 => net, 1 => exec, 1 => guard], rest).prop_map(
            |((class, action, object), (process, job, seq, within, decision, rule))| {
                json!({
                    "schema": crate::record::SCHEMA, "seq": seq, "job": job,
                    "ts": crate::time::format(1_769_860_800_000_000_000 + seq * 1_000_000_000),
                    "class": class, "action": action, "object": object, "process": process,
                    "within": within, "rule": {"name": rule}, "decision": decision,
                    "coverage": "object", "prev": "0".repeat(64), "hash": "f".repeat(64),
                })
            },
        )
    }

    fn log(count: u64) -> Vec<u8> {
        let mut log = Vec::new();
        for seq in 0..count {
            let mut record = json!({
                "schema": crate::record::SCHEMA, "seq": seq, "job": "run-1",
                "ts": crate::time::format(seq), "class": "file", "action": "create",
                "object": {"path": "/a"}, "process": null, "within": true,
                "rule": {"name": "x"}, "decision": "allowed", "coverage": null,
                "prev": "0".repeat(64), "hash": "f".repeat(64),
            });
            if seq + 1 == count {
                record["class"] = "guard".into();
                record["action"] = "verdict".into();
            }
            log.extend(canonical(&record));
            log.push(b'\n');
        }
        log
    }

    fn read(log: &[u8]) -> (u64, End) {
        let mut scan = Scan::new(log);
        loop {
            if let Err(end) = scan.step() {
                return (scan.records(), end);
            }
        }
    }

    #[test]
    fn a_log_is_read_to_where_it_is_good() {
        let whole = log(4);
        assert!(matches!(read(&whole), (4, End::Closed)));
        assert!(matches!(read(b""), (0, End::Flawed(Flaw::Empty))));
        assert!(matches!(read(b"{"), (0, End::Flawed(Flaw::Truncated))));
        let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
        assert!(matches!(read(&lines[..3].concat()), (3, End::Open)));
        assert!(matches!(read(&whole[..whole.len() - 9]), (3, End::Open)));
        let gone = [lines[0], lines[2]].concat();
        assert!(matches!(read(&gone), (1, End::Flawed(Flaw::Sequence { expected: 1, found: 2 }))));
        let more = [&whole[..], lines[0]].concat();
        assert!(matches!(read(&more), (4, End::Flawed(Flaw::AfterClosing))));
        let other =
            [lines[0], &lines[1].to_vec().escape_ascii().to_string().into_bytes(), b"\n"].concat();
        assert!(matches!(read(&other), (1, End::Flawed(Flaw::NotCanonical))));
        let foreign = String::from_utf8_lossy(lines[1]).replace("run-1", "run-2");
        assert!(matches!(
            read(&[lines[0], foreign.as_bytes()].concat()),
            (1, End::Flawed(Flaw::Content("job")))
        ));
    }

    #[test]
    fn cut_at_any_byte_the_records_before_are_read() {
        let whole = log(3);
        let ends: Vec<usize> = whole
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(at, _)| at + 1)
            .collect();
        for cut in 0..whole.len() {
            let good = ends.iter().filter(|end| **end <= cut).count() as u64;
            assert_eq!(read(&whole[..cut]).0, good, "cut at {cut}");
        }
    }
}
