//! How fast questions to a log are answered, beside DuckDB on the exported
//! archive and `jq` on the log itself; and how much memory that takes.
//!
//! `bench_questions [RECORDS] [ROUNDS]`, with `EFFECTGATE_BIN` set, and
//! `EFFECTGATE_PYTHON` for DuckDB. What is not installed is left out.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use effectgate_tests::gate;
use effectgate_tests::measure::{measure, median};

/// A question to `log query`, to DuckDB, and to jq.
struct Question {
    name: &'static str,
    ours: &'static [&'static str],
    sql: &'static str,
    jq: &'static str,
}

const QUESTIONS: &[Question] = &[
    Question {
        name: "how many, by class",
        ours: &["--count=class"],
        sql: "select class, count(*), count(*) filter (not within) from LOG group by class",
        jq: "reduce inputs as $r ({}; .[$r.class] += 1)",
    },
    Question {
        name: "how many, by program",
        ours: &["--count=program"],
        sql: "select exe, count(*) from LOG group by exe",
        jq: "reduce inputs as $r ({}; .[$r.process.exe // \"\"] += 1)",
    },
    Question {
        name: "all outside",
        ours: &["--outside", "--format", "json"],
        sql: "select * from LOG where not within",
        jq: "inputs | select(.within | not)",
    },
    Question {
        name: "one host",
        ours: &["--host", "198.51.100.0/24", "--format", "json"],
        sql: "select * from LOG where address like '198.51.100.%'",
        jq: "inputs | select(.object.address // \"\" | startswith(\"198.51.100.\"))",
    },
    Question {
        name: "one path",
        ours: &["--path", "/etc/shadow", "--format", "json"],
        sql: "select * from LOG where path = '/etc/shadow' or path like '/etc/shadow/%'",
        jq: "inputs | select(.object.path == \"/etc/shadow\")",
    },
    Question {
        name: "one minute",
        ours: &[
            "--since",
            "2026-01-31T12:10:00Z",
            "--until",
            "2026-01-31T12:11:00Z",
            "--format",
            "json",
        ],
        sql: "select * from LOG where ts >= timestamptz '2026-01-31 12:10:00+00' \
              and ts < timestamptz '2026-01-31 12:11:00+00'",
        jq: "inputs | select(.ts >= \"2026-01-31T12:10:00\" and .ts < \"2026-01-31T12:11:00\")",
    },
];

/// Fetches every row: what is found must be told.
const DUCKDB: &str = "import duckdb, sys
cursor = duckdb.execute(sys.argv[2].replace('LOG', \"'\" + sys.argv[1] + \"'\"))
while rows := cursor.fetchmany(10000): pass
";

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let records = numbers.next().transpose()?.unwrap_or(1_000_000).max(1000);
    let rounds = numbers.next().transpose()?.unwrap_or(3).max(1);
    let place = tempfile::TempDir::new()?;
    let (log, archive) = (place.path().join("events.jsonl"), place.path().join("log.parquet"));
    let bytes = write(&log, records)?;
    let python = std::env::var_os("EFFECTGATE_PYTHON").filter(|path| Path::new(path).is_file());
    println!(
        "{records} records, {bytes} bytes; {rounds} rounds (jq: one), medians, seconds of wall time"
    );
    let mut export = ours("export", &log);
    let exported = measure(export.arg("--parquet").arg(&archive)).context("export")?;
    println!(
        "export: {:.2} s, {} bytes, peak memory {} KiB",
        exported.wall.as_secs_f64(),
        archive.metadata()?.len(),
        exported.peak
    );
    println!(
        "{:<22}{:>10}{:>10}{:>10}{:>12}{:>12}{:>16}",
        "question", "ours", "duckdb", "jq", "ours/duckdb", "ours/jq", "peak memory KiB"
    );
    for question in QUESTIONS {
        let mut own = Vec::new();
        let mut engine = Vec::new();
        for _ in 0..rounds {
            own.push(measure(ours("query", &log).args(question.ours)).context(question.name)?);
            if let Some(python) = &python {
                let mut command = Command::new(python);
                command.args(["-c", DUCKDB]).arg(&archive).arg(question.sql);
                engine.push(measure(&mut command).context("DuckDB")?);
            }
        }
        let mut command = Command::new("jq");
        let other = measure(command.args(["-n", "-c", question.jq]).arg(&log)).ok();
        let peak = own.iter().map(|one| one.peak).max().unwrap_or_default();
        let own = median(own.iter().map(|one| one.wall)).as_secs_f64();
        let engine =
            (!engine.is_empty()).then(|| median(engine.iter().map(|one| one.wall)).as_secs_f64());
        let other = other.map(|one| one.wall.as_secs_f64());
        let shown = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.2}"));
        println!(
            "{:<22}{own:>10.2}{:>10}{:>10}{:>12}{:>12}{peak:>16}",
            question.name,
            shown(engine),
            shown(other),
            shown(engine.map(|time| own / time)),
            shown(other.map(|time| own / time)),
        );
    }
    Ok(())
}

