//! What a log says of processes, the network and files, as the predicate
//! runtime-trace lists it. Bounded, however long the log is.

use std::collections::BTreeMap;
use std::io::{BufRead, Read as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{StatementError, text};
use crate::escape::unescape;
use crate::replay::LONGEST;

/// Entries of each list; more are counted.
const LISTED: usize = 100_000;

/// Bytes of strings in all lists together; of what comes then, only what needs
/// no more is listed. Escaped and in Base64 it stays below what a reader takes.
const BYTES: usize = 64 << 20;

/// About what an entry holds beside its strings, bytes.
const ENTRY: usize = 256;

/// RFC 3986, 2.3, and the slashes of paths.
const KEPT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The lists, and the opening record's object.
#[derive(Debug, Default)]
pub struct Trace {
    pub opening: Value,
    pub process: Vec<Value>,
    pub network: Vec<Value>,
    pub files: Vec<Value>,
    pub unlisted: Unlisted,
}

/// How many entries did not fit; distinct files and peers count each time.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Unlisted {
    process: u64,
    network: u64,
    file_access: u64,
}

impl Trace {
    /// Reads a log's records in order; whether it holds is another's question.
    pub fn of(log: impl BufRead) -> Result<Trace, StatementError> {
        Trace::bounded(log, LISTED, BYTES)
    }

    /// With so many entries in each list, and so many bytes in all.
    pub fn bounded(
        mut log: impl BufRead,
        most: usize,
        bytes: usize,
    ) -> Result<Trace, StatementError> {
        let mut trace = Trace::default();
        let mut seen = Seen { most, bytes, files: BTreeMap::new(), network: BTreeMap::new() };
        let mut line = Vec::new();
        let mut number = 0;
        while log.by_ref().take(LONGEST).read_until(b'\n', &mut line)? > 0 {
            let record: Value =
                serde_json::from_slice(&line).map_err(|_| StatementError::Record(number))?;
            if number == 0 {
                trace.opening = record["object"].clone();
            }
            trace.add(&record, &mut seen);
            number += 1;
            line.clear();
        }
        trace.network = seen.network.into_values().map(Peer::entry).collect();
        trace.files = seen.files.into_iter().map(|(path, file)| file.entry(&path)).collect();
        Ok(trace)
    }

    fn add(&mut self, record: &Value, seen: &mut Seen) {
        let object = &record["object"];
        match text(&record["class"]) {
            "exec" => {
                let entry = process(record);
                if self.process.len() < seen.most && seen.hold(weight(&entry)) {
                    self.process.push(entry);
                } else {
                    self.unlisted.process += 1;
                }
                if record["action"] == "exec" {
                    let files = [&object["path"], &object["interpreter"]];
                    self.unlisted.file_access += seen.files(record, files);
                }
            }
            "file" => {
                let files = [&object["path"], &object["other"]["path"]];
                self.unlisted.file_access += seen.files(record, files);
            }
            "net" => self.unlisted.network += seen.peer(record),
            _ => {}
        }
    }
}

/// A URI: the prefix, and the bytes as a path of it.
pub fn uri(prefix: &str, bytes: &[u8]) -> String {
    format!("{prefix}{}", percent_encode(bytes, KEPT))
}

/// Distinct things that were touched.
struct Seen {
    most: usize,
    /// Bytes for which there is still room.
    bytes: usize,
    files: BTreeMap<String, Touched>,
    network: BTreeMap<String, Peer>,
}

impl Seen {
    /// Returns how many of them found no room.
    fn files(&mut self, record: &Value, paths: [&Value; 2]) -> u64 {
        let mut left = 0;
        for path in paths.into_iter().filter_map(Value::as_str) {
            // Twice: as a name, and as a URI, in which a byte can take three.
            let new = !self.files.contains_key(path);
            if new && (self.files.len() >= self.most || !self.hold(4 * path.len() + ENTRY)) {
                left += 1;
            } else {
                self.files.entry(path.to_owned()).or_default().by(record);
            }
        }
        left
    }

    /// Whether there was room for so many bytes more.
    fn hold(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(self.bytes);
        left.is_some()
    }

    fn peer(&mut self, record: &Value) -> u64 {
        let key = record["object"].to_string();
        let new = !self.network.contains_key(&key);
        if new && (self.network.len() >= self.most || !self.hold(key.len() + ENTRY)) {
            return 1;
        }
        let peer = self.network.entry(key).or_insert_with(|| Peer {
            object: record["object"].clone(),
            touched: Touched::default(),
        });
        peer.touched.by(record);
        0
    }
}

/// How often what was done, and how much of it was outside or denied.
#[derive(Debug, Default)]
struct Touched {
    actions: BTreeMap<String, u64>,
    outside: u64,
    denied: u64,
}

impl Touched {
    fn by(&mut self, record: &Value) {
        *self.actions.entry(text(&record["action"]).to_owned()).or_default() += 1;
        self.outside += u64::from(record["within"] == false);
        self.denied += u64::from(record["decision"] == "denied");
    }

    fn annotations(&self) -> Value {
        json!({"actions": self.actions, "outside": self.outside, "denied": self.denied})
    }

    /// A ResourceDescriptor. It has no digest: a kernel program cannot stop
    /// the job to read the file, and one that is read later can be another.
    fn entry(&self, path: &str) -> Value {
        let bytes = unescape(path).unwrap_or_else(|| path.as_bytes().to_vec());
        let prefix = if bytes.starts_with(b"/") { "file://" } else { "effectgate:file/" };
        json!({"name": path, "uri": uri(prefix, &bytes), "annotations": self.annotations()})
    }
}

struct Peer {
    object: Value,
    touched: Touched,
}

impl Peer {
    fn entry(self) -> Value {
        // What a foreign log holds instead stands beside them.
        let mut entry = match self.object {
            Value::Object(members) => members,
            other => Map::from_iter([("object".to_owned(), other)]),
        };
        entry.insert("annotations".to_owned(), self.touched.annotations());
        Value::Object(entry)
    }
}

fn process(record: &Value) -> Value {
    let (object, process) = (&record["object"], &record["process"]);
    let mut entry = json!({
        "eventType": record["action"],
        "seq": record["seq"],
        "pid": process["pid"],
        "ppid": process["ppid"],
        "start": process["start"],
        "uid": process["uid"],
        "processBinary": process["exe"],
        "within": record["within"],
        "decision": record["decision"],
    });
    match text(&record["action"]) {
        "exec" => {
            let runs = object["interpreter"].as_str().or(object["path"].as_str());
            entry["processBinary"] = runs.into();
            entry["asked"] = object["path"].clone();
            entry["arguments"] = object["argv"].clone();
        }
        "fork" => entry["child"] = json!({"pid": object["pid"], "start": object["start"]}),
        _ => entry["code"] = object["code"].clone(),
    }
    entry
}

/// About what an entry takes, bytes.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| weight(item) + 4).sum(),
        Value::Object(members) => members.values().map(weight).sum::<usize>() + ENTRY,
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}
