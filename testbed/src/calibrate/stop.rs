//! A user who ends it half-way.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Whether this process was told to end. A live run notices by itself while it goes, but what it
/// listens with swallows the signals that come between two runs.
#[derive(Debug)]
pub struct Stop {
    told: Arc<AtomicBool>,
    _listens: Runtime,
}

impl Stop {
    /// Listens from now on, until it is dropped.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        let listens =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let told = Arc::new(AtomicBool::new(false));
        for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
            let mut heard = {
                let _inside = listens.enter();
                signal(kind)?
            };
            let told = Arc::clone(&told);
            listens.spawn(async move {
                while heard.recv().await.is_some() {
                    told.store(true, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { told, _listens: listens })
    }

    /// Whether it was.
    #[must_use]
    pub fn told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}