fn ours(what: &str, log: &Path) -> Command {
    let mut command = Command::new(gate::binary());
    command.args(["log", what]).arg(log);
    command
}

/// A log as a long build writes it, a record each two hundred microseconds:
/// one in a thousand reaches a host, one in a hundred thousand is outside.
fn write(path: &Path, records: u64) -> Result<u64> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut written = 0;
    let mut hash = digest(0);
    for seq in 0..records {
        let next = digest(seq + 1);
        let (class, action, object, rule) = match seq {
            0 => ("guard", "start", r#"{"roots":[],"what":"observation starts"}"#.to_owned(), "observer"),
            _ if seq + 1 == records => (
                "guard",
                "verdict",
                r#"{"exit":{"code":0},"verdict":"fail","what":"observation ends"}"#.to_owned(),
                "observer",
            ),
            _ if seq % 100_000 == 77 => (
                "file",
                "open_read",
                r#"{"credential":true,"dev":"254:0","ino":77,"magic":61267,"mode":33152,"op":"open_read","path":"/etc/shadow","root":null}"#.to_owned(),
                "reads",
            ),
            _ if seq % 1000 == 5 => {
                let (network, host) = if seq % 50_000 == 5 { ("198.51.100", 9) } else { ("192.0.2", seq / 1000 % 250) };
                let object = format!(
                    r#"{{"address":"{network}.{host}","family":"ipv4","name":null,"op":"connect","port":443,"protocol":"tcp"}}"#
                );
                ("net", "connect", object, "network")
            }
            _ if seq % 60 == 1 => {
                let object = format!(
                    r#"{{"argv":["cc","-O2","-Wall","-Iinclude","-c","src/m{0}/f{seq}.c","-o","build/m{0}/f{seq}.o"],"dev":"254:0","ino":247932,"interpreter":null,"magic":61267,"mode":33261,"path":"/usr/bin/x86_64-linux-gnu-gcc-12","ppid":41,"root":null,"start":{seq}}}"#,
                    seq / 60 % 500
                );
                ("exec", "exec", object, "processes")
            }
            _ => {
                let (action, tree) =
                    if seq.is_multiple_of(3) { ("create", "home/ci/repo/build") } else { ("open_read", "usr/include") };
                let object = format!(
                    r#"{{"dev":"254:0","ino":{seq},"magic":61267,"mode":33188,"op":"{action}","path":"/{tree}/m{}/f{}.h","root":"/{tree}"}}"#,
                    seq / 60 % 500,
                    seq % 9973
                );
                ("file", action, object, "allowed_roots")
            }
        };
        let process = match class {
            "guard" => "null".to_owned(),
            _ => {
                let (pid, program) = (
                    1000 + seq / 60 % 30000,
                    ["x86_64-linux-gnu-gcc-12", "make", "git", "dash"][seq as usize / 60 % 4],
                );
                format!(
                    r#"{{"ancestry":[{{"comm":"make","exe":"/usr/bin/make","pid":42}},{{"comm":"sh","exe":"/usr/bin/dash","pid":41}}],"comm":"cc","exe":"/usr/bin/{program}","pid":{pid},"ppid":42,"start":{},"uid":1000}}"#,
                    12_112_395_963_186 + seq / 60
                )
            }
        };
        let within = seq % 100_000 != 77;
        let ts = effectgate_core::time::format(1_769_860_800_000_000_000 + seq * 200_000);
        let decision = if within && class != "guard" { "allowed" } else { "recorded" };
        let line = format!(
            "{{\"action\":\"{action}\",\"class\":\"{class}\",\"coverage\":\"object\",\"decision\":\"{decision}\",\
             \"hash\":\"{next}\",\"job\":\"bench\",\"object\":{object},\"prev\":\"{hash}\",\"process\":{process},\
             \"rule\":{{\"file\":\"agent.json\",\"line\":3,\"name\":\"{rule}\"}},\"schema\":\"effectgate.event/v1\",\
             \"seq\":{seq},\"ts\":\"{ts}\",\"within\":{within}}}\n"
        );
        hash = next;
        file.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    file.flush()?;
    Ok(written)
}

/// As hard to compress as a digest (SplitMix64; Steele, Lea and Flood, 2014).
fn digest(number: u64) -> String {
    let word = |lane: u64| {
        let mut z = (number * 4 + lane).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    format!("{:016x}{:016x}{:016x}{:016x}", word(0), word(1), word(2), word(3))
}
