//! A worker's end of the network.

use std::future::pending;
use std::sync::Arc;

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use dormouse_units::{Attempt, CheckpointSeq, TaskId};
use tokio::sync::mpsc;
use tokio::time::sleep_until;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Connection, Network, Present, Server, Serving, Way, pump};
use crate::draw::Draw;

/// Messages of a coordinator as they arrive; an error is a broken connection.
pub type Inbound = ReceiverStream<Result<v1::ToWorker, Status>>;

/// Number of messages that a stream buffers before its writer waits.
const WINDOW: usize = 64;

/// A worker's end of the network, the same for all sessions of the worker.
#[derive(Clone, Debug)]
pub struct Port {
    network: Network,
    worker: String,
}

/// The error of a call whose connection broke, or that found no coordinator.
fn unreachable(why: &str) -> Status {
    Status::unavailable(why.to_owned())
}

impl Port {
    pub(super) fn new(network: Network, worker: &str) -> Self {
        Self { network, worker: worker.to_owned() }
    }

    /// Waits until a message has reached the coordinator, and returns that coordinator.
    async fn reach(&self) -> Result<Present, Status> {
        let (_, mut chance) = self.network.connect(&self.worker);
        self.network.travel(&self.worker, Way::Up, &mut chance).await;
        self.network.present().ok_or_else(|| unreachable("nobody listens there"))
    }

    /// Checks by one round trip whether the coordinator is there.
    ///
    /// # Errors
    ///
    /// No coordinator listens (`Unavailable`).
    pub async fn dial(&self) -> Result<(), Status> {
        self.call(|_| Ok(Box::pin(async { Ok(()) }))).await
    }

    /// Joins the run and returns the new session identity; shows the certificate of a former session if there was one.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses.
    pub async fn join(&self, former: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        self.call(|server| {
            let life = server.join(&self.worker, former)?;
            Ok(Box::pin(async { Ok(life) }))
        })
        .await
    }

    /// Opens a session. A dropped sender, or a dropped stream, closes the connection.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses.
    pub async fn session(
        &self,
        life: &WorkerLife,
        messages: mpsc::Receiver<v1::FromWorker>,
    ) -> Result<Inbound, Status> {
        let present = self.reach().await?;
        let (connection, chance) = self.network.connect(&self.worker);
        let (up, inbound) = mpsc::channel(WINDOW);
        let inbound = Box::pin(ReceiverStream::new(inbound));
        let ends = pump::Ends {
            network: self.network.clone(),
            connection: Arc::clone(&connection),
            life: life.clone(),
            generation: present.generation,
        };
        tokio::spawn(pump::up(ends.clone(), chance.clone(), messages, up));
        let opening = present.server.session(life.clone(), inbound);
        let outbound = tokio::select! {
            biased;
            () = connection.broken_for_worker() => return Err(unreachable("the connection broke")),
            () = connection.broken_for_coordinator() => None,
            outbound = opening => Some(outbound?),
        };
        let Some(outbound) = outbound else {
            connection.broken_for_worker().await;
            return Err(unreachable("the connection broke"));
        };
        let (down, arrived) = mpsc::channel(WINDOW);
        tokio::spawn(pump::down(ends, chance, outbound, down));
        Ok(ReceiverStream::new(arrived))
    }

    /// Stores a checkpoint.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses, or the connection broke.
    pub async fn put_checkpoint(
        &self,
        life: &WorkerLife,
        chunks: Vec<v1::CheckpointChunk>,
    ) -> Result<v1::CheckpointReceipt, Status> {
        let (sender, stream) = mpsc::channel(WINDOW);
        let (network, worker) = (self.network.clone(), self.worker.clone());
        let (connection, mut chance) = self.network.connect(&self.worker);
        let (sending, answered) = (Arc::clone(&connection), chance.clone());
        let of = chunks.first().and_then(|chunk| chunk.checkpoint.as_ref());
        let of = of.map_or((0, 0, 0), |of| (of.task, of.checkpoint, of.attempt));
        let (task, attempt) = (TaskId::new(of.0), Attempt::new(of.2));
        let number = CheckpointSeq::new(of.1);
        let newest = self.network.0.stage.sets_out((task, of.1, attempt));
        tokio::spawn(async move {
            for (n, chunk) in chunks.into_iter().enumerate() {
                let goes = async {
                    network.travel(&worker, Way::Up, &mut chance).await;
                    if n == 1 {
                        // The coordinator has begun to store it.
                        network.transfer(&mut chance).await;
                    }
                    // What had set out when the connection broke arrives late, or never.
                    match sending.late() {
                        Some(late) => sleep_until(late).await,
                        None if sending.is_broken_for_worker() => pending().await,
                        None => {}
                    }
                };
                tokio::select! {
                    biased;
                    () = sending.broken_for_coordinator() => {
                        let _ = sender.send(Err(unreachable("the connection broke"))).await;
                        return;
                    }
                    () = goes => {}
                    () = sender.closed() => return,
                }
                if sender.send(Ok(chunk)).await.is_err() {
                    return;
                }
            }
        });
        let stream = Box::pin(ReceiverStream::new(stream));
        let stage = self.network.0.stage.clone();
        self.call_over(connection, answered, |present| {
            let generation = present.generation;
            let server = Arc::clone(&present.server);
            let stored = server.put_checkpoint(life.clone(), stream);
            Ok(Box::pin(async move {
                let receipt = stored.await?;
                stage.has_stored(generation, (task, number, attempt), newest);
                Ok(receipt)
            }))
        })
        .await
    }

    /// Fetches a checkpoint.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses, or the connection broke.
    pub async fn get_checkpoint(
        &self,
        life: &WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Result<Vec<v1::CheckpointChunk>, Status> {
        self.call(|server| Ok(server.get_checkpoint(life.clone(), wanted))).await
    }

    /// Makes a call and waits for its answer, over a new connection.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(Arc<dyn Server>) -> Result<Serving<T>, Status>,
    ) -> Result<T, Status> {
        let (connection, chance) = self.network.connect(&self.worker);
        self.call_over(connection, chance, |present| call(Arc::clone(&present.server))).await
    }

    /// Makes a call over this connection and waits for its answer. An end that does not notice a break carries on as
    /// if there were none: the coordinator works on the request, the worker waits.
    async fn call_over<T: Send + 'static>(
        &self,
        connection: Arc<Connection>,
        mut chance: Draw,
        call: impl FnOnce(&Present) -> Result<Serving<T>, Status>,
    ) -> Result<T, Status> {
        let broke = || unreachable("the connection broke");
        let present = self.reach().await?;
        let mut serving = call(&present)?;
        let answer = tokio::select! {
            biased;
            () = connection.broken_for_worker() => {
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = connection.broken_for_coordinator() => {}
                        _ = serving => {}
                    }
                });
                return Err(broke());
            }
            () = connection.broken_for_coordinator() => None,
            answer = &mut serving => Some(answer),
        };
        // A dead process answers nothing: its worker hears of the break, at once or later.
        let answer = answer.filter(|_| self.network.0.stage.lives(present.generation));
        let Some(answer) = answer else {
            connection.broken_for_worker().await;
            return Err(broke());
        };
        let answer = answer?;
        tokio::select! {
            biased;
            () = connection.broken_for_worker() => Err(broke()),
            () = self.network.travel(&self.worker, Way::Down, &mut chance) => Ok(answer),
        }
    }
}
