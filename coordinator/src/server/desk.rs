//! The desk, which serves workers over any kind of connection: their sessions, and checkpoints to and from them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dormouse_identity::WorkerLife;
use dormouse_proto::{Deadline, PROTOCOLS, Protocols, v1};
use dormouse_units::{Attempt, HostId, TaskId};
use ractor::ActorRef;
use ractor::rpc::CallResult;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_stream::{Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tracing::{Instrument as _, Span, debug_span};

use crate::conductor::roster::host_name;
use crate::contents::read_digests;
use crate::messages::message::{ConductorMsg, NoSession, SessionMsg, WorkerConnection};
use crate::networks::PacketExchange;
use crate::server::refusals::RefusalLog;
use crate::sessions::lives::SessionRegistry;
use crate::sessions::outbound::{SessionEnd, WorkerOutbound, goodbye_message};
use crate::storage::assignments::{AttemptAssignments, NotGiven};
use crate::storage::fetches::ActiveFetches;
use crate::storage::image_key::ImageSecret;
use crate::storage::offsite::OffsiteError;
use crate::storage::sealed::{ArrivingCheckpoint, sealed_for};
use crate::storage::store::CheckpointFolder;
use crate::storage::transfers::{Download, GivenCheckpoint, STALL, StoreTransfers};
use crate::system::session_limits::SessionLimits;
use crate::system::world::RandomSource;
use crate::{DETAILS, SPANS};

/// Time within which a new connection must send its Hello.
const HELLO: Duration = Duration::from_secs(5);
/// Longest name of a worker, in bytes; the log has the name for every session.
const LONGEST_NAME: usize = 255;
/// Time for which a new worker waits for the conductor before it is told to try again.
const ANSWER: Duration = Duration::from_secs(10);
const THINKS: &str = "the scheduler is thinking: come again";

/// Serves the calls of workers: those that come over the gRPC server's connections, and those of workers in the same
/// process.
#[derive(Debug)]
pub struct WorkerDesk {
    pub(crate) run: String,
    /// Number of tasks and parallel jobs; `u32::MAX` for an open run.
    pub(crate) tasks: u32,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) lives: Arc<SessionRegistry>,
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) assignments: Arc<AttemptAssignments>,
    pub(crate) transfers: StoreTransfers,
    pub(crate) limits: SessionLimits,
    /// Fetches of checkpoints from the object store that are under way.
    pub(crate) fetches: ActiveFetches,
    /// Secret from which hosts' keys for sealing checkpoints are derived.
    pub(crate) image_key: ImageSecret,
    pub(crate) session_end: SessionEnd,
    /// Passes packets between instances on different workers; `None`: the run has no instances.
    pub(crate) exchange: Option<Arc<PacketExchange>>,
    pub(crate) connections: AtomicU64,
    /// Last refusal of a worker that was told to try again.
    pub(crate) refusals: RefusalLog,
    /// Source of workers' random incarnations.
    pub(crate) chance: RandomSource,
    /// Tracing span of the run.
    pub(crate) span: Span,
}

/// A stream of messages from a worker.
pub(crate) trait WorkerInbound<T>: Stream<Item = Result<T, Status>> + Send + Unpin {}

impl<T, S: Stream<Item = Result<T, Status>> + Send + Unpin> WorkerInbound<T> for S {}

impl WorkerDesk {
    /// Makes a new session for a worker that joins. It belongs to the same lineage as the session whose certificate was
    /// shown, if that has the worker's name.
    ///
    /// # Errors
    ///
    /// The name isn't allowed, or there are no random numbers.
    pub fn join_worker(
        &self,
        worker: &str,
        shown: Option<&WorkerLife>,
    ) -> Result<WorkerLife, Status> {
        self.join_if(worker, shown, |_| Ok(()))
    }

