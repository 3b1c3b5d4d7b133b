//! One connection of a worker, and who has heard that it broke.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What either end has heard of a connection.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// It is broken for the worker, or for the coordinator.
    worker: CancellationToken,
    coordinator: CancellationToken,
    /// What the worker has said by the break arrives at this instant.
    late: Mutex<Option<Instant>>,
}

impl Connection {
    pub(super) fn worker_hears(&self) {
        self.worker.cancel();
    }

    pub(super) fn coordinator_hears(&self) {
        self.coordinator.cancel();
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
