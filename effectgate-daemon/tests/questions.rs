//! Questions to logs: the logs of the corpus, and what is no log or was damaged.
//! What is printed about two runs of a bakery's agent stands in
//! `questions/*.txt`; `EFFECTGATE_BLESS_QUESTIONS=1` writes it.

mod common;

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const MONDAY: &str = "bakery-monday";
const TUESDAY: &str = "bakery-tuesday";

/// Asks from the corpus's directory, so that names are the same everywhere.
fn ask(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
    command.current_dir(common::corpus()).arg("log").args(args);
    command.output().expect("it starts")
}

/// What is printed by a question that is answered.
fn answer(args: &[&str]) -> String {
    let output = ask(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn what_people_read() {
    let questions: [(&str, i32, &[&str]); 9] = [
        ("outside", 0, &["query", MONDAY, TUESDAY, "--outside"]),
        ("query", 0, &["query", TUESDAY, "--program", "curl", "--class", "exec,net,env"]),
        ("count-program", 0, &["query", MONDAY, TUESDAY, "--count=program"]),
        ("count-host", 0, &["query", TUESDAY, "--class", "net", "--count=host"]),
        ("tree", 0, &["tree", MONDAY, TUESDAY]),
        ("tree-outside", 0, &["tree", MONDAY, TUESDAY, "--outside"]),
        ("timeline", 0, &["timeline", TUESDAY]),
        ("who-touched", 0, &["who-touched", "/srv/bakery/repo/menu.txt", MONDAY, TUESDAY]),
        ("diff", 1, &["diff", MONDAY, TUESDAY]),
    ];
    let bless = std::env::var_os("EFFECTGATE_BLESS_QUESTIONS").is_some();
    for (name, code, args) in questions {
        let output = ask(args);
        assert_eq!(output.status.code(), Some(code), "{name}: {output:?}");
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/questions/{name}.txt"));
        if bless {
            fs::write(&file, &printed).expect("write");
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(printed, expected, "{name}");
    }
}

/// The documentation shows what is printed.
#[test]
fn the_documentation_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/forensics.md")).expect("the page");
    let schema = include_str!("../src/commands/log/export/records.schema");
    assert!(page.contains(schema), "the page has another schema");
    let mut shown = 0;
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        let mut lines = block.lines();
        let command = lines.next().and_then(|line| line.strip_prefix("$ effectgate log "));
        let lines: Vec<&str> = lines.collect();
        let Some(command) = command.filter(|_| !lines.is_empty()) else { continue };
        shown += 1;
        let args: Vec<&str> = command.split(' ').collect();
        let output = ask(&args);
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        assert_eq!(printed.lines().collect::<Vec<_>>(), lines, "{command}");
    }
    assert!(shown > 5);
}

/// Every log of the corpus, in the order of their first records.
fn corpus() -> Vec<PathBuf> {
    let entries = fs::read_dir(common::corpus()).expect("the corpus");
    let mut logs: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    logs.sort_by_key(|log| {
        let bytes = common::unpacked(log);
        let end = bytes.iter().position(|byte| *byte == b'\n').expect("a line");
        let first: Value = serde_json::from_slice(&bytes[..end]).expect("JSON");
        (first["ts"].as_str().map(str::to_owned), log.clone())
    });
    logs
}

/// Every line of the corpus, and what is in it.
fn lines() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for log in corpus() {
        let text = String::from_utf8(common::unpacked(&log)).expect("UTF-8");
        for line in text.lines() {
            all.push((line.to_owned(), serde_json::from_str(line).expect("JSON")));
        }
    }
    all
}

type Meant = fn(&Value) -> bool;

