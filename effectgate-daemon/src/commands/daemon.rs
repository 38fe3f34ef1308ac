//! `effectgate daemon`

use std::{
    fs::{File, OpenOptions, Permissions},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    cli::Daemon,
    engine::{self, Engine},
    exit::{self, Code, Outcomes},
    lock::try_lock,
    observe::proc,
    serve::{
        config::Config,
        http,
        jobs::{self, Jobs},
        retention::Retention,
        unfinished,
    },
    sign::{Signer, Source},
};

/// In the state directory; the daemon's own, and locked as long as it runs.
const LOCK: &str = "lock";

pub fn daemon(args: &Daemon) -> Outcomes {
    let config = Config::read(args.config.as_deref()).code(exit::USAGE)?;
    let signer = signer(&config).code(exit::REFUSED)?;
    if !rustix::process::geteuid().is_root() {
        return Err(anyhow!("loading kernel programs needs root")).code(exit::REFUSED);
    }
    let _state = state(&config.state_dir).code(exit::OBSERVER)?;
    let engine = start(&config).code(exit::REFUSED)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .code(exit::OBSERVER)?;
    runtime.block_on(serve(config, engine, signer)).code(exit::OBSERVER)?;
    Ok(exit::HOLDS)
}

fn start(config: &Config) -> Result<Engine> {
    Engine::start(engine::Config {
        backend: config.backend()?,
        ring_bytes: config.ring_bytes,
        cgroup_root: proc::cgroup2()?,
    })
}

/// Makes the state directory this daemon's as long as what is returned lives.
fn state(dir: &Path) -> Result<File> {
    let what = || format!("cannot make {}", dir.display());
    let jobs = dir.join("jobs");
    std::fs::create_dir_all(&jobs).with_context(what)?;
    // What others can open, they can lock.
    std::fs::set_permissions(&jobs, Permissions::from_mode(0o700)).with_context(what)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join(LOCK));
    let file = file.with_context(what)?;
    let is_ours = try_lock(&file).with_context(what)?;
    ensure!(is_ours, "another daemon keeps its state in {}", dir.display());
    Ok(file)
}

fn signer(config: &Config) -> Result<Option<(Source, Arc<Signer>)>> {
    config.sign()?.map(|source| Ok((source.clone(), Arc::new(Signer::new(&source)?)))).transpose()
}

/// Until a signal, or until one of the servers ends: then everything ends.
async fn serve(
    config: Config,
    mut engine: Engine,
    signer: Option<(Source, Arc<Signer>)>,
) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (listener, address) = http::bind(config.metrics_listen).await?;
    let metrics = Arc::clone(&engine.metrics);
    let socket = jobs::bind(&config.socket)?;
    tracing::info!(
        "watching with {}; jobs on {}, metrics on http://{address}/metrics",
        engine.backend.name(),
        config.socket.display()
    );
    let engine_ended = engine.ended().context("the engine's end is awaited here only")?;
    let retention = Retention {
        state_dir: config.state_dir.clone(),
        days: config.keep_days,
        bytes: config.keep_bytes,
    };
    let left = config.state_dir.join("jobs");
    // It only reads and tells, for as long as that takes; nobody waits for it.
    let reader = std::thread::Builder::new().name("unfinished".to_owned());
    reader.spawn(move || unfinished::report(&left))?;
    let jobs = Arc::new(Jobs {
        engine,
        state_dir: config.state_dir,
        segment_bytes: config.segment_bytes,
        signer,
    });
    let ended = tokio::select! {
        ended = jobs::serve(socket, Arc::clone(&jobs)) => ended,
        ended = http::serve(listener, Arc::clone(&metrics)) => ended,
        ended = retention.serve(metrics) => ended,
        _ = engine_ended => Err(anyhow!("the engine's thread has ended")),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    let _ = std::fs::remove_file(&config.socket);
    ended
}
