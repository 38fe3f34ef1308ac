//! Clients of a socket, each in a task of its own: the one place where tasks
//! are spawned.

use std::{io, sync::Arc, time::Duration};

use anyhow::{Result, bail};
use tokio::{sync::Semaphore, task::JoinSet};

/// Clients of one socket at once; more are turned away.
const MOST: usize = 64;
/// Before a connection is tried again that could not be accepted.
const RETRY: Duration = Duration::from_millis(100);

/// Serves whoever connects. `what` names the socket in messages. Whoever can
/// reach it may hold a few connections for a while, and nothing else.
///
/// # Errors
/// When serving a client panics: then everything ends.
pub async fn serve<S, F>(
    what: &str,
    mut accept: impl AsyncFnMut() -> io::Result<S>,
    serve: impl Fn(S) -> F,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(MOST));
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept() => match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok(client), Ok(place)) => {
                    let served = serve(client);
                    clients.spawn(async move {
                        let _place = place;
                        served.await
                    });
                }
                (Ok(_), Err(_)) => {
                    tracing::warn!("{what}: more than {MOST} clients at once; one was turned away");
                }
                // Out of descriptors or memory: that passes, the daemon stays.
                (Err(error), _) => {
                    tracing::warn!("{what}: {error}");
                    tokio::time::sleep(RETRY).await;
                }
            },
            Some(ended) = clients.join_next() => match ended {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!("{what}: a client left early: {error:#}"),
                Err(error) => bail!("{what}: serving a client failed: {error}"),
            },
        }
    }
}
