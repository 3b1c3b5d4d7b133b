//! Checkpoints to and from the coordinator's store.
//!
//! The wire is asynchronous and the local store is not: a bounded channel of chunks lies
//! between, so that neither runs ahead of the other. The thread at the store's end waits for the
//! wire, so only a few transfers are under way at a time, and one that stands still is given up.

use std::{
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use dormouse_proto::{
    Deadline,
    v1::{CheckpointChunk, CheckpointRef, coordinator_client::CoordinatorClient},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::spawn_blocking,
    time::timeout,
};
use tokio_stream::{StreamExt as _, wrappers::ReceiverStream};
use tonic::{Code, Status, Streaming};
use tracing::{Instrument as _, debug_span};

use super::{
    gate::{Pass, Revoked},
    repeat::{Pauses, is_unanswered},
    report::explain,
    session::Trusted,
};
use crate::SPANS;
use crate::store::{Checkpoint, Store};

const CHUNK: usize = 256 * 1024;
/// Chunks on their way between the store and the wire.
const IN_FLIGHT: usize = 8;
/// Transfers under way at once in either direction: a small part of the pool that births, dumps and
/// restores need, too, and no more than the coordinator takes of one host.
const AT_ONCE: usize = 8;
/// How long a transfer may stand still. The coordinator gives one up after 30 s, and its reason is
/// the better one.
const STILL: Duration = Duration::from_secs(60);
/// How long a transfer may wait for its turn: what is under way gets on or is given up.
const TURN: Duration = Duration::from_secs(300);

/// A transfer that does not get on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stuck {
    #[error(
        "nothing of it moved for {} ms between this worker's disk and the coordinator; \
         see that either works and has room", after.as_millis()
    )]
    Still { after: Duration },
    #[error("{0}")]
    Slow(String),
    #[error(
        "{AT_ONCE} others were under way for {} ms before it; \
         see that the coordinator and this worker's disk keep up", after.as_millis()
    )]
    NoTurn { after: Duration },
}

