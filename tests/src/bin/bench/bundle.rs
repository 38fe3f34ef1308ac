//! How large the evidence of a job is, by what the job did.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use effectgate_tests::{Scene, gate};

/// Files that the job makes, each an effect of its own.
const FILES: [u64; 3] = [1_000, 10_000, 100_000];

pub fn main() -> Result<()> {
    println!("a bundle, in bytes per 1,000 records");
    println!(
        "{:<20}{:>12}{:>12}{:>12}{:>12}",
        "files made", "records", "log", "statement", ".tar.zst"
    );
    for files in FILES {
        let scene = Scene::new();
        let key = scene.path().join("key.pem");
        let mut make = Command::new("openssl");
        ensure!(
            make.args(["genpkey", "-algorithm", "ed25519", "-out"]).arg(&key).status()?.success(),
            "openssl makes no key"
        );
        let evidence = scene.new_evidence();
        let script = format!("i=0; while [ $i -lt {files} ]; do : > f$i; i=$((i+1)); done");
        let mut run = Command::new(gate::binary());
        run.arg("run").arg("--envelope").arg(scene.envelope()).arg("--sign-key").arg(&key);
        run.arg("--evidence").arg(&evidence).args(["--", "sh", "-c", &script]);
        let output =
            run.env_clear().env("PATH", "/usr/bin:/bin").current_dir(scene.root()).output();
        let output = output.context("the binary can be started")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let packed = scene.path().join("b.tar.zst");
        let mut pack = Command::new(gate::binary());
        pack.arg("bundle").arg(&evidence).arg("--output").arg(&packed);
        ensure!(pack.output()?.status.success(), "the bundle was not packed");
        let verdict = fs::read(evidence.join("verdict.json"))?;
        let verdict: serde_json::Value = serde_json::from_slice(&verdict)?;
        let records = verdict["log"]["records"].as_u64().context("a count of records")?;
        let per = |bytes: u64| bytes * 1000 / records.max(1);
        println!(
            "{files:<20}{records:>12}{:>12}{:>12}{:>12}",
            per(log(&evidence)?),
            per(fs::metadata(evidence.join("statement.dsse.json"))?.len()),
            per(fs::metadata(&packed)?.len())
        );
    }
    println!();
    Ok(())
}

/// Bytes of the log's segments, as they lie there.
fn log(evidence: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(evidence)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("events") {
            sum += entry.metadata()?.len();
        }
    }
    Ok(sum)
}
