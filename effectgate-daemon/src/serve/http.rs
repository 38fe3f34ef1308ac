//! Metrics over HTTP, for Prometheus to scrape.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
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
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::clients;
use crate::sinks::metrics::Metrics;

/// The text format's media type (Prometheus exposition formats).
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long a client may take for its request, and all in all.
const HEADER: Duration = Duration::from_secs(10);
const CONNECTION: Duration = Duration::from_secs(300);

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

/// Serves for ever.
///
/// # Errors
/// When serving a connection panics.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) -> Result<()> {
    let router = Router::new().route("/metrics", get(scrape)).with_state(metrics);
    clients::serve(
        "the metrics socket",
        async || listener.accept().await.map(|(stream, _)| stream),
        |stream| converse(stream, TowerToHyperService::new(router.clone())),
    )
    .await
}

async fn converse(stream: TcpStream, service: TowerToHyperService<Router>) -> Result<()> {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .serve_connection(TokioIo::new(stream), service);
    timeout(CONNECTION, connection).await.context("a connection was held for too long")??;
    Ok(())
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}
