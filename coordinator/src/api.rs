//! The gRPC service for workers: turns connections into sessions, stores checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dormouse_identity::{Authority, Role, WorkerLife};
use dormouse_proto::{Deadline, PROTOCOLS, Protocols, v1};
use dormouse_units::{Attempt, HostId, TaskId};
use ractor::ActorRef;
use ractor::rpc::CallResult;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};
use tracing::{Instrument as _, Span, debug_span};

use crate::SPANS;
use crate::assignments::Assignments;
use crate::candidates::Caller;
use crate::contents::digests;
use crate::identity::Guard;
use crate::lives::Lives;
use crate::message::ConductorMsg;
use crate::outbound::{Outbound, SessionEnd, goodbye_message};
use crate::refusals::Refusals;
use crate::roster::host_name;
use crate::session::{Connection, NoSession, SessionMsg};
use crate::store::Store;
use crate::transfers::{Download, GivenCheckpoint, STALL, Transfers};

/// Messages of a worker that may wait for the journal before it must wait itself.
const WINDOW: usize = 64;
/// Messages to a worker that may wait for it to read.
const OUTBOUND: usize = 64;
/// How long a session may take until its Hello.
const HELLO: Duration = Duration::from_secs(5);
/// The longest name of a worker: it goes into the log with every life.
const LONGEST_NAME: usize = 255;
/// How long a new worker waits for the conductor before it is told to come again.
const ANSWER: Duration = Duration::from_secs(10);
const THINKS: &str = "the scheduler is thinking: come again";

#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) run: String,
    /// Signs the certificates of workers.
    pub(crate) authority: Authority,
    pub(crate) guard: Guard,
    pub(crate) tasks: u32,
    pub(crate) conductor: ActorRef<ConductorMsg>,
    pub(crate) lives: Arc<Lives>,
    pub(crate) store: Arc<Store>,
    pub(crate) assignments: Arc<Assignments>,
    pub(crate) transfers: Transfers,
    pub(crate) session_end: SessionEnd,
    pub(crate) connections: AtomicU64,
    /// Workers that were told to come again.
    pub(crate) refusals: Refusals,
    /// The run, for whoever traces it.
    pub(crate) span: Span,
}

#[tonic::async_trait]
impl v1::coordinator_server::Coordinator for Api {
    type SessionStream = Outbound;
    type GetCheckpointStream = Download;