/// Questions, and by the book what is meant.
const QUESTIONS: &[(&[&str], Meant)] = &[
    (&[], |_| true),
    (&["--class", "net"], |record| record["class"] == "net"),
    (&["--class", "net,env", "--class", "guard"], |record| {
        ["net", "env", "guard"].contains(&record["class"].as_str().unwrap_or_default())
    }),
    (&["--action", "open_read"], |record| record["action"] == "open_read"),
    (&["--decision", "allowed"], |record| record["decision"] == "allowed"),
    (&["--outside"], |record| record["within"] == false),
    (&["--inside", "--class", "file"], |record| {
        record["within"] == true && record["class"] == "file"
    }),
    (&["--path", "/usr/lib"], |record| below(record, "/usr/lib")),
    (&["--path", "/srv/bakery/repo/menu.txt"], |record| below(record, "/srv/bakery/repo/menu.txt")),
    (&["--path", "/"], |record| below(record, "")),
    (&["--host", "192.0.2.0/24"], |record| {
        record["object"]["address"].as_str().is_some_and(|address| address.starts_with("192.0.2."))
    }),
    (&["--host", "192.0.2.7:8080"], |record| {
        record["object"]["address"] == "192.0.2.7" && record["object"]["port"] == 8080
    }),
    (&["--program", "curl"], |record| {
        record["process"]["exe"] == "/usr/bin/curl" || record["process"]["comm"] == "curl"
    }),
    (&["--program", "/usr/bin/dash"], |record| record["process"]["exe"] == "/usr/bin/dash"),
    (&["--pid", "32517"], |record| record["process"]["pid"] == 32517),
    (&["--job", "run-32026"], |record| record["job"] == "run-32026"),
    (&["--rule", "network"], |record| record["rule"]["name"] == "network"),
    (&["--since", "2026-11-30T20:40:43.1Z", "--until", "2026-11-30T21:40:44+01:00"], |record| {
        let time = record["ts"].as_str().unwrap_or_default();
        ("2026-11-30T20:40:43.100000000Z".."2026-11-30T20:40:44.000000000Z").contains(&time)
    }),
    (&["--until", "2026-11-29"], |record| {
        record["ts"].as_str().is_some_and(|time| time < "2026-11-30")
    }),
    (&["--until", "2020-01-01"], |_| false),
];

fn below(record: &Value, root: &str) -> bool {
    let object = &record["object"];
    [&object["path"], &object["other"]["path"], &object["interpreter"]]
        .into_iter()
        .filter_map(Value::as_str)
        .any(|path| path == root || path.starts_with(&format!("{root}/")))
}

#[test]
fn what_is_found_is_what_is_meant() {
    let lines = lines();
    assert!(lines.len() > 200);
    for (question, meant) in QUESTIONS {
        let expected: Vec<&str> = lines
            .iter()
            .filter(|(_, record)| meant(record))
            .map(|(line, _)| line.as_str())
            .collect();
        let args = [&["query", ".", "--format", "json"], *question].concat();
        let printed = answer(&args);
        let same = printed.lines().collect::<Vec<_>>() == expected;
        assert!(same, "{question:?}: {} lines, not {}", printed.lines().count(), expected.len());
        // And counted.
        for by in ["class", "program"] {
            let by = format!("--count={by}");
            let counted = answer(&[&["query", ".", "--format", "json", &by], *question].concat());
            let counted: Value = serde_json::from_str(&counted).expect("JSON");
            assert_eq!(counted["records"], expected.len(), "{question:?} {by}");
            let sum: u64 = counted["counts"]
                .as_array()
                .expect("counts")
                .iter()
                .filter_map(|count| count["records"].as_u64())
                .sum();
            assert_eq!(sum, expected.len() as u64, "{question:?} {by}");
        }
    }
}

#[test]
fn pages_are_the_whole() {
    let whole = answer(&["query", TUESDAY, "--format", "json"]);
    let mut pages = String::new();
    for skip in 0.. {
        let skip = (skip * 7).to_string();
        let output = ask(&["query", TUESDAY, "--format", "json", "--limit", "7", "--skip", &skip]);
        pages += &String::from_utf8(output.stdout.clone()).expect("UTF-8");
        if said(&output).is_empty() {
            break;
        }
        let next = skip.parse::<u64>().expect("a number") + 7;
        assert!(said(&output).contains(&format!("--skip {next}")), "{}", said(&output));
    }
    assert_eq!(pages, whole);
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    for args in [&["query", "."][..], &["query", ".", "--format", "json"], &["timeline", "."]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
        command.current_dir(common::corpus()).arg("log").args(args);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let mut said = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("UTF-8");
        assert_eq!(child.wait().expect("it ends").code(), Some(0), "{args:?}: {said}");
        assert_eq!(said, "", "{args:?}");
    }
    let full = File::create("/dev/full").expect("/dev/full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
    command.current_dir(common::corpus()).args(["log", "query", TUESDAY]).stdout(full);
    let output = command.output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("cannot write to standard output"), "{}", said(&output));
}