    /// Makes a new session as [`Self::join_worker`] does, unless `let_in` refuses the worker; the argument of `let_in`
    /// says whether the worker has shown an earlier session's certificate.
    pub(crate) fn join_if(
        &self,
        worker: &str,
        shown: Option<&WorkerLife>,
        let_in: impl FnOnce(bool) -> Result<(), Status>,
    ) -> Result<WorkerLife, Status> {
        let former = shown.filter(|life| life.run == self.run && life.worker == worker);
        // Before a token is taken that is good once.
        check_name(worker)?;
        let_in(former.is_some())?;
        let lineage = former.map(|life| WorkerLife::lineage(life.incarnation));
        let drawn = || match self.chance.draw_number() {
            Ok(number) => Ok(number >> 32),
            Err(error) => Err(Status::internal(error.to_string())),
        };
        let incarnation = (lineage.map_or_else(drawn, Ok)? << 32) | drawn()?;
        Ok(WorkerLife { run: self.run.clone(), worker: worker.to_owned(), incarnation })
    }

    /// Opens a session over a connection of the worker whose certificate is that of `life`; returns the messages to
    /// it.
    ///
    /// # Errors
    ///
    /// The worker is refused, for good or for now.
    pub async fn open_session<S>(
        &self,
        life: &WorkerLife,
        inbound: S,
    ) -> Result<WorkerOutbound, Status>
    where
        S: Stream<Item = Result<v1::FromWorker, Status>> + Send + Unpin + 'static,
    {
        self.talk_to_worker(life, inbound, |_| ()).await
    }

    /// Opens a session as [`Self::open_session`] does; `is_itself` is told whether the worker's first message agrees
    /// with its certificate.
    pub(crate) async fn talk_to_worker(
        &self,
        life: &WorkerLife,
        mut inbound: impl WorkerInbound<v1::FromWorker> + 'static,
        is_itself: impl FnOnce(bool),
    ) -> Result<WorkerOutbound, Status> {
        let first = tokio::time::timeout(HELLO, inbound.next())
            .await
            .map_err(|_| Status::deadline_exceeded("no Hello was received"))?
            .transpose()?;
        let (hello, ack, protocol) = check_hello(first).inspect_err(|status| {
            tracing::warn!(why = status.message(), "a worker was refused");
        })?;
        if (&*hello.worker, hello.incarnation) != (&*life.worker, life.incarnation) {
            is_itself(false);
            let why = format!(
                "its certificate is that of {}, and it says that it is {}",
                host_name(&life.worker, life.incarnation),
                host_name(&hello.worker, hello.incarnation)
            );
            return Err(refused_status(why));
        }
        is_itself(true);
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        let (to_worker, messages) = mpsc::channel(self.limits.outbound);
        let outbound = WorkerOutbound::new(messages, self.session_end.clone());
        if life.run != self.run {
            let why = format!("the coordinator now runs {}", self.run);
            let _ = to_worker.try_send(goodbye_message(0, v1::Goodbye { why, over: false }));
            return Ok(outbound);
        }
        let reading = CancellationToken::new();
        let connection = WorkerConnection {
            id,
            protocol,
            to_worker: to_worker.clone(),
            reading: reading.clone().drop_guard(),
        };
        let asked = match self.lives.find_session(&hello.worker, hello.incarnation) {
            // Whoever comes back does not wait until the scheduler has thought.
            Some(session) => {
                session.cast(SessionMsg::Attach { connection, ack }).map_err(|_| ended_status())?;
                Ok(CallResult::Success(Ok(session)))
            }
            None => {
                let hello = |reply| ConductorMsg::Hello { hello, ack, connection, reply };
                self.conductor.call(hello, Some(ANSWER)).await
            }
        };
        match asked {
            Ok(CallResult::Success(Ok(session))) => {
                let window = Arc::new(Semaphore::new(self.limits.window));
                let ends = (reading, self.session_end.clone());
                tokio::spawn(read(id, (inbound, window), session, ends));
            }
            Ok(CallResult::Success(Err(NoSession::Refused(why)))) => {
                tracing::warn!(why, "a worker was refused");
                return Err(Status::already_exists(why));
            }
            Ok(CallResult::Success(Err(NoSession::NotYet(why)))) => {
                // It comes again every moment, and so do others.
                match self.refusals.begins_burst(Instant::now()) {
                    true => tracing::warn!(why, "a worker was refused for the moment"),
                    false => tracing::debug!(why, "a worker was refused for the moment"),
                }
                return Err(Status::unavailable(why));
            }
            Ok(CallResult::Success(Err(NoSession::Goodbye(goodbye)))) => {
                // The stream ends when the last sender is gone: with this function.
                let _ = to_worker.try_send(goodbye_message(0, goodbye));
            }
            Ok(CallResult::Timeout) => return Err(Status::unavailable(THINKS)),
            _ => return Err(ended_status()),
        }
        Ok(outbound)
    }