/// Why a checkpoint did not come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The coordinator does not have it, or not whole.
    #[error("the coordinator has no sound copy: {0}")]
    Absent(String),
    /// It could not be asked.
    #[error("the coordinator cannot be asked for it: {0}")]
    Transport(String),
    /// It is away, or went meanwhile.
    #[error("the coordinator cannot be reached: {0}")]
    Unanswered(String),
    /// It was given up.
    #[error("it is given up")]
    Stuck(#[from] Stuck),
    /// Nobody waits for it any more.
    #[error(transparent)]
    Revoked(#[from] Revoked),
}

/// Why a checkpoint is not with the coordinator.
#[derive(Debug)]
struct NotSent {
    why: String,
    /// The coordinator was away, or went before it had answered.
    unanswered: bool,
}

impl From<String> for NotSent {
    fn from(why: String) -> Self {
        Self { why, unanswered: false }
    }
}

/// What all transfers of a worker share.
#[derive(Debug)]
pub(crate) struct Transfers {
    coordinator: CoordinatorClient<Trusted>,
    uploads: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    still: Duration,
    /// How long one may take beside what its bytes take; else as the deadline has it.
    within: Option<Duration>,
}

impl Transfers {
    fn deadline(&self) -> Deadline {
        self.within.map_or_else(Deadline::begin, Deadline::within)
    }

    /// By a connection of their own, apart from the session's.
    pub(crate) fn new(coordinator: Trusted) -> Self {
        let turns = || Arc::new(Semaphore::new(AT_ONCE));
        Self {
            coordinator: CoordinatorClient::new(coordinator),
            uploads: turns(),
            fetches: turns(),
            still: STILL,
            within: None,
        }
    }

    /// Sends a checkpoint, again and again while the coordinator is away and the VM is there; its
    /// size in bytes once the coordinator has it for good.
    pub(crate) async fn put(
        &self,
        pass: &Pass,
        reference: CheckpointRef,
        checkpoint: Checkpoint,
    ) -> Result<u64, String> {
        let CheckpointRef { task, checkpoint: number, .. } = reference;
        let mut pauses = Pauses::default();
        loop {
            let span = debug_span!(target: SPANS, "send", task, checkpoint = number);
            let sent = self.send(reference.clone(), checkpoint.clone()).instrument(span).await;
            match sent {
                Err(NotSent { unanswered: true, why }) => {
                    tracing::debug!(task, number, why, "a checkpoint is sent again");
                    pauses.wait(pass).await.map_err(|_| why)?;
                }
                done => return done.map_err(|NotSent { why, .. }| why),
            }
        }
    }

    async fn send(&self, reference: CheckpointRef, checkpoint: Checkpoint) -> Result<u64, NotSent> {
        let turn = turn(&self.uploads).await.map_err(|e| explain(&e))?;
        let (chunks, stream) = mpsc::channel(IN_FLIGHT);
        let reader = spawn_blocking(move || {
            let mut writer =
                ChunkWriter { chunks, reference: Some(reference), buffer: BytesMut::new() };
            let exported = checkpoint.export(&mut writer);
            drop(turn);
            exported
        });
        let (tell, moved) = watch::channel(0);
        let stream = ReceiverStream::new(stream).map(move |chunk| {
            tell.send_modify(|bytes| *bytes += chunk.data.len() as u64);
            chunk
        });
        let mut coordinator = self.coordinator.clone();
        let limits = (self.still, self.deadline());
        let sent = unless_stuck(limits, moved, coordinator.put_checkpoint(stream)).await;
        let sent = sent.map_err(|e| explain(&e))?;
        // With the stream it ends, unless the disk keeps it.
        let exported = timeout(self.still, reader).await.map_err(|_| explain(&self.stuck()))?;
        let exported = exported.map_err(|e| explain(&e))?;
        match (sent, exported) {
            // Why the stream broke off is in the status, unless it was the store's doing.
            (Err(status), Err(error)) if status.code() == Code::Cancelled => {
                Err(explain(&error).into())
            }
            (Err(status), _) => {
                let why = format!("{}: {}", status.code(), status.message());
                Err(NotSent { why, unanswered: is_unanswered(&status) })
            }
            (Ok(_), Err(error)) => Err(explain(&error).into()),
            (Ok(receipt), Ok(bytes)) => {
                let stored = receipt.into_inner().bytes;
                if stored == bytes {
                    Ok(bytes)
                } else {
                    Err(format!("{bytes} bytes were sent and {stored} stored").into())
                }
            }
        }
    }

    /// Fetches a checkpoint into the local store, again and again while the coordinator is away. What
    /// came of one that is given up is removed.
    pub(crate) async fn fetch(
        &self,
        store: &Store,
        pass: &Pass,
        reference: CheckpointRef,
    ) -> Result<(), FetchError> {
        let CheckpointRef { task, checkpoint, .. } = reference;
        let mut pauses = Pauses::default();
        loop {
            let span = debug_span!(target: SPANS, "fetch", task, checkpoint);
            match self.get(store, pass, reference.clone()).instrument(span).await {
                Err(FetchError::Unanswered(_)) => pauses.wait(pass).await?,
                done => return done,
            }
        }
    }

    async fn get(
        &self,
        store: &Store,
        pass: &Pass,
        reference: CheckpointRef,
    ) -> Result<(), FetchError> {
        let turn = pass.unless_revoked(turn(&self.fetches)).await??;
        let mut coordinator = self.coordinator.clone();
        let asked = timeout(self.still, coordinator.get_checkpoint(reference));
        let response = pass.unless_revoked(asked).await?.map_err(|_| self.stuck())?;
        let stream = response.map_err(told)?.into_inner();
        let (chunks, receiver) = mpsc::channel(IN_FLIGHT);
        let store = store.clone();
        let writer = spawn_blocking(move || {
            let mut reader = ChunkReader { chunks: receiver, current: Bytes::new() };
            let imported = store.import(&mut reader).map(drop);
            drop(turn);
            imported
        });
        let received = pass.unless_revoked(self.receive(stream, chunks)).await;
        let received = received.unwrap_or_else(|revoked| Err(revoked.into()));
        // With the chunks it ends, unless the disk keeps it.
        let imported = timeout(self.still, writer).await.map_err(|_| self.stuck())?;
        let imported = imported.map_err(|e| FetchError::Transport(explain(&e)))?;
        match (imported, received) {
            (Ok(()), _) => Ok(()),
            (Err(_), Err(broken)) => Err(broken),
            (Err(error), Ok(())) => Err(FetchError::Absent(explain(&error))),
        }
    }

    /// Passes chunks on until they end or nobody takes them.
    async fn receive(
        &self,
        mut stream: Streaming<CheckpointChunk>,
        chunks: mpsc::Sender<Bytes>,
    ) -> Result<(), FetchError> {
        let (deadline, mut bytes) = (self.deadline(), 0);
        loop {
            let left = deadline.left(bytes);
            let next = timeout(self.still.min(left), stream.message()).await.map_err(|_| {
                if left < self.still { Stuck::Slow(deadline.missed(bytes)) } else { self.stuck() }
            })?;
            let Some(chunk) = next.map_err(told)? else { return Ok(()) };
            bytes += chunk.data.len() as u64;
            let taken = timeout(self.still, chunks.send(chunk.data)).await;
            // The import has failed; it says why.
            if taken.map_err(|_| self.stuck())?.is_err() {
                return Ok(());
            }
        }
    }

    fn stuck(&self) -> Stuck {
        Stuck::Still { after: self.still }
    }
}

/// A place among those under way in one direction, for as long as a thread is at work on it.
async fn turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Stuck> {
    match timeout(TURN, Arc::clone(turns).acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        _ => Err(Stuck::NoTurn { after: TURN }),
    }
}

/// What comes of a transfer that says how many bytes of it have moved.
async fn unless_stuck<T>(
    (still, deadline): (Duration, Deadline),
    mut moved: watch::Receiver<u64>,
    transfer: impl Future<Output = T>,
) -> Result<T, Stuck> {
    tokio::pin!(transfer);
    let stuck = |_| Stuck::Still { after: still };
    loop {
        let bytes = *moved.borrow_and_update();
        let left = deadline.left(bytes);
        if left.is_zero() {
            return Err(Stuck::Slow(deadline.missed(bytes)));
        }
        tokio::select! {
            done = &mut transfer => return Ok(done),
            news = timeout(still.min(left), moved.changed()) => match news {
                Ok(Ok(())) => {}
                // All has gone: what is missing is the answer.
                Ok(Err(_)) => return timeout(still, transfer).await.map_err(stuck),
                // Its time is up, which is seen above.
                Err(_) if left < still => {}
                Err(late) => return Err(stuck(late)),
            }
        }
    }
}

fn told(status: Status) -> FetchError {
    let text = format!("{}: {}", status.code(), status.message());
    match status.code() {
        Code::NotFound | Code::DataLoss => FetchError::Absent(text),
        _ if is_unanswered(&status) => FetchError::Unanswered(text),
        _ => FetchError::Transport(text),
    }
}

/// Collects what is written into chunks. Blocks where the wire is slower.
struct ChunkWriter {
    chunks: mpsc::Sender<CheckpointChunk>,
    /// Until the first chunk has gone.
    reference: Option<CheckpointRef>,
    buffer: BytesMut,
}

impl ChunkWriter {
    fn send(&mut self) -> io::Result<()> {
        let data = self.buffer.split().freeze();
        let checkpoint = self.reference.take();
        self.chunks
            .blocking_send(CheckpointChunk { checkpoint, data })
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.buffer.len());
        let (now, _) = bytes.split_at(taken);
        self.buffer.extend_from_slice(now);
        if self.buffer.len() == CHUNK {
            self.send()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send() }
    }
}

/// Reads chunks as one stream.
struct ChunkReader {
    chunks: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl Read for ChunkReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.current = chunk,
                None => return Ok(0),
            }
        }
        let taken = buffer.len().min(self.current.len());
        let (into, _) = buffer.split_at_mut(taken);
        self.current.copy_to_slice(into);
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;
