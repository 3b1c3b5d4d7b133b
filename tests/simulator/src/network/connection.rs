//! One connection of a worker, and which of its ends have noticed a break.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::faults::Hears;

/// The time after which an end of a half-open connection notices the break: HTTP/2 sends a ping every five seconds and
/// waits ten for the answer.
pub(super) const PING: Duration = Duration::from_secs(15);

/// The state of a connection at both of its ends.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// The connection's number among all of the run.
    pub(super) number: u64,
    /// Cancelled when the connection is broken at the worker's end; the next field is for the coordinator's end.
    worker: CancellationToken,
    coordinator: CancellationToken,
    /// The instant at which messages arrive that the worker had sent before the break; `None`: they are not late.
    late: Mutex<Option<Instant>>,
    /// Whether the worker's process has ended and its end is being closed in order.
    is_closing: AtomicBool,
}

impl Connection {
    pub(super) fn numbered(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Breaks the connection: the ends in `hears` notice at once, the other end when its ping gets no answer.
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

    /// Breaks the coordinator's end, if it is not broken yet, as its process has ended; the ends in `hears` notice.
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

    /// Closes the worker's end in order: messages that the worker has sent still arrive.
    pub(super) fn closes(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    /// Whether neither end has noticed a break or a close.
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