    /// Stores a checkpoint that the worker of this session sends.
    ///
    /// # Errors
    ///
    /// The worker may not store the checkpoint now, it doesn't arrive completely in time, or the disk is full.
    pub async fn put_checkpoint<S>(
        &self,
        life: &WorkerLife,
        chunks: S,
    ) -> Result<v1::CheckpointReceipt, Status>
    where
        S: Stream<Item = Result<v1::CheckpointChunk, Status>> + Send + Unpin,
    {
        let host = self.host_of_life(life)?;
        self.take_checkpoint(host, chunks).await
    }

    pub(crate) async fn take_checkpoint(
        &self,
        host: HostId,
        mut chunks: impl WorkerInbound<v1::CheckpointChunk>,
    ) -> Result<v1::CheckpointReceipt, Status> {
        let first = next_chunk(&mut chunks, STALL).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("no chunk was received"))?;
        let of = first.checkpoint.as_ref();
        let of = self.check_ref(of.ok_or_else(|| {
            Status::invalid_argument("the first chunk does not name its checkpoint")
        })?)?;
        let whose = (TaskId::new(of.task), Attempt::new(of.attempt));
        let most = self.assignments.may_store(host, whose).map_err(refused_status)?.get();
        let (task, checkpoint) = (of.task, of.checkpoint);
        let span = debug_span!(target: SPANS, parent: &self.span, "store", %host, task, checkpoint);
        self.store_checkpoint(host, whose, of, (most, chunks, first)).instrument(span).await
    }

    /// Sends a checkpoint to the worker of this session.
    ///
    /// # Errors
    ///
    /// The worker may not have the checkpoint, or it isn't stored.
    pub async fn get_checkpoint(
        &self,
        life: &WorkerLife,
        of: v1::CheckpointRef,
    ) -> Result<Download, Status> {
        let host = self.host_of_life(life)?;
        self.give_checkpoint(host, &of, false).await
    }

    pub(crate) async fn give_checkpoint(
        &self,
        host: HostId,
        of: &v1::CheckpointRef,
        takes_packed: bool,
    ) -> Result<Download, Status> {
        let of = self.check_ref(of)?;
        let task = TaskId::new(of.task);
        self.assignments.may_fetch(host, task, of.checkpoint).map_err(not_given)?;
        self.bring_checkpoint(of.task, of.checkpoint).await?;
        let store = Arc::clone(&self.store);
        let turn = self.transfers.take_turn(host).await?;
        let (secret, (worker, incarnation)) = (self.image_key.clone(), self.life_of_host(host)?);
        let open = move || {
            let file = store.open_checkpoint(of.task, of.checkpoint)?;
            sealed_for(file, (&worker, incarnation), secret.bytes())
        };
        let file = self.transfers.run_blocking(open).await?;
        let limits = (STALL, Deadline::begin());
        Ok(self.transfers.give_parcel(GivenCheckpoint::new(of), file, (turn, takes_packed), limits))
    }

    /// Fetches a checkpoint into the store's folder, if only the object store has it.
    async fn bring_checkpoint(&self, task: u32, number: u32) -> Result<(), Status> {
        let Some(offsite) = self.store.offsite() else { return Ok(()) };
        let store = Arc::clone(&self.store);
        match self.transfers.run_blocking(move || store.has_checkpoint(task, number)).await? {
            true => Ok(()),
            false => self.fetches.bring_checkpoint(&self.store, offsite, (task, number)).await,
        }
    }

    /// Stores a checkpoint of at most `most` bytes that a host sends, whose first chunk has arrived.
    async fn store_checkpoint(
        &self,
        host: HostId,
        whose: (TaskId, Attempt),
        of: v1::CheckpointRef,
        (most, mut chunks, first): (
            u64,
            impl WorkerInbound<v1::CheckpointChunk>,
            v1::CheckpointChunk,
        ),
    ) -> Result<v1::CheckpointReceipt, Status> {
        let refers = read_digests(&first.contents)?;
        let _turn = self.transfers.take_turn(host).await?;
        let nonce = self.connections.fetch_add(1, Ordering::Relaxed);
        let store = Arc::clone(&self.store);
        let receive = move || store.receive_checkpoint(of.task, (of.checkpoint, of.attempt), nonce);
        let mut incoming = self.transfers.run_blocking(receive).await?;
        let which = (of.checkpoint, of.attempt);
        let mut copy = self.store.offsite().map(|offsite| offsite.begin_upload(of.task, which));
        let (worker, incarnation) = self.life_of_host(host)?;
        let from = (host, (&*worker, incarnation));
        let mut arriving =
            ArrivingCheckpoint::begin_arrival(of.clone(), from, self.image_key.bytes());
        let (mut next, mut bytes, deadline) = (Some(first), 0, Deadline::begin());
        while let Some(sent) = next {
            let data = self.transfers.unpack_chunk(sent).await?;
            bytes += data.len() as u64;
            if bytes > most {
                let (attempt, task) = (whose.1.get(), whose.0);
                return Err(too_large(format!(
                    "a checkpoint of attempt {attempt} of {task} has more than {most} bytes, the \
                     most for a task of its memory"
                )));
            }
            let take = move || Ok((arriving.take_bytes(data), arriving));
            let (taken, back) = self.transfers.run_blocking(take).await?;
            arriving = back;
            let data = taken.map_err(|why| no_checkpoint(whose, &why))?;
            if let Some(copy) = &mut copy {
                copy.write(data.clone()).await.map_err(OffsiteError::of_put)?;
            }
            let write = move || incoming.write(&data).map(|()| incoming);
            incoming = self.transfers.run_blocking(write).await?;
            let left = deadline.left(bytes);
            if left.is_zero() {
                return Err(Status::deadline_exceeded(deadline.missed(bytes)));
            }
            next = next_chunk(&mut chunks, left.min(STALL)).await?;
        }
        arriving.check_end().map_err(|why| no_checkpoint(whose, &why))?;
        // It may have been given up meanwhile: that is nobody's fault.
        self.assignments.may_store(host, whose).map_err(Status::permission_denied)?;
        let store = Arc::clone(&self.store);
        if let Some(copy) = copy {
            copy.finish_upload(store.contents(), &refers).await.map_err(OffsiteError::of_put)?;
        }
        let finish = move || store.finish_checkpoint(of.task, incoming, &refers);
        let finished = self.transfers.run_blocking(finish).await;
        if let Some(offsite) = self.store.offsite() {
            let logged = self.store.newest_logged(of.task);
            offsite.settle_checkpoint((of.task, which), finished.is_ok(), logged).await;
        }
        let bytes = finished?;
        self.assignments.checkpoint_stored(whose.0);
        Ok(v1::CheckpointReceipt { bytes })
    }

    /// Returns the host of this session of a worker.
    ///
    /// # Errors
    ///
    /// The session doesn't belong to this run, or is lost.
    pub(crate) fn host_of_life(&self, life: &WorkerLife) -> Result<HostId, Status> {
        let host = Some(life).filter(|life| life.run == self.run);
        host.and_then(|life| self.lives.host_of_life(&life.worker, life.incarnation)).ok_or_else(
            || {
                let name = host_name(&life.worker, life.incarnation);
                refused_status(format!("{name} is not a host of run {}", self.run))
            },
        )
    }

    /// Returns the worker's name and incarnation for a host, from which the host's key for sealing is derived.
    fn life_of_host(&self, host: HostId) -> Result<(String, u64), Status> {
        self.lives.life_of_host(host).ok_or_else(|| {
            refused_status(format!("{host} is no longer a host of run {}", self.run))
        })
    }

    fn check_ref(&self, of: &v1::CheckpointRef) -> Result<v1::CheckpointRef, Status> {
        if of.run != self.run {
            let why = format!("this is run {}, not {}", self.run, of.run);
            return Err(Status::failed_precondition(why));
        }
        if of.task >= self.tasks || of.checkpoint == 0 {
            let (task, number, tasks) = (of.task, of.checkpoint, self.tasks);
            let why = format!(
                "checkpoint {number} of task {task} can't be: tasks are 0 to {}, checkpoints are \
                 numbered from 1",
                tasks.saturating_sub(1)
            );
            return Err(Status::invalid_argument(why));
        }
        Ok(of.clone())
    }
}

