//! The simulated network between workers and their coordinator: connections, and delays and losses of messages.
//!
//! A connection keeps its messages in order, as TCP does: a message that can't pass waits until it can, or is lost
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

/// A future of a server's answer to a worker.
pub type Serving<T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send>>;
/// A stream of messages.
pub type Messages<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A server of workers: a coordinator's desk, or that of a test.
pub trait Server: fmt::Debug + Send + Sync {
    /// Has a worker join the run, and returns its session identity.
    ///
    /// # Errors
    ///
    /// The server refuses the worker.
    fn join(&self, worker: &str, former: Option<&WorkerLife>) -> Result<WorkerLife, Status>;
    /// Opens a session for a worker.
    fn session(
        self: Arc<Self>,
        life: WorkerLife,
        inbound: Messages<v1::FromWorker>,
    ) -> Serving<Messages<v1::ToWorker>>;
    /// Stores a checkpoint that a worker sends.
    fn put_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        chunks: Messages<v1::CheckpointChunk>,
    ) -> Serving<v1::CheckpointReceipt>;
    /// Sends a worker a checkpoint.
    fn get_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Serving<Vec<v1::CheckpointChunk>>;
}

/// The network between one coordinator and its workers. Clones share the same network.
#[derive(Clone, Debug)]
pub struct Network(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stage: Stage,
    seed: u64,
    /// The longest time that it takes to send a checkpoint.
    slowest_upload: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    present: Option<Present>,
    /// The generation of a coordinator that is paused, and the instant at which the pause ends.
    paused: Option<(u64, Instant)>,
    links: BTreeMap<String, Link>,
    connections: u64,
}

/// The coordinator that workers can reach.
#[derive(Clone, Debug)]
struct Present {
    server: Arc<dyn Server>,
    generation: u64,
}

/// The faults of a worker's connections, each until an instant.
#[derive(Debug, Default)]
struct Link {
    up_blocked: Option<Instant>,
    down_blocked: Option<Instant>,
    slow: Option<(Instant, Duration)>,
    up_doubled: Option<Instant>,
    down_doubled: Option<Instant>,
    /// Connections on which either end may still send or receive.
    connections: Vec<Arc<Connection>>,
}

/// Whether a connection is still in use: its call has not ended.
fn is_in_use(connection: &Arc<Connection>) -> bool {
    !connection.is_closed() && Arc::strong_count(connection) > 1
}

impl Network {
    /// The network of a run on this stage; sending a checkpoint takes up to `slowest_upload`.
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

    /// A worker's end of the network.
    #[must_use]
    pub fn port(&self, worker: &str) -> Port {
        Port::new(self.clone(), worker)
    }

    /// Lets workers reach this coordinator from now on.
    pub fn serve(&self, server: Arc<dyn Server>, generation: u64) {
        self.inner().present = Some(Present { server, generation });
    }

    /// Removes the coordinator: its connections break. Workers notice at once unless the host `is_silent`.
    pub fn gone(&self, is_silent: bool) {
        let mut inner = self.inner();
        inner.present = None;
        let hears = if is_silent { Hears::Coordinator } else { Hears::Both };
        // Those of its connections, too, that have broken for one end alone or that their workers have closed.
        for connection in inner.links.values_mut().flat_map(|link| link.connections.drain(..)) {
            connection.loses_coordinator(hears);
        }
    }

    /// Pauses the reachable coordinator: it neither receives nor sends for this time. Returns whether there is one.
    pub fn pause(&self, lasts: Duration) -> bool {
        let mut inner = self.inner();
        let present = inner.present.as_ref().map(|present| present.generation);
        inner.paused = present.map(|generation| (generation, Instant::now() + lasts));
        present.is_some()
    }

    /// When the pause of the reachable coordinator ends; `None` if it is not paused.
    fn paused(&self) -> Option<Instant> {
        let inner = self.inner();
        let (generation, until) = inner.paused?;
        let is_it = inner.present.as_ref().is_some_and(|present| present.generation == generation);
        is_it.then_some(until)
    }

    /// Lets no message pass between a worker and the coordinator in this direction, for this time.
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

    /// Delays the messages of a worker by up to `by`, for this time.
    pub fn delay(&self, worker: &str, by: Duration, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.with_link(worker, |link| link.slow = Some((until, by)));
    }

    /// Has the messages of a worker arrive twice, for this time.
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

    /// Breaks the connections of a worker and loses the messages on the way. Returns whether there was a connection.
    pub fn break_up(&self, worker: &str, hears: Hears) -> bool {
        let open = self.open_connections(worker);
        open.iter().for_each(|connection| connection.breaks(hears));
        !open.is_empty()
    }

    /// Breaks the connections of a worker at its end; messages that it has sent until then arrive later by `by`.
    /// Returns whether there was a connection.
    pub fn break_late(&self, worker: &str, by: Duration) -> bool {
        let open = self.open_connections(worker);
        for connection in &open {
            connection.arrives_late(Instant::now() + by);
            connection.worker_hears();
        }
        !open.is_empty()
    }

    /// The connections of a worker that are in use and unbroken at both ends.
    fn open_connections(&self, worker: &str) -> Vec<Arc<Connection>> {
        self.with_link(worker, |link| {
            link.connections.retain(is_in_use);
            let open = link.connections.iter().filter(|connection| connection.is_open());
            open.cloned().collect()
        })
    }

    /// Closes the connections of a worker whose process has ended, in order, as an operating system does.
    pub fn closed(&self, worker: &str) {
        self.with_link(worker, |link| link.connections.iter().for_each(|it| it.closes()));
    }

    fn present(&self) -> Option<Present> {
        self.inner().present.clone()
    }

    /// A new connection of a worker, with a random stream of its own.
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

    /// The time that a message of a worker takes if it is sent now.
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

    /// Waits for the time that the bytes of a checkpoint take, in addition to the latency of each message.
    async fn transfer(&self, chance: &mut Draw) {
        let most = u64::try_from(self.0.slowest_upload.as_millis()).unwrap_or(0);
        if most > 0 {
            tokio::time::sleep(Duration::from_millis(chance.between(0, most))).await;
        }
    }

    /// Until when no message passes in this direction; `None` if messages pass.
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

    /// Waits for the time that a message takes in this direction.
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
