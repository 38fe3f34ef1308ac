//! How a job starts. Its evidence is made last: a start that is refused leaves
//! nothing behind, and can be tried again.

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use effectgate_core::{
    bundle::{HOST, PIN, POLICY},
    input::{Event, Input, JobId, Limited, Started, What},
    judge::Tables,
    pin,
    policy::OnLoss,
};

use super::{
    JobSpec, Surroundings, coverage,
    job::Job,
    listed::Files,
    roots::real,
    tables::{self, Held},
    work::Work,
};
use crate::{
    bundle,
    observe::proc,
    sinks::evidence::{Evidence, Kept},
};

impl Work {
    pub(super) fn start(&mut self, spec: JobSpec, found: Surroundings) -> Result<JobId> {
        self.last += 1;
        let id = self.last;
        let result = self.try_start(id, spec, found);
        if result.is_err()
            && let Some(evidence) = self.forget(id).and_then(|job| job.evidence)
        {
            evidence.discard();
        }
        result.map(|()| id)
    }

    fn try_start(&mut self, id: JobId, spec: JobSpec, found: Surroundings) -> Result<()> {
        let cgroup_id = proc::cgroup_id(&spec.cgroup)
            .with_context(|| format!("no cgroup {}", spec.cgroup.display()))?;
        let nested = |job: &&Job| {
            job.cgroup.starts_with(&spec.cgroup) || spec.cgroup.starts_with(&job.cgroup)
        };
        if let Some(other) = self.jobs.values().find(nested) {
            bail!(
                "the cgroup {} and that of job {}, {}, lie one in the other: a process belongs to one job",
                spec.cgroup.display(),
                other.id,
                other.cgroup.display()
            );
        }
        let backend = self.backend();
        if let Some((class, has)) = coverage(backend).below(spec.min_coverage).next() {
            bail!(
                "the {} backend has coverage `{}` for class {}, less than the `{}` that is wanted: \
                 choose another backend or a lower --min-coverage",
                backend.name(),
                has.name(),
                class.name(),
                spec.min_coverage.name()
            );
        }
        let roots = self.roots.hold_all(&mut self.kernel, id, &found.roots)?;
        self.roots.keep_from(&mut self.kernel, id, &found.private)?;
        let mut files = Files::new(self.kernel.registrar());
        let binaries = files.programs(found.programs)?;
        let linked = files.linked(&found.linked)?;
        let sockets = files.sockets(found.sockets)?;
        let streams = files.streams(spec.streams)?;
        let listed = self.roots.keep(id, files);
        for path in spec.metrics_file.iter().chain(&spec.evidence) {
            self.roots.keep_out(path)?;
        }
        let own = spec.own.iter().chain(&spec.metrics_file).chain(&spec.evidence);
        let own = own.map(|path| real(path).map(bytes)).collect::<Result<_>>()?;
        let seen = self.recent_canary()?;
        // What went by before is none of its business.
        self.unattributed()?;
        let ts = self.now();
        self.attributor.start(id, listed.clone(), roots.clone(), found.links);
        self.kernel.counters(id, true)?;
        self.kernel.networks(id, true)?;
        self.jobs.insert(
            id,
            Job {
                id,
                name: spec.name.clone(),
                policy: spec.policy.id.clone(),
                cgroup: spec.cgroup.clone(),
                cgroup_id,
                mode: spec.mode,
                started: ts,
                evidence: None,
                reported: Vec::new(),
                records: 0,
                violations: 0,
                lost: 0,
                failed: None,
                bound: spec.policy.limit(Limited::WallClock).map(|bound| bound.value),
                launched: None,
                kills_on_loss: spec
                    .policy
                    .agent
                    .as_ref()
                    .is_some_and(|agent| agent.on_loss == OnLoss::Kill),
                stopped: false,
                networks: BTreeMap::new(),
            },
        );
        let mut started = Started {
            job: id,
            ts,
            boot_offset: self.attributor.time(0),
            name: spec.name,
            policy: spec.policy,
            note: spec.note.as_ref().map(|(note, _)| note.clone()),
            host: self.host.clone(),
            kernel: self.release.clone(),
            backend,
            coverage: coverage(backend),
            min_coverage: spec.min_coverage,
            mode: spec.mode,
            judged: true,
            programs: self.programs.clone(),
            argv: spec.argv,
            cgroup: spec.cgroup.display().to_string(),
            workspace: spec.workspace.map(bytes),
            home: spec.home.map(bytes),
            roots,
            binaries,
            sockets,
            linked,
            digests_hold: true,
            own,
            hosts: found.hosts,
            streams,
            terminals: spec.terminals,
            env: Vec::new(),
            processes: Vec::new(),
        };
        let tables = Tables::new(started.clone()).for_kernel();
        self.tables.insert(id, Held::fill(&mut self.kernel, id, &tables, &listed)?);
        let unread = self.adopt(&spec.cgroup, cgroup_id, &mut started)?;
        if let (Some(dir), Some(job)) = (&spec.evidence, self.jobs.get_mut(&id)) {
            let note = spec.note.as_ref().map(|(_, bytes)| bytes.as_slice());
            let kept = Kept {
                policy: &spec.policy_bytes,
                note,
                segment_bytes: spec.segment_bytes,
                signer: spec.signer,
            };
            let evidence = job.evidence.insert(Evidence::create(dir, kept)?);
            evidence.put(PIN, pin::format_pin(&spec.pinned, POLICY).as_bytes())?;
            let facts = bundle::facts(&self.host, &self.programs);
            evidence.put(HOST, format!("{facts:#}\n").as_bytes())?;
        }
        let launch = started.clone();
        self.step(Input::Started(Box::new(started)));
        self.step(Input::Canary { job: id, ts: self.now(), seen, missing: Vec::new() });
        let launched = self.now();
        tables::judge(&mut self.kernel, &launch, &tables)?;
        self.step(Input::Launched { job: id, ts: launched });
        if let Some(job) = self.jobs.get_mut(&id) {
            job.launched = Some(launched);
        }
        for pid in unread {
            // There, but what it holds cannot be told.
            let what = What::Env { names: Vec::new(), complete: false };
            let comm = proc::known(pid).comm;
            self.step(Input::Event(Event {
                ts: self.now(),
                job: id,
                pid,
                tid: pid,
                uid: 0,
                comm,
                kernel: None,
                what,
            }));
        }
        self.metrics.jobs(self.jobs.len());
        Ok(())
    }
}

