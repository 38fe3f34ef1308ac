//! What watching costs, side by side: the same loop in a job, outside any job
//! while one runs, and with nobody watching, in turns within one run; then how
//! long a start takes, how fast events are judged, and how much memory it takes.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use effectgate_tests::{Scene, gate, wait};

use crate::operations::OPERATIONS;

pub fn main(rounds: usize, millis: usize) -> Result<()> {
    let bench = Bench::new(rounds, millis)?;
    println!("{} rounds of {} ms each, medians; backend {}", rounds, millis, gate::backend());
    println!();
    bench.loops()?;
    println!();
    bench.start_up()?;
    bench.pipeline()?;
    println!();
    Ok(())
}

struct Bench {
    rounds: usize,
    millis: String,
    scene: Scene,
    address: SocketAddr,
    /// Somebody to connect to.
    _socket: UdpSocket,
    effectgate: PathBuf,
    trigger: PathBuf,
}

impl Bench {
    fn new(rounds: usize, millis: usize) -> Result<Bench> {
        let scene = Scene::new();
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        let address = socket.local_addr()?;
        scene.allow_hosts(&[address.to_string()]);
        Ok(Bench {
            rounds,
            millis: millis.to_string(),
            scene,
            address,
            _socket: socket,
            effectgate: gate::binary(),
            trigger: gate::trigger(),
        })
    }

    /// Words of `trigger` for one loop.
    fn words(&self, what: &str) -> Vec<String> {
        let argument = match what {
            "create" => self.scene.root().join("made").display().to_string(),
            "connect" => self.address.to_string(),
            _ => self.scene.root().join("file").display().to_string(),
        };
        vec!["measure".into(), what.into(), self.millis.clone(), argument]
    }

    fn bare(&self, what: &str) -> Result<f64> {
        let output = Command::new(&self.trigger).args(self.words(what)).output()?;
        rate(&output)
    }

    /// With a job of somebody else's beside it.
    fn outside(&self, what: &str) -> Result<f64> {
        let _job = Idle::start(self)?;
        self.bare(what)
    }

    /// The rate, and how many records were lost.
    fn inside(&self, what: &str) -> Result<(f64, u64)> {
        let evidence = self.scene.new_evidence();
        let output = self.run(&evidence).arg(&self.trigger).args(self.words(what)).output()?;
        let lost = lost(&evidence).with_context(|| format!("{output:?}"))?;
        fs::remove_dir_all(evidence)?;
        Ok((rate(&output)?, lost))
    }

    /// `effectgate run …`, up to the command.
    fn run(&self, evidence: &Path) -> Command {
        let mut command = Command::new(&self.effectgate);
        command
            .arg("run")
            .arg("--envelope")
            .arg(self.scene.envelope())
            .args(["--backend", &gate::backend()])
            .arg("--evidence")
            .arg(evidence)
            .arg("--")
            .stdin(Stdio::null());
        command
    }

    fn loops(&self) -> Result<()> {
        println!(
            "{:<18}{:>12}{:>14}{:>8}{:>14}{:>8}{:>10}",
            "per second", "bare", "outside", "ratio", "inside", "ratio", "lost"
        );
        for (name, what) in OPERATIONS {
            let (mut bare, mut outside, mut inside, mut lost) = (vec![], vec![], vec![], 0);
            for _ in 0..self.rounds {
                bare.push(self.bare(what)?);
                outside.push(self.outside(what)?);
                let (rate, missed) = self.inside(what)?;
                inside.push(rate);
                lost += missed;
            }
            let [bare, outside, inside] = [bare, outside, inside].map(median);
            println!(
                "{name:<18}{:>12}{:>14}{:>8.2}{:>14}{:>8.2}{:>10}",
                thousands(bare),
                thousands(outside),
                outside / bare,
                thousands(inside),
                inside / bare,
                lost
            );
        }
        Ok(())
    }

    fn start_up(&self) -> Result<()> {
        let (mut plain, mut gated) = (vec![], vec![]);
        for _ in 0..self.rounds.max(5) {
            let start = Instant::now();
            ensure!(Command::new(&self.trigger).arg("true").status()?.success());
            plain.push(milliseconds(start.elapsed()));
            let evidence = self.scene.new_evidence();
            let start = Instant::now();
            let output = self.run(&evidence).arg(&self.trigger).arg("true").output()?;
            gated.push(milliseconds(start.elapsed()));
            ensure!(output.status.success(), "{output:?}");
        }
        println!("start-up          plain {:.1} ms, run {:.1} ms", median(plain), median(gated));
        Ok(())
    }

    /// Live, from the first effect to the verdict, and replayed from the log.
    fn pipeline(&self) -> Result<()> {
        let (mut live, mut replayed, mut memory, mut events) = (vec![], vec![], 0, 0);
        for _ in 0..self.rounds {
            let evidence = self.scene.new_evidence();
            let start = Instant::now();
            let mut child = self
                .run(&evidence)
                .arg(&self.trigger)
                .args(self.words("create"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            memory = memory.max(watch_memory(&mut child)?);
            let passed = start.elapsed();
            let log = evidence.join("events.jsonl");
            let count = fs::read(&log)?.iter().filter(|byte| **byte == b'\n').count();
            live.push(count as f64 / passed.as_secs_f64());

            let start = Instant::now();
            let output = Command::new(&self.effectgate)
                .arg("replay")
                .arg(&log)
                .arg("--envelope")
                .arg(self.scene.envelope())
                .output()?;
            let passed = start.elapsed();
            ensure!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
            replayed.push(count as f64 / passed.as_secs_f64());
            events = events.max(count);
            fs::remove_dir_all(evidence)?;
        }
        println!(
            "events per second live {} (start to verdict), replayed {}; of up to {}",
            thousands(median(live)),
            thousands(median(replayed)),
            thousands(events as f64)
        );
        println!("peak memory       {:.1} MiB", memory as f64 / 1024.0);
        Ok(())
    }
}

/// A job that does nothing, ended with the value.
struct Idle(Child);

impl Idle {
    fn start(bench: &Bench) -> Result<Idle> {
        let evidence = bench.scene.new_evidence();
        let ready = bench.scene.root().join("idle");
        let _ = fs::remove_file(&ready);
        let child = bench
            .run(&evidence)
            .arg(&bench.trigger)
            .arg("stubborn")
            .arg(&ready)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        wait::until("the idle job runs", || ready.exists().then_some(()));
        Ok(Idle(child))
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        wait::signal(self.0.id(), libc::SIGTERM);
        wait::exit(&mut self.0, "the idle job");
    }
}

/// The largest resident size of a child until it ends, in KiB.
fn watch_memory(child: &mut Child) -> Result<u64> {
    let path = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait()?.is_none() {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let now = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(now.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(peak)
}

/// The first number that the measured program printed.
fn rate(output: &Output) -> Result<f64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let word = text.split(' ').next().unwrap_or_default();
    word.parse().with_context(|| format!("no rate: {output:?}"))
}

fn lost(evidence: &Path) -> Result<u64> {
    let verdict: serde_json::Value =
        serde_json::from_slice(&fs::read(evidence.join("verdict.json"))?)?;
    let by_class = verdict["lost"].as_object().context("a verdict without `lost`")?;
    Ok(by_class.values().filter_map(serde_json::Value::as_u64).sum())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// `1,234,567`
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