/// A log's job can choose every name in it.
#[test]
fn no_name_steers_a_terminal() {
    let dir = tempfile::tempdir().expect("a directory");
    let hostile = "/a\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\r\n/<b>";
    let mut log = String::new();
    for line in
        String::from_utf8(common::unpacked(&common::corpus().join(TUESDAY))).expect("UTF-8").lines()
    {
        let mut record: Value = serde_json::from_str(line).expect("JSON");
        for (object, key) in
            [("object", "path"), ("process", "exe"), ("process", "comm"), ("rule", "file")]
        {
            if record[object][key].is_string() {
                record[object][key] = hostile.into();
            }
        }
        if let Some(argv) = record["object"].get_mut("argv").and_then(Value::as_array_mut) {
            argv.push(hostile.into());
        }
        record["job"] = "job\u{1b}[2J".into();
        log += &format!("{record}\n");
    }
    fs::write(dir.path().join("events.jsonl"), &log).expect("write");
    let place = text(dir.path());
    for args in [
        &["query", place][..],
        &["query", place, "--count=path"],
        &["query", place, "--count=program"],
        &["tree", place, "--all"],
        &["timeline", place],
        &["who-touched", "/", place],
        &["diff", place, TUESDAY],
    ] {
        let output = ask(args);
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(printed.lines().count() > 1 && !printed.contains(steers), "{args:?}: {printed:?}");
    }
    // Machines get the names as they are.
    assert_eq!(answer(&["query", place, "--format", "json"]), log);
}

#[test]
fn a_damaged_log_is_read_as_far_as_it_is_good() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("events.jsonl");
    let place = text(dir.path());
    let bytes = common::unpacked(&common::corpus().join(MONDAY));
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let printed = |args: &[&str]| {
        let output = ask(args);
        let said = said(&output);
        let count = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        (output.status.code(), count, said)
    };
    let query = ["query", place, "--format", "json"];

    let mut changed = lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
    changed[7][0] = b'[';
    fs::write(&file, changed.concat()).expect("write");
    let (code, count, said) = printed(&query);
    assert_eq!((code, count), (Some(2), 7));
    assert!(said.contains("record 7") && said.contains(place), "{said}");

    // In the middle, where only who reads all of the record sees it.
    let mut changed = lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
    let at = changed[9].len() / 2;
    changed[9][at..at + 3].copy_from_slice(b"\"\"\"");
    fs::write(&file, changed.concat()).expect("write");
    let (code, count, said) = printed(&["query", place, "--format", "json", "--path", "/"]);
    assert!(code == Some(2) && count < lines.len() && said.contains("record 9"), "{said}");

    // Removed, and put in.
    fs::write(&file, [&lines[..5], &lines[6..]].concat().concat()).expect("write");
    assert_eq!(printed(&query).0, Some(2));
    fs::write(&file, [lines[..5].concat(), lines[3..].concat()].concat()).expect("write");
    assert_eq!((printed(&query).0, printed(&query).1), (Some(2), 5));

    // A job that still runs has no closing record, and may be in the middle of one.
    for cut in [lines[..5].concat().len(), lines[..5].concat().len() + 100] {
        fs::write(&file, &bytes[..cut]).expect("write");
        let (code, count, said) = printed(&query);
        assert_eq!((code, count), (Some(0), 5));
        assert!(said.contains("no closing record") && said.contains("5 records"), "{said}");
    }

    fs::write(&file, "").expect("write");
    let (code, count, said) = printed(&query);
    assert!(code == Some(2) && count == 0 && said.contains("empty"), "{said}");
    // The others are asked all the same.
    let (code, count, _) = printed(&["query", place, MONDAY, "--format", "json"]);
    assert_eq!((code, count), (Some(2), lines.len()));
    for command in ["tree", "timeline"] {
        let (code, count, _) = printed(&[command, place, MONDAY]);
        assert!(code == Some(2) && count > 1, "{command}");
    }
}