impl Work {
    /// Makes a cgroup the job's. From here on what enters it is the job; what is
    /// in it already is looked up, and what it does meanwhile waits in the rings.
    /// Returns the processes whose environment cannot be read.
    fn adopt(&mut self, cgroup: &Path, cgroup_id: u64, started: &mut Started) -> Result<Vec<u32>> {
        self.kernel.adopt_cgroup(cgroup_id, started.job)?;
        let members = proc::members(cgroup)
            .with_context(|| format!("cannot tell who is in {}", cgroup.display()))?;
        let mut unread = Vec::new();
        for pid in members {
            let threads = proc::threads(pid);
            for tid in threads.with_context(|| format!("cannot tell the threads of {pid}"))? {
                // Before its effects are the job's: what it enters then is not.
                if let Some((number, namespace)) = proc::network(tid)
                    .with_context(|| format!("cannot tell the network of thread {tid}"))?
                {
                    self.kernel.put_network(started.job, number)?;
                    if let Some(job) = self.jobs.get_mut(&started.job) {
                        job.networks.insert(number, namespace);
                    }
                }
                self.kernel.label(tid, started.job)?;
            }
            started.processes.push(proc::known(pid));
            match proc::env_names(pid) {
                Some(names) => started.env.extend(names),
                None if proc::process_of(pid).is_none() => {}
                None => unread.push(pid),
            }
        }
        started.env.sort();
        started.env.dedup();
        Ok(unread)
    }
}

fn bytes(path: PathBuf) -> Vec<u8> {
    path.into_os_string().into_vec()
}
