//! Metrics in Prometheus' text format. No run, job, path or host is a label.

use std::{fs::Permissions, io::Write, os::unix::fs::PermissionsExt, path::Path};

use anyhow::{Context, Result};
use effectgate_core::{
    Line, Outcome, Verdict,
    dropped::Why,
    input::{Backend, Class, Coverages, Stage},
    judge::Decision,
};
use prometheus::{
    Encoder, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::whole::directory;

/// Every metric of one engine.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    verdicts: IntCounterVec,
    effects: IntCounterVec,
    violations: IntCounterVec,
    lost: IntCounterVec,
    dropped: IntCounterVec,
    ignored: IntCounter,
    jobs: IntGauge,
    backend: IntGaugeVec,
    coverage: IntGaugeVec,
}

impl Metrics {
    /// # Errors
    /// When a metric is defined twice.
    pub fn new() -> Result<Metrics> {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| -> Result<IntCounterVec> {
            let metric = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok(metric)
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| -> Result<IntGaugeVec> {
            let metric = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(metric.clone()))?;
            Ok(metric)
        };
        let jobs = IntGauge::new("effectgate_jobs", "Jobs being watched.")?;
        registry.register(Box::new(jobs.clone()))?;
        let ignored = IntCounter::new(
            "effectgate_ignored_inputs_total",
            "Inputs about jobs that were not being watched.",
        )?;
        registry.register(Box::new(ignored.clone()))?;
        let metrics = Metrics {
            verdicts: counter("effectgate_verdicts_total", "Verdicts given.", &["verdict"])?,
            effects: counter(
                "effectgate_effects_total",
                "Effects recorded.",
                &["class", "decision"],
            )?,
            violations: counter(
                "effectgate_violations_total",
                "Effects outside the policy, by the rule they broke.",
                &["rule"],
            )?,
            lost: counter(
                "effectgate_lost_records_total",
                "Records lost, by where they were lost.",
                &["stage", "class"],
            )?,
            dropped: counter(
                "effectgate_dropped_jobs_total",
                "Jobs whose evidence was removed, by what it had outgrown.",
                &["why"],
            )?,
            backend: gauge("effectgate_backend_info", "The backend in use.", &["backend"])?,
            coverage: gauge(
                "effectgate_coverage_info",
                "What the knowledge of a class rests on.",
                &["class", "coverage"],
            )?,
            ignored,
            jobs,
            registry,
        };
        // A counter that is missing until its first count hides that count
        // from rate() and increase().
        for outcome in Outcome::ALL {
            metrics.verdicts.with_label_values(&[outcome.name()]);
        }
        for why in Why::ALL {
            metrics.dropped.with_label_values(&[why.name()]);
        }
        for class in [Class::File, Class::Exec, Class::Env, Class::Net, Class::Guard] {
            for decision in Decision::ALL {
                metrics.effects.with_label_values(&[class.name(), decision.name()]);
            }
            for stage in Stage::ALL {
                metrics.lost.with_label_values(&[stage.name(), class.name()]);
            }
        }
        Ok(metrics)
    }

    /// Counts a record.
    pub fn line(&self, line: &Line) {
        let labels = [line.class.name(), line.decision.name()];
        self.effects.with_label_values(&labels).inc();
        for violation in &line.violations {
            self.violations.with_label_values(&[&violation.rule.name]).inc();
        }
    }

    /// Counts an input that changed nothing.
    pub fn ignored(&self) {
        self.ignored.inc();
    }

    /// Counts a verdict.
    pub fn verdict(&self, verdict: &Verdict) {
        self.verdicts.with_label_values(&[verdict.verdict.name()]).inc();
    }

    /// Counts losses.
    pub fn lost(&self, stage: Stage, lost: &[(Class, u64)]) {
        for (class, count) in lost {
            self.lost.with_label_values(&[stage.name(), class.name()]).inc_by(*count);
        }
    }

    /// Counts a job whose evidence was removed.
    pub fn dropped(&self, why: Why) {
        self.dropped.with_label_values(&[why.name()]).inc();
    }

    /// Says how many jobs there are.
    pub fn jobs(&self, jobs: usize) {
        self.jobs.set(jobs as i64);
    }

    /// Says what the engine watches with.
    pub fn backend(&self, backend: Backend, coverage: Coverages) {
        self.backend.with_label_values(&[backend.name()]).set(1);
        for (class, coverage) in coverage.each() {
            self.coverage.with_label_values(&[class.name(), coverage.name()]).set(1);
        }
    }

    /// All metrics, in the text format.
    ///
    /// # Errors
    /// When they cannot be encoded.
    pub fn text(&self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .context("cannot encode the metrics")?;
        Ok(text)
    }

    /// Writes all metrics to a file in one move, as the node exporter's
    /// textfile collector wants it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, file: &Path) -> Result<()> {
        let what = || format!("cannot write the metrics file {}", file.display());
        // A name that nobody could have put a link at.
        let mut part = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(directory(file))
            .with_context(what)?;
        part.write_all(&self.text()?).with_context(what)?;
        part.persist(file).with_context(what)?;
        Ok(())
    }
}
