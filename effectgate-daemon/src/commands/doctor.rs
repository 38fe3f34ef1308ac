//! `effectgate doctor`: what this kernel allows, and how to get more.

use std::{fs, path::Path};

use effectgate_core::input::{Backend, Coverages};
use serde::Serialize;

use super::{print, print_json};
use crate::{
    cli::Format,
    engine::{Config, Engine, coverage},
    exit::{self, Outcomes},
    observe::{kernel, proc},
};

#[derive(Serialize)]
struct Report {
    kernel: String,
    root: bool,
    btf: bool,
    cgroup2: Option<String>,
    lsm: Option<String>,
    backends: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    backend: Backend,
    works: bool,
    why_not: Option<String>,
    coverage: Option<Coverages>,
    help: Option<&'static str>,
}

pub fn doctor(format: Format) -> Outcomes {
    let report = examine();
    match format {
        Format::Json => print_json(&report)?,
        Format::Text => print(&text(&report)),
    }
    let works = report.backends.iter().any(|finding| finding.works);
    Ok(if works { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}

fn examine() -> Report {
    let cgroup2 = proc::cgroup2();
    let backends = [Backend::Lsm, Backend::Fentry, Backend::TracePoint]
        .into_iter()
        .map(|backend| {
            let engine = if rustix::process::geteuid().is_root() {
                cgroup2.as_ref().map_err(|error| format!("{error:#}"))
            } else {
                Err("loading kernel programs needs root".to_owned())
            };
            let engine = engine.and_then(|root| {
                let config = Config {
                    backend: Some(backend),
                    ring_bytes: kernel::RING_BYTES,
                    cgroup_root: root.clone(),
                };
                Engine::start(config).map_err(|error| format!("{error:#}"))
            });
            Finding {
                backend,
                works: engine.is_ok(),
                coverage: engine.is_ok().then(|| coverage(backend)),
                help: engine.is_err().then(|| help(backend)),
                why_not: engine.err(),
            }
        })
        .collect();
    Report {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        root: rustix::process::geteuid().is_root(),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        cgroup2: cgroup2.ok().map(|path| path.display().to_string()),
        lsm: fs::read_to_string("/sys/kernel/security/lsm").ok(),
        backends,
    }
}

fn help(backend: Backend) -> &'static str {
    match backend {
        Backend::Lsm => {
            "needs root, a new enough kernel with BTF and CONFIG_BPF_LSM, and `bpf` in its `lsm=` list (kernel command line)"
        }
        Backend::Fentry => {
            "needs root, a new enough kernel with BTF and CONFIG_FUNCTION_TRACER; it sees what lsm sees, and can deny the network only"
        }
        Backend::TracePoint => "needs root, a new enough kernel with BTF, and cgroup v2",
    }
}

fn text(report: &Report) -> String {
    let yes = |value: bool| if value { "yes" } else { "no" };
    let missing = "not to be found";
    let mut text = format!(
        "kernel {}\nroot: {}\nBTF: {}\ncgroup v2: {}\nactive LSMs: {}\n",
        report.kernel,
        yes(report.root),
        yes(report.btf),
        report.cgroup2.as_deref().unwrap_or(missing),
        report.lsm.as_deref().unwrap_or("unknown (securityfs is not mounted)"),
    );
    for finding in &report.backends {
        let name = finding.backend.name();
        match (&finding.coverage, &finding.why_not) {
            (Some(coverage), _) => {
                let classes: Vec<String> = coverage
                    .each()
                    .map(|(class, coverage)| format!("{} {}", class.name(), coverage.name()))
                    .collect();
                text.push_str(&format!("\n{name}: works\n  coverage: {}\n", classes.join(", ")));
            }
            (None, why) => text.push_str(&format!(
                "\n{name}: not to be had\n  {}\n  {}\n",
                why.as_deref().unwrap_or_default().replace('\n', "\n  "),
                finding.help.unwrap_or_default()
            )),
        }
    }
    text
}