#[test]
fn logs_are_found_wherever_they_lie_below() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = dir.path();
    for (number, log) in [MONDAY, TUESDAY, "tracepoint-segments"].iter().enumerate() {
        let job = state.join(format!("jobs/{number}/out"));
        fs::create_dir_all(&job).expect("a directory");
        for entry in fs::read_dir(common::corpus().join(log)).expect(log) {
            let entry = entry.expect(log);
            fs::copy(entry.path(), job.join(entry.file_name())).expect("copy");
        }
    }
    // Round in a circle, and to what is no log.
    symlink(state, state.join("jobs/round")).expect("a link");
    fs::create_dir(state.join("jobs/empty")).expect("a directory");
    let jobs: Value =
        serde_json::from_str(&answer(&["query", text(state), "--count=job", "--format", "json"]))
            .expect("JSON");
    assert_eq!(jobs["counts"].as_array().expect("counts").len(), 3);
    // Named twice it is one log.
    let (one, twice) = (answer(&["query", MONDAY]), answer(&["query", MONDAY, MONDAY]));
    assert_eq!(one.lines().count(), twice.lines().count());

    for (args, why) in [
        (&["query", text(&state.join("jobs/empty"))][..], "holds no log"),
        (&["query", "no-such-log"], "cannot read the log no-such-log"),
        (&["diff", text(state), MONDAY], "holds 3 logs"),
        (&["query", MONDAY, "--class", "files"], "there is no class \"files\""),
        (&["query", MONDAY, "--action", "open"], "open_read"),
        (&["query", MONDAY, "--host", "10.0.0.0/40"], "is no network"),
        (&["query", MONDAY, "--since", "yesterday"], "is no time"),
        (&["query", MONDAY, "--format", "sarif"], "--format json"),
    ] {
        let output = ask(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && said(&output).contains(why), "{}", said(&output));
    }
}

#[test]
fn a_run_is_the_same_as_itself() {
    for log in corpus() {
        let printed = answer(&["diff", text(&log), text(&log), "--format", "json"]);
        let difference: Value = serde_json::from_str(&printed).expect("JSON");
        assert_eq!(difference["changes"], Value::Array(Vec::new()), "{}", log.display());
    }
}

/// Two engines that are not ours read the archive, and say what `query` says.
#[test]
fn others_read_the_archive() {
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("records.parquet");
    let told = answer(&["export", ".", "--parquet", text(&archive)]);
    let lines = lines();
    assert!(told.starts_with(&format!("{} records", lines.len())), "{told}");
    // What is there is not written over.
    let again = ask(&["export", ".", "--parquet", text(&archive)]);
    assert_eq!(again.status.code(), Some(2));
    assert!(said(&again).contains("is there already"), "{}", said(&again));

    let python = std::env::var_os("EFFECTGATE_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/bin/python3"),
        PathBuf::from,
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/archive.py");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/forensics.md");
    let output = Command::new(&python).arg(script).args([&archive, &page]).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{}: {error}; `cargo xtask setup --for test` installs it", python.display())
    });
    assert!(output.status.success(), "{}", said(&output));
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let documented = answers["documented"].as_array().expect("answers");
    assert!(documented.len() > 3 && documented[0] != 0, "{documented:?}");
    for engine in ["duckdb", "polars"] {
        for (name, question) in [
            ("outside", &["--outside"][..]),
            ("net", &["--class", "net"]),
            ("usr-lib", &["--path", "/usr/lib"]),
            ("curl", &["--program", "curl"]),
            ("job", &["--job", "run-32026"]),
            ("rule", &["--rule", "network"]),
            ("time", &["--since", "2026-11-30T20:40:43.1Z", "--until", "2026-11-30T20:40:44Z"]),
            ("host", &["--host", "192.0.2.7:8080"]),
        ] {
            let args = [&["query", ".", "--format", "json"], question].concat();
            let ours: Vec<Value> = answer(&args)
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["hash"].clone())
                .collect();
            assert!(!ours.is_empty(), "{name}");
            assert_eq!(answers[engine][name], Value::Array(ours), "{engine}: {name}");
        }
        // Everything that has a column, of every record.
        let rows = answers[engine]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), lines.len());
        for (row, (line, record)) in rows.iter().zip(&lines) {
            let object = &record["object"];
            let process = &record["process"];
            let list = |value: &Value| {
                if value.is_array() { value.clone() } else { Value::Array(Vec::new()) }
            };
            for (column, expected) in [
                ("seq", record["seq"].clone()),
                ("ts", record["ts"].clone()),
                ("class", record["class"].clone()),
                ("within", record["within"].clone()),
                ("hash", record["hash"].clone()),
                ("rule_line", record["rule"]["line"].clone()),
                ("pid", process["pid"].clone()),
                ("start", process["start"].clone()),
                ("exe", process["exe"].clone()),
                ("ancestry", list(&process["ancestry"])),
                ("argv", list(&object["argv"])),
                ("names", list(&object["names"])),
                ("path", object["path"].clone()),
                ("port", object["port"].clone()),
                ("object", object.clone()),
            ] {
                assert_eq!(row[column], expected, "{engine}: {column} of {line}");
            }
        }
    }
}

