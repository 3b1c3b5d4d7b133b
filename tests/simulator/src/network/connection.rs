//! One connection of a worker, and who has heard that it broke.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::faults::Hears;

/// The time after which an end of a half-open connection hears of it: a ping of HTTP/2, sent every five seconds, is
/// not answered for ten.
pub(super) const PING: Duration = Duration::from_secs(15);

/// What either end has heard of a connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// Its place among all connections of the run.
    pub(super) number: u64,
    /// It is broken for the worker, or for the coordinator.
    worker: CancellationToken,
    coordinator: CancellationToken,
    /// What the worker has said by the break arrives at this instant.
    late: Mutex<Option<Instant>>,
    /// The worker's process is gone, and its end is closed in order.
    is_closing: AtomicBool,
}

impl Connection {
    pub(super) fn numbered(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// The connection breaks, which these ends hear of at once, and the other when its ping is not answered.
    pub(super) fn breaks(self: &Arc<Self>, hears: Hears) {
        if hears != Hears::Worker {
            self.coordinator_hears();
        }
        if hears != Hears::Coordinator {
            self.worker_hears();
        }
        if hears != Hears::Both {
            let own = Arc::clone(self);
            tokio::spawn(async move {
                sleep(PING).await;
                own.coordinator_hears();
                own.worker_hears();
            });
        }
    }

    /// The coordinator's process is gone: its end breaks, if it has not, which these ends hear of.
    pub(super) fn loses_coordinator(self: &Arc<Self>, hears: Hears) {
        if !self.coordinator.is_cancelled() {
            self.breaks(hears);
        }
    }

    pub(super) fn worker_hears(&self) {
        self.worker.cancel();
    }

    pub(super) fn coordinator_hears(&self) {
        self.coordinator.cancel();
    }

    /// The worker's end is closed in order: what it has said arrives.
    pub(super) fn closes(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Whether neither end has heard of a break or an end.
    pub(super) fn is_open(&self) -> bool {
        let is_broken = self.worker.is_cancelled() || self.coordinator.is_cancelled();
        !is_broken && !self.is_closing.load(Ordering::Relaxed)
    }

    pub(super) fn arrives_late(&self, at: Instant) {
        *self.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    pub(super) fn late(&self) -> Option<Instant> {
        *self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the worker's end is broken.
    pub(super) async fn broken_for_worker(&self) {
        self.worker.cancelled().await;
    }

    /// Waits until the coordinator's end is broken.
    pub(super) async fn broken_for_coordinator(&self) {
        self.coordinator.cancelled().await;
    }

    pub(super) fn is_broken_for_worker(&self) -> bool {
        self.worker.is_cancelled()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.worker.is_cancelled() && self.coordinator.is_cancelled()
    }
}
