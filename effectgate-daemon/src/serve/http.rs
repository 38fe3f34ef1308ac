//! Metrics over HTTP, for Prometheus to scrape.

use std::{net::SocketAddr, sync::Arc};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

use crate::sinks::metrics::Metrics;

/// The text format's media type (Prometheus exposition formats).
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

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

/// Serves until the listener fails.
///
/// # Errors
/// When the server ends.
pub async fn serve(listener: TcpListener, metrics: Arc<Metrics>) -> Result<()> {
    let router = Router::new().route("/metrics", get(scrape)).with_state(metrics);
    axum::serve(listener, router).await.context("the metrics server ended")
}

async fn scrape(State(metrics): State<Arc<Metrics>>) -> Response {
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
    }
}
