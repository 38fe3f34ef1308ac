//! Metrics over HTTP, for Prometheus to scrape.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet, time::timeout};

use crate::sinks::metrics::Metrics;

/// The text format's media type (Prometheus exposition formats).
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Connections at once; more are turned away.
const CONNECTIONS: usize = 64;
/// How long a client may take for its request, and all in all.
const HEADER: Duration = Duration::from_secs(10);
const CONNECTION: Duration = Duration::from_secs(300);
/// Before a connection is tried again that could not be accepted.
const RETRY: Duration = Duration::from_millis(100);

/// Binds; the address tells the port that was taken.
///
/// # Errors
/// When the address cannot be bound.
pub async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} for metrics"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves for ever. Whoever can reach the port may hold a few connections for
/// a while, and nothing else.
///
/// # Errors
/// When serving a connection panics.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) -> Result<()> {
    let router = Router::new().route("/metrics", get(scrape)).with_state(metrics);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    // Out of descriptors or memory: that passes, the daemon stays.
                    Err(error) => {
                        tracing::warn!("the metrics socket: {error}");
                        tokio::time::sleep(RETRY).await;
                        continue;
                    }
                };
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let service = TowerToHyperService::new(router.clone());
                connections.spawn(async move {
                    let _place = place;
                    let connection = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEADER)
                        .serve_connection(TokioIo::new(stream), service);
                    if let Ok(Err(error)) = timeout(CONNECTION, connection).await {
                        tracing::debug!("a scrape ended early: {error}");
                    }
                });
            }
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    bail!("serving metrics failed: {error}");
                }
            }
        }
    }
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}
