//! Installing Debian packages.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::run::{is_root, output, run, succeeds, which};

/// Installs `packages`, as root or through sudo. It is called only when
/// something is missing, so the package lists are fetched only then.
pub fn install(packages: &[&str]) -> Result<()> {
    if which("apt-get").is_none() {
        bail!(
            "missing on this machine, which has no apt-get: what Debian packages as {}; \
             install these with the system's own package manager, then run this again",
            packages.join(" ")
        );
    }
    if !is_root() && which("sudo").is_none() {
        bail!(
            "missing: {0}; this is not root and there is no sudo. As root, run:\n  \
             apt-get update && apt-get install --no-install-recommends {0}",
            packages.join(" ")
        );
    }
    eprintln!("setup: installing {}", packages.join(" "));
    let mut install = vec!["install", "--yes", "--no-install-recommends"];
    install.extend(packages);
    refresh()?;
    run(&mut privileged("apt-get", &install))?;
    if packages.contains(&"prometheus") {
        stop_prometheus();
    }
    Ok(())
}

/// Whether the machine's sources have all of `packages`.
pub fn offers(packages: &[&str]) -> bool {
    let known = || packages.iter().all(|package| has_candidate(package));
    if which("apt-cache").is_none() {
        return false;
    }
    // Without lists nothing has a candidate; that says nothing yet.
    known() || (can_install() && refresh().is_ok() && known())
}

/// Fetches the package lists, once: they are often absent (a bare container)
/// or older than the mirror.
fn refresh() -> Result<()> {
    static FRESH: AtomicBool = AtomicBool::new(false);
    if !FRESH.load(Ordering::Relaxed) {
        run(&mut privileged("apt-get", &["update"]))?;
        FRESH.store(true, Ordering::Relaxed);
    }
    Ok(())
}

fn has_candidate(package: &str) -> bool {
    output(Command::new("apt-cache").args(["policy", package]))
        .is_ok_and(|policy| policy.contains("Candidate:") && !policy.contains("Candidate: (none)"))
}

fn can_install() -> bool {
    which("apt-get").is_some() && (is_root() || which("sudo").is_some())
}

/// The tests need promtool and start a server of their own; the package's
/// service would only take its port.
fn stop_prometheus() {
    if Path::new("/run/systemd/system").is_dir() {
        let stop = ["disable", "--now", "prometheus.service"];
        if succeeds(&mut privileged("systemctl", &stop)) {
            eprintln!("setup: stopped and disabled the service that the package started");
        }
    } else if Path::new("/etc/init.d/prometheus").is_file() {
        // Best effort: it usually never started.
        let _ = succeeds(&mut privileged("/etc/init.d/prometheus", &["stop"]));
    }
}

fn privileged(program: &str, args: &[&str]) -> Command {
    let mut command = if is_root() {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    };
    command.arg("DEBIAN_FRONTEND=noninteractive").arg(program).args(args);
    command
}
