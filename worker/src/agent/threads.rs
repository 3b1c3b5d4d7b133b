//! Threads for work that takes long.
//!
//! Work that stops a VM gets a thread of its own, since all threads of the pool may be waiting. Deletions take turns at
//! a few threads of the pool.

use std::{io, sync::Arc, thread};

use tokio::{
    sync::{Semaphore, oneshot},
    task::spawn_blocking,
};
use tokio_util::task::TaskTracker;

use super::report::explain_error;

/// Reason why work that was given to a thread of its own wasn't done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UrgentError {
    #[error("the thread for urgent work can't be started")]
    Thread(#[from] io::Error),
    #[error("urgent work panicked")]
    Panicked(#[from] oneshot::error::RecvError),
}

/// Runs urgent work in a thread of its own.
pub(crate) async fn run_urgent<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, UrgentError> {
    let (tell, told) = oneshot::channel();
    thread::Builder::new().name("urgent".to_owned()).spawn(move || {
        // Nobody waits any more only when all is over.
        let _ = tell.send(work());
    })?;
    Ok(told.await?)
}

/// Waits for the result of `work`; a panic of `work` becomes an error.
pub(crate) async fn await_outcome<T: Send + 'static, E: From<String> + Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    tokio::spawn(work).await.unwrap_or_else(|panic| Err(explain_error(&panic).into()))
}

/// Number of deletions of files that run at a time.
const DELETIONS: usize = 2;

/// Deletes files in the background, as that may take long.
#[derive(Debug)]
pub(crate) struct DeletionQueue {
    turns: Arc<Semaphore>,
    all: TaskTracker,
}

impl DeletionQueue {
    pub(crate) fn new() -> Self {
        Self { turns: Arc::new(Semaphore::new(DELETIONS)), all: TaskTracker::new() }
    }

    /// Adds a deletion to the queue.
    pub(crate) fn add_deletion(&self, delete: impl FnOnce() + Send + 'static) {
        let turns = Arc::clone(&self.turns);
        self.all.spawn(async move {
            // It is never closed.
            let turn = turns.acquire_owned().await;
            // A panic has been printed.
            let _ = spawn_blocking(move || {
                delete();
                drop(turn);
            })
            .await;
        });
    }

    /// Waits until all deletions are done.
    pub(crate) async fn wait_done(&self) {
        self.all.close();
        self.all.wait().await;
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::{sync::mpsc, time::Duration};
    use tokio::runtime::Builder;

    #[test]
    fn what_is_urgent_is_done_though_the_pool_is_full() {
        let runtime = Builder::new_multi_thread().max_blocking_threads(1).build().unwrap();
        let (end, ended) = mpsc::channel::<()>();
        runtime.spawn_blocking(move || ended.recv());
        let (tell, told) = mpsc::channel();
        runtime.spawn(async move { tell.send(run_urgent(|| 7).await.unwrap()).unwrap() });
        assert_eq!(told.recv_timeout(Duration::from_secs(10)).unwrap(), 7);
        drop(end);
    }

    #[tokio::test]
    async fn of_a_panic_is_heard() {
        let why = await_outcome::<(), String>(async { panic!("a bug") }).await.unwrap_err();
        assert!(why.contains("a bug"), "{why}");
        assert!(run_urgent(|| panic!("a bug")).await.is_err());
    }

    #[tokio::test]
    async fn everything_is_deleted_at_the_end() {
        let deletions = DeletionQueue::new();
        let (tell, told) = mpsc::channel();
        for n in 0..10 {
            let tell = tell.clone();
            deletions.add_deletion(move || tell.send(n).unwrap());
        }
        deletions.wait_done().await;
        assert_eq!(told.try_iter().count(), 10);
    }
}