/// Returns the next chunk of an upload, if it arrives in time.
pub(crate) async fn next_chunk<C>(
    chunks: &mut impl WorkerInbound<C>,
    within: Duration,
) -> Result<Option<C>, Status> {
    let late = || format!("nothing of it came for {} ms", within.as_millis());
    match tokio::time::timeout(within, chunks.next()).await {
        Ok(next) => next.transpose(),
        Err(_) => Err(Status::deadline_exceeded(late())),
    }
}

fn too_large(why: String) -> Status {
    tracing::warn!(why, "a checkpoint was refused");
    Status::resource_exhausted(why)
}

/// Makes the error for a stream that isn't the checkpoint that it claims to be.
fn no_checkpoint((task, attempt): (TaskId, Attempt), why: &str) -> Status {
    let attempt = attempt.get();
    let why = format!("what was sent is not a checkpoint of attempt {attempt} of {task}: {why}");
    tracing::warn!(why, "a checkpoint was refused");
    Status::invalid_argument(why)
}

/// Explains why a worker isn't sent a checkpoint. If the log has none of that number, the worker asks for an older
/// one.
fn not_given(error: NotGiven) -> Status {
    let why = error.to_string();
    match error {
        NotGiven::Refused { .. } => refused_status(why),
        NotGiven::NotLogged { .. } => Status::not_found(why),
    }
}

