//! The simulated network: what a worker dials, and what becomes of its messages.
//!
//! A connection keeps its messages in order, as TCP does: what can't pass waits until it can, or is lost
//! with the connection.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::Status;

use crate::draw::Draw;
use crate::faults::{Hears, Way};
use crate::stage::Stage;

mod connection;
mod port;
mod pump;
mod server;
#[cfg(test)]
mod tests;

use connection::Connection;
pub use port::{Inbound, Port};

/// A future of whatever serves workers.
pub type Serving<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;
/// A stream of messages.
pub type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Whoever serves workers: a coordinator's desk, or a test's.
pub trait Server: fmt::Debug + Send + Sync {
    /// A worker joins.
    ///
    /// # Errors
    ///
    /// It is refused.
    fn join(&self, worker: &str, former: Option<&WorkerLife>) -> Result<WorkerLife, Status>;
    /// A worker opens a session.
    fn session(
        self: Arc<Self>,
        life: WorkerLife,
        inbound: Messages<v1::FromWorker>,
    ) -> Serving<Messages<v1::ToWorker>>;
    /// A worker stores a checkpoint.
    fn put_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        chunks: Messages<v1::CheckpointChunk>,
    ) -> Serving<v1::CheckpointReceipt>;
    /// A worker fetches a checkpoint.
    fn get_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Serving<Vec<v1::CheckpointChunk>>;
}

/// The network between one coordinator and its workers. Clones are the same network.
#[derive(Clone, Debug)]
pub struct Network(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stage: Stage,
    seed: u64,
    /// The most that it takes to send a checkpoint.
    slowest_upload: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    present: Option<Present>,
    /// The coordinator of this generation stands still until that instant.
    paused: Option<(u64, Instant)>,
    links: BTreeMap<String, Link>,
    connections: u64,
}

/// The coordinator that can be reached.
#[derive(Clone, Debug)]
struct Present {
    server: Arc<dyn Server>,
    generation: u64,
}

/// What a worker's connections suffer, each until an instant.
#[derive(Debug, Default)]
struct Link {
    up_blocked: Option<Instant>,
    down_blocked: Option<Instant>,
    slow: Option<(Instant, Duration)>,
    up_doubled: Option<Instant>,
    down_doubled: Option<Instant>,
    /// Connections that carry something, or may yet, at either of their ends.
    connections: Vec<Arc<Connection>>,
}

/// Whether a connection carries anything: one whose call has ended is nobody's.
fn is_in_use(connection: &Arc<Connection>) -> bool {
    !connection.is_closed() && Arc::strong_count(connection) > 1
}