    async fn join(
        &self,
        request: Request<v1::JoinRequest>,
    ) -> Result<Response<v1::JoinReply>, Status> {
        let caller = request.extensions().get::<Caller>();
        let v1::JoinRequest { worker, public_key } = request.get_ref().clone();
        let shown = caller.and_then(|caller| caller.life.clone());
        let former = shown.filter(|life| life.run == self.run && life.worker == worker);
        match (&former, caller) {
            // Who has joined once stays, whatever has become of the token.
            (Some(_), Some(caller)) => caller.candidate.admit(),
            _ => self.guard.demand(&request, Role::Worker)?,
        }
        check_name(&worker)?;
        let lineage = former.map(|life| WorkerLife::lineage(life.incarnation));
        let drawn = || getrandom::u32().map(u64::from).map_err(|e| Status::internal(e.to_string()));
        let incarnation = (lineage.map_or_else(drawn, Ok)? << 32) | drawn()?;
        let life = WorkerLife { run: self.run.clone(), worker, incarnation };
        let certificate = self.authority.certify(&life, &public_key);
        let certificate =
            certificate.map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Response::new(v1::JoinReply { certificate: certificate.into(), incarnation }))
    }

    async fn session(
        &self,
        request: Request<Streaming<v1::FromWorker>>,
    ) -> Result<Response<Outbound>, Status> {
        let (life, caller) = self.guard.certified(&request)?;
        let mut inbound = request.into_inner();
        let first = tokio::time::timeout(HELLO, inbound.message())
            .await
            .map_err(|_| Status::deadline_exceeded("no Hello came"))??;
        let (hello, ack, protocol) = check_hello(first).inspect_err(|status| {
            tracing::warn!(why = status.message(), "a worker was refused");
        })?;
        if (&*hello.worker, hello.incarnation) != (&*life.worker, life.incarnation) {
            caller.candidate.refuse();
            let why = format!(
                "its certificate is that of {}, and it says that it is {}",
                host_name(&life.worker, life.incarnation),
                host_name(&hello.worker, hello.incarnation)
            );
            return Err(refused(why));
        }
        caller.candidate.admit();
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        let (to_worker, messages) = mpsc::channel(OUTBOUND);
        let outbound = Outbound::new(messages, self.session_end.clone());
        if life.run != self.run {
            let why = format!("the coordinator now runs {}", self.run);
            let _ = to_worker.try_send(goodbye_message(0, v1::Goodbye { why, over: false }));
            return Ok(Response::new(outbound));
        }
        let reading = CancellationToken::new();
        let connection = Connection {
            id,
            protocol,
            to_worker: to_worker.clone(),
            reading: reading.clone().drop_guard(),
        };
        let asked = match self.lives.session(&hello.worker, hello.incarnation) {
            // Whoever comes back does not wait until the scheduler has thought.
            Some(session) => {
                session.cast(SessionMsg::Attach { connection, ack }).map_err(|_| ended())?;
                Ok(CallResult::Success(Ok(session)))
            }
            None => {
                let hello = |reply| ConductorMsg::Hello { hello, ack, connection, reply };
                self.conductor.call(hello, Some(ANSWER)).await
            }
        };
        match asked {
            Ok(CallResult::Success(Ok(session))) => {
                tokio::spawn(read(id, inbound, session, reading, self.session_end.clone()));
            }
            Ok(CallResult::Success(Err(NoSession::Refused(why)))) => {
                tracing::warn!(why, "a worker was refused");
                return Err(Status::already_exists(why));
            }
            Ok(CallResult::Success(Err(NoSession::NotYet(why)))) => {
                // It comes again every moment, and so do others.
                match self.refusals.begins_burst(Instant::now()) {
                    true => tracing::warn!(why, "a worker was refused for now"),
                    false => tracing::debug!(why, "a worker was refused for now"),
                }
                return Err(Status::unavailable(why));
            }
            Ok(CallResult::Success(Err(NoSession::Goodbye(goodbye)))) => {
                // The stream ends when the last sender is gone: with this function.
                let _ = to_worker.try_send(goodbye_message(0, goodbye));
            }
            Ok(CallResult::Timeout) => return Err(Status::unavailable(THINKS)),
            _ => return Err(ended()),
        }
        Ok(Response::new(outbound))
    }

    async fn put_checkpoint(
        &self,
        request: Request<Streaming<v1::CheckpointChunk>>,
    ) -> Result<Response<v1::CheckpointReceipt>, Status> {
        let host = self.host_of(&request)?;
        let mut chunks = request.into_inner();
        let first = chunk(&mut chunks, STALL).await?;
        let first = first.ok_or_else(|| Status::invalid_argument("no chunk"))?;
        let of = first.checkpoint.as_ref();
        let of = self.check_ref(of.ok_or_else(|| {
            Status::invalid_argument("the first chunk does not say of which checkpoint it is")
        })?)?;
        let whose = (TaskId::new(of.task), Attempt::new(of.attempt));
        let most = self.assignments.may_store(host, whose).map_err(refused)?.get();
        let (task, checkpoint) = (of.task, of.checkpoint);
        let span = debug_span!(target: SPANS, parent: &self.span, "store", %host, task, checkpoint);
        self.store(host, whose, of, (most, chunks, first)).instrument(span).await
    }

    async fn get_checkpoint(
        &self,
        request: Request<v1::CheckpointRef>,
    ) -> Result<Response<Self::GetCheckpointStream>, Status> {
        let host = self.host_of(&request)?;
        let of = self.check_ref(request.get_ref())?;
        let task = TaskId::new(of.task);
        self.assignments.may_fetch(host, task, of.checkpoint).map_err(refused)?;
        let store = Arc::clone(&self.store);
        let turn = self.transfers.turn(host).await?;
        let open = move || store.open_checkpoint(of.task, of.checkpoint);
        let file = self.transfers.blocking(open).await?;
        Ok(Response::new(self.transfers.give(
            GivenCheckpoint::new(of),
            file,
            turn,
            (STALL, Deadline::begin()),
        )))
    }
}