/// As they are kept: packed, and signed or not.
#[test]
fn a_packed_bundle_answers_as_it_did_before() {
    let bundles = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles");
    let dir = tempfile::tempdir().expect("a directory");
    let packed = dir.path().join("pass.tar.zst");
    effectgate_daemon::bundle::pack(
        &effectgate_daemon::bundle::Bundle::open(&bundles.join("pass"), &mut Vec::new())
            .expect("a bundle"),
        &packed,
    )
    .expect("packed");
    let whole = bundles.join("pass");
    for question in ["query", "tree", "timeline"] {
        let asked = |log: &Path| answer(&[question, text(log), "--format", "json"]);
        assert_eq!(asked(&packed), asked(&whole), "{question}");
        // Found below a directory, too.
        assert_eq!(asked(dir.path()), asked(&whole), "{question}");
    }
    let replay = |log: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_effectgate"));
        command.arg("replay").arg(log).arg("--envelope").arg(whole.join("policy"));
        let output = command.output().expect("it starts");
        (output.status.code(), output.stdout)
    };
    assert_eq!(replay(&packed), replay(&whole));
}

#[test]
fn a_path_is_found_however_it_is_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let touched = |path: &str| answer(&["who-touched", path, MONDAY]);
    let all = answer(&["query", MONDAY, "--class", "file", "--format", "json"]);
    let record: Value = serde_json::from_str(all.lines().next().expect("a record")).expect("JSON");
    let path = record["object"]["path"].as_str().expect("a path");
    let told = touched(path);
    assert!(!told.contains("nobody"), "{told}");
    assert_eq!(touched(&format!("/nowhere/..{path}")), told);
    assert_eq!(touched(&format!("{path}/x/../.")), told);
    // A link here leads to where the records are.
    let link = dir.path().join("link");
    symlink("/usr", &link).expect("a link");
    let by_link = touched(text(&link));
    assert_eq!(by_link, touched("/usr"));
}

#[test]
fn what_a_link_leads_to_is_not_passed_over_in_silence() {
    let (dir, elsewhere) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
    for (place, log) in [(dir.path().join("a"), MONDAY), (elsewhere.path().join("b"), TUESDAY)] {
        fs::create_dir(&place).expect("a directory");
        for entry in fs::read_dir(common::corpus().join(log)).expect(log) {
            let entry = entry.expect(log);
            fs::copy(entry.path(), place.join(entry.file_name())).expect("copy");
        }
    }
    symlink(elsewhere.path().join("b"), dir.path().join("b")).expect("a link");
    let output = ask(&["query", text(dir.path())]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("b leads elsewhere and was not followed"), "{}", said(&output));
    // Named, it is read; and once, whatever it is called.
    let (log, place) = (dir.path().join("b/events.jsonl"), elsewhere.path());
    let counted = answer(&["query", text(&log), text(place), "--count=job"]);
    let once = answer(&["query", text(&elsewhere.path().join("b")), "--count=job"]);
    assert_eq!(counted, once);
}

/// Packed beside its directory, as whoever keeps it does it.
#[test]
fn a_log_and_its_packed_bundle_are_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let (bundles, one) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bundles/pass"), dir.path().join("one"));
    fs::create_dir(&one).expect("a directory");
    for entry in fs::read_dir(&bundles).expect("a bundle") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), one.join(entry.file_name())).expect("copy");
    }
    let bundle = effectgate_daemon::bundle::Bundle::open(&one, &mut Vec::new()).expect("open");
    let packed = dir.path().join("one.tar.zst");
    effectgate_daemon::bundle::pack(&bundle, &packed).expect("packed");
    let counted = |log: &Path| answer(&["query", text(log), "--count=job"]);
    assert_eq!(counted(dir.path()), counted(&one));
}

/// What the job removed is not there any more; where it was can still be told.
#[test]
fn a_path_through_a_link_is_found_when_its_end_is_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let link = dir.path().join("link");
    symlink("/usr", &link).expect("a link");
    let gone = "lib/no-such-file-there";
    let filter = |path: &Path| answer(&["query", MONDAY, "--path", text(path), "--count=path"]);
    assert_eq!(filter(&link.join(gone)), filter(&Path::new("/usr").join(gone)));
    assert_eq!(filter(&link.join("bin/cp")), filter(Path::new("/usr/bin/cp")));
    assert!(filter(&link.join("bin/cp")).contains("/usr/bin/cp"));
}
