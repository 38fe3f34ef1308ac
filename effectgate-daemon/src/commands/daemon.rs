//! `effectgate daemon`

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    cli::Daemon,
    engine::{self, Engine},
    exit::{self, Code, Outcomes},
    observe::proc,
    serve::{
        config::Config,
        http,
        jobs::{self, Jobs},
    },
    sign::{Signer, Source},
};

pub fn daemon(args: &Daemon) -> Outcomes {
    let config = Config::read(args.config.as_deref()).code(exit::USAGE)?;
    let signer = signer(&config).code(exit::REFUSED)?;
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
    if !rustix::process::geteuid().is_root() {
        bail!("loading kernel programs needs root");
    }
    std::fs::create_dir_all(config.state_dir.join("jobs"))
        .with_context(|| format!("cannot make {}", config.state_dir.display()))?;
    Engine::start(engine::Config {
        backend: config.backend()?,
        ring_bytes: config.ring_bytes,
        cgroup_root: proc::cgroup2()?,
    })
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
    let jobs = Arc::new(Jobs {
        engine,
        state_dir: config.state_dir,
        segment_bytes: config.segment_bytes,
        signer,
    });
    let ended = tokio::select! {
        ended = jobs::serve(socket, Arc::clone(&jobs)) => ended,
        ended = http::serve(listener, metrics) => ended,
        _ = engine_ended => Err(anyhow!("the engine's thread has ended")),
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    let _ = std::fs::remove_file(&config.socket);
    ended
}
