//! `effectgate run`: one job, from its cgroup to its verdict.

use std::{os::unix::ffi::OsStringExt, path::PathBuf, sync::Arc};

use anyhow::{Result, ensure};
use effectgate_core::input::{JobId, Notice};

use super::{policy, print_verdict};
use crate::{
    bundle,
    cli::{Format, Run, Sign},
    engine::{Config, Engine, Finish, JobSpec, Left},
    exit::{self, Code, Outcomes},
    observe::{kernel, proc},
    run::{
        cgroup::{Cgroup, RUNS},
        child::{self, Ended, Waiter},
        scratch::Scratch,
        streams,
        user::{self, User},
    },
    sign::{Signer, Source},
};

pub fn run(args: Run, format: Format) -> Outcomes {
    // First of all: an interrupt must find somebody who cleans up.
    let mut waiter = Waiter::new().code(exit::OBSERVER)?;
    let prepared = Prepared::new(&args).code(exit::REFUSED)?;
    let engine = Engine::start(prepared.config(&args)).code(exit::REFUSED)?;
    let job = engine.start_job(prepared.spec(&args)).code(exit::REFUSED)?;
    let ended = prepared.launch(&args, &mut waiter);
    let (exit, mut notices) = match ended {
        Ok(Ended { exit, stopped: None }) => (Some(exit), Vec::new()),
        Ok(Ended { exit, stopped: Some(why) }) => (Some(exit), vec![Notice::Stopped { why }]),
        Err(error) => {
            prepared.abandon(&engine, job);
            return Err(error).code(exit::REFUSED);
        }
    };
    let killed = prepared.cgroup.empty().code(exit::OBSERVER)?;
    if killed > 0 {
        notices.push(Notice::Leftovers { killed });
    }
    let finish = Finish { job, exit, notices, left: Left::Killed { spared: Vec::new() } };
    let (verdict, written) = engine.finish_job(finish).code(exit::OBSERVER)?;
    print_verdict(&verdict, format)?;
    if let Some(written) = written {
        let signer = prepared.signer.as_ref().map(|(_, signer)| &**signer);
        bundle::finish(&written, &verdict, signer).code(exit::OBSERVER)?;
    }
    // Metrics may be lost, a verdict may not.
    if let Some(file) = &args.metrics_file
        && let Err(error) = engine.metrics.write(file)
    {
        tracing::warn!("{error:#}");
    }
    Ok(exit::of_verdict(verdict.verdict, exit))
}

/// Everything that can be refused before anything runs.
struct Prepared {
    policy: policy::Pinned,
    workspace: Option<PathBuf>,
    user: Option<User>,
    name: String,
    cgroup_root: PathBuf,
    cgroup: Cgroup,
    scratch: Scratch,
    /// Who signs the evidence, and with what.
    signer: Option<(Source, Arc<Signer>)>,
}

impl Prepared {
    fn new(args: &Run) -> Result<Prepared> {
        let policy = policy::load(&args.policy)?;
        ensure!(
            rustix::process::geteuid().is_root(),
            "loading kernel programs needs root: call effectgate through sudo; the command then still runs as you"
        );
        if let Some(dir) = &args.workspace {
            ensure!(dir.is_dir(), "the workspace {} is no directory", dir.display());
        }
        let signer = signer(args)?;
        let workspace = policy::workspace(&policy.policy, args.workspace.as_deref())?;
        let user = user::to_run_as(args.user.as_deref())?;
        let cgroup_root = proc::cgroup2()?;
        let pid = std::process::id();
        let name = format!("run-{pid}");
        let parent = cgroup_root.join(proc::own_cgroup()?);
        let cgroup = Cgroup::make(&parent.join(format!("{RUNS}{pid}")))?;
        let scratch = Scratch::make(user.as_ref())?;
        Ok(Prepared { policy, workspace, user, name, cgroup_root, cgroup, scratch, signer })
    }

    fn config(&self, args: &Run) -> Config {
        Config {
            backend: args.backend.into(),
            ring_bytes: kernel::RING_BYTES,
            cgroup_root: self.cgroup_root.clone(),
        }
    }

    fn spec(&self, args: &Run) -> JobSpec {
        let handed = streams::handed();
        JobSpec {
            name: self.name.clone(),
            policy: self.policy.policy.clone(),
            policy_bytes: self.policy.bytes.clone(),
            pinned: self.policy.digest.clone(),
            note: self.policy.note.clone(),
            cgroup: self.cgroup.path().to_owned(),
            mode: args.mode.into(),
            min_coverage: args.min_coverage.into(),
            workspace: self.workspace.clone(),
            home: self.home().and_then(|home| home.canonicalize().ok()),
            argv: args.command.iter().map(|arg| arg.clone().into_vec()).collect(),
            tmpdir: Some(self.scratch.path().to_owned()),
            evidence: args.evidence.clone(),
            segment_bytes: args.segment_bytes,
            signer: self.signer.as_ref().map(|(_, signer)| Arc::clone(signer)),
            metrics_file: args.metrics_file.clone(),
            own: self.signer.iter().filter_map(|(source, _)| source.private()).collect(),
            streams: handed.files,
            terminals: handed.terminals,
        }
    }

    /// The home of the command's user.
    fn home(&self) -> Option<PathBuf> {
        match &self.user {
            Some(user) => Some(PathBuf::from(&user.home)),
            None => std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()),
        }
    }

    fn launch(&self, args: &Run, waiter: &mut Waiter) -> Result<Ended> {
        let env = child::environment(
            &self.policy.policy,
            args.keep_env,
            self.user.as_ref(),
            self.scratch.path(),
        );
        waiter.run(&child::Launch {
            command: &args.command,
            env,
            workspace: args.workspace.as_deref(),
            user: self.user.as_ref(),
            cgroup: &self.cgroup,
            timeout: args.timeout,
        })
    }

    /// The command could not be started.
    fn abandon(&self, engine: &Engine, job: JobId) {
        let why = "the command could not be started".to_owned();
        let notices = vec![Notice::Stopped { why }];
        let finish = Finish { job, exit: None, notices, left: Left::Killed { spared: Vec::new() } };
        if let Err(error) = engine.finish_job(finish) {
            tracing::debug!("{error:#}");
        }
    }
}

/// Who signs; what does not sign is to be known before anything runs.
fn signer(args: &Run) -> Result<Option<(Source, Arc<Signer>)>> {
    let Sign { sign_key, sign_command, .. } = &args.sign;
    ensure!(
        args.evidence.is_some() || sign_key.is_none() && sign_command.is_none(),
        "there is no evidence to sign: name a directory for it with --evidence"
    );
    let source = args.sign.source()?.filter(|_| args.evidence.is_some());
    source.map(|source| Ok((source.clone(), Arc::new(Signer::new(&source)?)))).transpose()
}