pub(crate) fn refused_status(why: String) -> Status {
    tracing::info!(target: DETAILS, why, "a call about a checkpoint or a content was refused");
    Status::permission_denied(why)
}

/// Reads a worker's first message: its hello, the number of its last acknowledged report, and the protocol's version.
pub(crate) fn check_hello(first: Option<v1::FromWorker>) -> Result<(v1::Hello, u64, u32), Status> {
    let Some(v1::FromWorker { ack, body: Some(v1::from_worker::Body::Hello(hello)) }) = first
    else {
        return Err(Status::invalid_argument("the first message of a session must be Hello"));
    };
    let protocol = Protocols::settle(Protocols::from_hello(&hello), PROTOCOLS)
        .map_err(|no| Status::failed_precondition(no.to_string()))?;
    if hello.millicores == 0 {
        return Err(Status::invalid_argument("a worker has to offer some of a core"));
    }
    Ok((hello, ack, protocol))
}

fn check_name(worker: &str) -> Result<(), Status> {
    if worker.is_empty() {
        return Err(Status::invalid_argument("a worker needs a name"));
    }
    if worker.len() > LONGEST_NAME || worker.chars().any(char::is_control) {
        return Err(Status::invalid_argument(format!(
            "a worker's name has at most {LONGEST_NAME} bytes and no control characters"
        )));
    }
    Ok(())
}

/// Reads one connection until it ends; pauses while too many of its messages aren't durable.
async fn read(
    connection: u64,
    (mut inbound, window): (impl WorkerInbound<v1::FromWorker>, Arc<Semaphore>),
    session: ActorRef<SessionMsg>,
    (reading, session_end): (CancellationToken, SessionEnd),
) {
    let why = loop {
        let received = tokio::select! {
            biased;
            () = reading.cancelled() => return,
            () = session_end.wait_announced() => return,
            received = async {
                // The window is never closed.
                let permit = Arc::clone(&window).acquire_owned().await.ok()?;
                Some((permit, inbound.next().await.transpose()))
            } => received,
        };
        match received {
            Some((permit, Ok(Some(message)))) => {
                let message = SessionMsg::Received { connection, message, permit };
                if session.cast(message).is_err() {
                    return;
                }
            }
            Some((_, Ok(None))) | None => break "the worker closed it".to_owned(),
            Some((_, Err(status))) => break status.to_string(),
        }
    };
    let _ = session.cast(SessionMsg::Detached { connection, why });
}

fn ended_status() -> Status {
    Status::unavailable("the coordinator is shutting down")
}
