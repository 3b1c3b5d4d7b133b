//! What stops a VM gets a thread of its own: those of the pool may all wait for something.

use std::{io, thread};

use tokio::sync::oneshot;

/// Why what is urgent was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrgentError {
    #[error("there is no thread for what is urgent")]
    Thread(#[from] io::Error),
    #[error("what was urgent panicked")]
    Panicked(#[from] oneshot::error::RecvError),
}

/// Does what must not wait.
pub(crate) async fn urgent<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UrgentError> {
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("urgent".to_owned()).spawn(move || {
        // Nobody waits any more only when all is over.
        let _ = tell.send(work());
    })?;
    Ok(told.await?)
}