impl Api {
    /// Stores a checkpoint of at most so many bytes that a host sends, of which the first chunk has come.
    async fn store(
        &self,
        host: HostId,
        whose: (TaskId, Attempt),
        of: v1::CheckpointRef,
        (most, mut chunks, first): (u64, Streaming<v1::CheckpointChunk>, v1::CheckpointChunk),
    ) -> Result<Response<v1::CheckpointReceipt>, Status> {
        let refers = digests(&first.contents)?;
        let _turn = self.transfers.turn(host).await?;
        let nonce = self.connections.fetch_add(1, Ordering::Relaxed);
        let store = Arc::clone(&self.store);
        let receive = move || store.receive(of.task, (of.checkpoint, of.attempt), nonce);
        let mut incoming = self.transfers.blocking(receive).await?;
        let (mut next, mut bytes, deadline) = (Some(first), 0, Deadline::begin());
        while let Some(v1::CheckpointChunk { data, .. }) = next {
            bytes += data.len() as u64;
            if bytes > most {
                let (attempt, task) = (whose.1.get(), whose.0);
                return Err(too_large(format!(
                    "a checkpoint of attempt {attempt} of {task} has more than {most} bytes, which its \
                     memory does not explain"
                )));
            }
            let write = move || incoming.write(&data).map(|()| incoming);
            incoming = self.transfers.blocking(write).await?;
            let left = deadline.left(bytes);
            if left.is_zero() {
                return Err(Status::deadline_exceeded(deadline.missed(bytes)));
            }
            next = chunk(&mut chunks, left.min(STALL)).await?;
        }
        // It may have been given up meanwhile: that is nobody's fault.
        self.assignments.may_store(host, whose).map_err(Status::permission_denied)?;
        let store = Arc::clone(&self.store);
        let finish = move || store.finish(of.task, incoming, &refers);
        let bytes = self.transfers.blocking(finish).await?;
        self.assignments.stored(whose.0);
        Ok(Response::new(v1::CheckpointReceipt { bytes }))
    }

    /// The host whose certificate the connection of a call about a checkpoint has shown.
    pub(crate) fn host_of<T>(&self, request: &Request<T>) -> Result<HostId, Status> {
        let (life, caller) = self.guard.certified(request)?;
        let host = Some(&life).filter(|life| life.run == self.run);
        let host = host.and_then(|life| self.lives.host(&life.worker, life.incarnation));
        match host {
            Some(host) => {
                caller.candidate.admit();
                Ok(host)
            }
            None => {
                let name = host_name(&life.worker, life.incarnation);
                Err(refused(format!("{name} is no host of run {}", self.run)))
            }
        }
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

/// The next chunk of an upload, if it comes in time.
pub(crate) async fn chunk<C>(
    chunks: &mut Streaming<C>,
    within: Duration,
) -> Result<Option<C>, Status> {
    let late = || format!("nothing of it came for {} ms", within.as_millis());
    tokio::time::timeout(within, chunks.message())
        .await
        .unwrap_or_else(|_| Err(Status::deadline_exceeded(late())))
}

fn too_large(why: String) -> Status {
    tracing::warn!(why, "a checkpoint was refused");
    Status::resource_exhausted(why)
}

pub(crate) fn refused(why: String) -> Status {
    tracing::warn!(why, "a call about a checkpoint or a content was refused");
    Status::permission_denied(why)
}

/// What a worker says first, what it acknowledges, and the version of the protocol that is spoken.
pub(crate) fn check_hello(first: Option<v1::FromWorker>) -> Result<(v1::Hello, u64, u32), Status> {
    let Some(v1::FromWorker { ack, body: Some(v1::from_worker::Body::Hello(hello)) }) = first
    else {
        return Err(Status::invalid_argument("the first message of a session must be Hello"));
    };
    let protocol = Protocols::settle(Protocols::of(&hello), PROTOCOLS)
        .map_err(|no| Status::failed_precondition(no.to_string()))?;
    if hello.millicores == 0 {
        return Err(Status::invalid_argument("a worker needs some of a core"));
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

/// Reads one connection until it ends. It must wait while too much of it isn't durable.
async fn read(
    connection: u64,
    mut inbound: Streaming<v1::FromWorker>,
    session: ActorRef<SessionMsg>,
    reading: CancellationToken,
    session_end: SessionEnd,
) {
    let window = Arc::new(Semaphore::new(WINDOW));
    let why = loop {
        let received = tokio::select! {
            () = reading.cancelled() => return,
            () = session_end.announced() => return,
            received = async {
                // The window is never closed.
                let permit = Arc::clone(&window).acquire_owned().await.ok()?;
                Some((permit, inbound.message().await))
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

fn ended() -> Status {
    Status::unavailable("the coordinator is ending")
}