impl Network {
    /// The network of a run on this stage, on which checkpoints take up to so long to be sent.
    #[must_use]
    pub fn new(stage: Stage, seed: u64, slowest_upload: Duration) -> Self {
        Self(Arc::new(Shared { stage, seed, slowest_upload, inner: Mutex::default() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_link<T>(&self, worker: &str, with: impl FnOnce(&mut Link) -> T) -> T {
        let mut inner = self.inner();
        if !inner.links.contains_key(worker) {
            inner.links.insert(worker.to_owned(), Link::default());
        }
        with(inner.links.entry(worker.to_owned()).or_default())
    }

    /// The end of the network that a worker has.
    #[must_use]
    pub fn port(&self, worker: &str) -> Port {
        Port::new(self.clone(), worker)
    }

    /// A coordinator of this generation can be reached from now on.
    pub fn serve(&self, server: Arc<dyn Server>, generation: u64) {
        self.inner().present = Some(Present { server, generation });
    }

    /// The coordinator is gone: its connections break, which workers hear of at once unless its host is silent.
    pub fn gone(&self, is_silent: bool) {
        let mut inner = self.inner();
        inner.present = None;
        let hears = if is_silent { Hears::Coordinator } else { Hears::Both };
        // Those of its connections, too, that have broken for one end alone or that their workers have closed.
        for connection in inner.links.values_mut().flat_map(|link| link.connections.drain(..)) {
            connection.loses_coordinator(hears);
        }
    }

    /// The coordinator that can be reached neither hears nor says anything for so long. Whether there is one.
    pub fn pause(&self, lasts: Duration) -> bool {
        let mut inner = self.inner();
        let present = inner.present.as_ref().map(|present| present.generation);
        inner.paused = present.map(|generation| (generation, Instant::now() + lasts));
        present.is_some()
    }

    /// Until when the coordinator stands still that can be reached; `None`: it does not.
    fn paused(&self) -> Option<Instant> {
        let inner = self.inner();
        let (generation, until) = inner.paused?;
        let is_it = inner.present.as_ref().is_some_and(|present| present.generation == generation);
        is_it.then_some(until)
    }

    /// Nothing passes this way between a worker and the coordinator for so long.
    pub fn partition(&self, worker: &str, way: Way, lasts: Duration) {
        let until = Some(Instant::now() + lasts);
        self.with_link(worker, |link| {
            if way.is_up() {
                link.up_blocked = link.up_blocked.max(until);
            }
            if way.is_down() {
                link.down_blocked = link.down_blocked.max(until);
            }
        });
    }

    /// Messages take up to so much longer, for so long.
    pub fn delay(&self, worker: &str, by: Duration, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.with_link(worker, |link| link.slow = Some((until, by)));
    }

    /// Messages arrive twice, for so long.
    pub fn double(&self, worker: &str, way: Way, lasts: Duration) {
        let until = Some(Instant::now() + lasts);
        self.with_link(worker, |link| {
            if way.is_up() {
                link.up_doubled = until;
            }
            if way.is_down() {
                link.down_doubled = until;
            }
        });
    }

    /// The connections of a worker break, with loss of what is under way. Whether there was one.
    pub fn break_up(&self, worker: &str, hears: Hears) -> bool {
        let open = self.open_connections(worker);
        open.iter().for_each(|connection| connection.breaks(hears));
        !open.is_empty()
    }

    /// The connections of a worker break for it; what it has said by then arrives so much later. Whether there was
    /// one.
    pub fn break_late(&self, worker: &str, by: Duration) -> bool {
        let open = self.open_connections(worker);
        for connection in &open {
            connection.arrives_late(Instant::now() + by);
            connection.worker_hears();
        }
        !open.is_empty()
    }

    /// The connections of a worker that are in use and sound at both ends.
    fn open_connections(&self, worker: &str) -> Vec<Arc<Connection>> {
        self.with_link(worker, |link| {
            link.connections.retain(is_in_use);
            let open = link.connections.iter().filter(|connection| connection.is_open());
            open.cloned().collect()
        })
    }

    /// The worker's process is gone: the system closes its connections in order.
    pub fn closed(&self, worker: &str) {
        self.with_link(worker, |link| link.connections.iter().for_each(|it| it.closes()));
    }

    fn present(&self) -> Option<Present> {
        self.inner().present.clone()
    }

    /// A new connection of a worker, with chance of its own.
    fn connect(&self, worker: &str) -> (Arc<Connection>, Draw) {
        let mut inner = self.inner();
        inner.connections += 1;
        let number = inner.connections;
        let connection = Arc::new(Connection::numbered(number));
        let link = inner.links.entry(worker.to_owned()).or_default();
        link.connections.retain(is_in_use);
        link.connections.push(Arc::clone(&connection));
        (connection, Draw::new(self.0.seed ^ (number << 40), "simulator: connection", 1))
    }

    /// How long a message of a worker's takes that sets out now.
    fn latency(&self, worker: &str, chance: &mut Draw) -> Duration {
        let usual = Duration::from_millis(chance.below(3).into());
        let slow = self.with_link(worker, |link| link.slow);
        match slow {
            Some((until, by)) if Instant::now() < until => {
                let by = u64::try_from(by.as_millis()).unwrap_or(0);
                usual + Duration::from_millis(chance.between(0, by))
            }
            _ => usual,
        }
    }

    /// Takes the time that the bytes of a checkpoint take, beside what each message does.
    async fn transfer(&self, chance: &mut Draw) {
        let most = u64::try_from(self.0.slowest_upload.as_millis()).unwrap_or(0);
        if most > 0 {
            tokio::time::sleep(Duration::from_millis(chance.between(0, most))).await;
        }
    }

    /// Until when nothing passes this way; `None`: it does.
    fn blocked(&self, worker: &str, way: Way) -> Option<Instant> {
        let until = self.with_link(worker, |link| match way {
            Way::Up => link.up_blocked,
            Way::Down => link.down_blocked,
            Way::Both => link.up_blocked.max(link.down_blocked),
        });
        until.max(self.paused()).filter(|until| Instant::now() < *until)
    }

    fn is_doubled(&self, worker: &str, way: Way) -> bool {
        let until = self.with_link(worker, |link| match way {
            Way::Up => link.up_doubled,
            _ => link.down_doubled,
        });
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Takes the time that something takes on its way.
    async fn travel(&self, worker: &str, way: Way, chance: &mut Draw) {
        let latency = self.latency(worker, chance);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        while let Some(until) = self.blocked(worker, way) {
            tokio::time::sleep_until(until).await;
        }
    }
}
