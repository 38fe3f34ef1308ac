//! Prometheus itself reads the metrics.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Command, Stdio};

use effectgate_tests::daemon::{Daemon, free_port, try_get};
use effectgate_tests::{Scene, metrics, wait};

use crate::house::Job;

/// A daemon that has judged something.
fn busy() -> Daemon {
    let daemon = Daemon::start();
    let scene = Scene::new();
    let file = scene.outside().join("file");
    let words = ["open-write", file.to_str().expect("UTF-8")];
    let mut job = Job::start(&daemon, "scraped", scene, &words);
    job.release();
    job.wait();
    job.finish(&daemon);
    daemon
}

fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|place| place.join(program).is_file()) {
        return true;
    }
    let declared = std::env::var("EFFECTGATE_TEST_NO_TOOLCHAIN").is_ok_and(|value| value == "1");
    assert!(
        declared,
        "{program} is not installed; install Debian's package prometheus, or set \
         EFFECTGATE_TEST_NO_TOOLCHAIN=1"
    );
    println!("not tested: {program} is not installed");
    false
}

#[test]
fn metrics_are_text_and_tell_no_names() {
    let daemon = busy();
    let text = daemon.metrics();
    let samples = metrics::parse(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
    assert!(samples.iter().any(|sample| sample.name.starts_with("effectgate_")), "{text}");
    for name in ["scraped", "/outside/", "trigger"] {
        assert!(!text.contains(name), "{name} is in the metrics:\n{text}");
    }
}

#[test]
fn promtool_is_content() {
    if !have("promtool") {
        return;
    }
    let daemon = busy();
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool can be started");
    let text = daemon.metrics();
    promtool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    assert!(output.status.success(), "{output:?}\n{text}");
    assert!(output.stderr.is_empty() && output.stdout.is_empty(), "{output:?}\n{text}");
}

/// Ended with the test.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_scrapes() {
    if !have("prometheus") {
        return;
    }
    let daemon = busy();
    let scene = Scene::new();
    let config = scene.path().join("prometheus.yml");
    fs::write(
        &config,
        format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n\
             - job_name: effectgate\n  static_configs:\n  - targets: ['127.0.0.1:{}']\n",
            daemon.port
        ),
    )
    .expect("write");
    let port = free_port();
    let log = File::create(scene.path().join("prometheus.log")).expect("create");
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", scene.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("dup"))
        .stderr(log)
        .spawn()
        .expect("prometheus can be started");
    let _prometheus = Prometheus(child);

    let value = |query: &str| {
        let answer = try_get(port, &format!("/api/v1/query?query={query}"))?;
        let answer: serde_json::Value = serde_json::from_str(&answer).ok()?;
        let result = answer["data"]["result"].as_array()?.first()?;
        result["value"][1].as_str()?.parse::<f64>().ok()
    };
    wait::until("Prometheus finds the daemon up", || (value("up") == Some(1.0)).then_some(()));
    let name = "count(%7B__name__=~%22effectgate_.*%22%7D)";
    wait::until("Prometheus has the daemon's samples", || {
        value(name).filter(|count| *count >= 1.0)
    });
}
