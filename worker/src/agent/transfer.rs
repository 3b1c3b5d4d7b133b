//! Checkpoints, and the contents that they refer to, to and from the coordinator's store.
//!
//! The wire is asynchronous and the local store is not: a bounded channel of chunks lies between, so that neither runs
//! ahead of the other. The thread at the store's end waits for the wire, so only a few transfers are under way at a
//! time, and a transfer that makes no progress is given up.

use std::{
    io::{self, Write},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use dormouse_proto::{
    Deadline, Packing, TAKES_PACKED, unpack,
    v1::{
        CheckpointChunk, CheckpointRef, content_store_client::ContentStoreClient,
        coordinator_client::CoordinatorClient,
    },
};
use parcel::{ChunkMessage, ChunkReader, ChunkWriter};
use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc, watch},
    task::spawn_blocking,
    time::timeout,
};
use tokio_stream::Stream;
use tonic::{Code, Request, Status, Streaming, metadata::MetadataValue, transport::Channel};
use tracing::{Instrument as _, debug_span};

use super::{
    gate::{LaunchPass, RevokedLaunch},
    repeat::{RetryPauses, is_unanswered},
    report::explain_error,
};
use crate::SPANS;
use crate::store::{CheckpointArrival, ExpectedCheckpoint, LocalCheckpoints, StoredCheckpoint};

mod contents;
mod parcel;

pub(crate) use contents::Open;

/// Number of chunks buffered between the store and the connection.
const IN_FLIGHT: usize = 8;
/// Most transfers at once in each direction: a small part of the thread pool, which starts, dumps and restores need
/// too, and no more than the coordinator accepts from one host.
const AT_ONCE: usize = 8;
/// Time for which a transfer may make no progress. The coordinator gives up after 30 s and gives a better reason.
const STILL: Duration = Duration::from_secs(60);
/// Time for which a transfer may wait for its turn: other transfers either make progress or fail.
const TURN: Duration = Duration::from_secs(300);

/// Error: a transfer makes no progress.
#[derive(Debug, thiserror::Error)]
pub enum StuckTransfer {
    /// The transfer has moved no data for some time.
    #[error(
        "no data moved for {} ms between this worker's disk and the coordinator; check that both \
         work and have room", after.as_millis()
    )]
    Still {
        /// Time for which no data moved.
        after: Duration,
    },
    /// The transfer moves data, but too slowly.
    #[error("{0}")]
    Slow(String),
    /// The transfer has waited too long for other transfers.
    #[error(
        "it waited {} ms for {AT_ONCE} other transfers; check that the coordinator and this \
         worker's disk keep up", after.as_millis()
    )]
    NoTurn {
        /// Time for which the transfer waited.
        after: Duration,
    },
}

/// Why a checkpoint wasn't fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The coordinator doesn't have the checkpoint, or not completely.
    #[error("the coordinator has no undamaged copy: {0}")]
    Absent(String),
    /// The call to the coordinator failed.
    #[error("the coordinator can't be asked for it: {0}")]
    Transport(String),
    /// The coordinator could not be reached, or the connection broke during the transfer.
    #[error("the coordinator can't be reached: {0}")]
    Unanswered(String),
    /// The coordinator's version doesn't know the call.
    #[error("the coordinator does not know the call")]
    Unknown,
    /// The transfer made no progress.
    #[error("it was cancelled")]
    Stuck(#[from] StuckTransfer),
    /// The launch that needs the checkpoint was revoked.
    #[error(transparent)]
    Revoked(#[from] RevokedLaunch),
}

/// Error: a checkpoint wasn't sent.
#[derive(Debug)]
pub struct NotSent {
    why: String,
    /// True if the coordinator could not be reached, or the connection broke before it answered.
    unanswered: bool,
    /// True if the coordinator lacks a content to which the checkpoint refers.
    lacks: bool,
}

impl From<String> for NotSent {
    fn from(why: String) -> Self {
        Self { why, unanswered: false, lacks: false }
    }
}

impl From<Status> for NotSent {
    fn from(status: Status) -> Self {
        let why = format!("{}: {}", status.code(), status.message());
        let lacks = status.code() == Code::NotFound;
        Self { why, unanswered: is_unanswered(&status), lacks }
    }
}

/// Stream of chunks to be sent; it publishes the number of bytes moved.
#[derive(Debug)]
struct OutgoingChunks<M> {
    chunks: mpsc::Receiver<M>,
    moved: watch::Sender<u64>,
}

impl<M: ChunkMessage> Stream for OutgoingChunks<M> {
    type Item = M;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<M>> {
        let next = self.chunks.poll_recv(context);
        if let Poll::Ready(Some(chunk)) = &next {
            self.moved.send_modify(|bytes| *bytes += chunk.data().len() as u64);
        }
        next
    }
}

/// A writer that counts the bytes written.
struct CountedWriter<'a, W>(&'a mut W, &'a AtomicU64);

impl<W: Write> Write for CountedWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Future of an upload: the number of bytes that the coordinator has stored.
type Stored = Pin<Box<dyn Future<Output = Result<u64, Status>> + Send>>;

/// Function that makes the gRPC call by which a stream of chunks is sent.
type Put<M> = Box<dyn FnOnce(OutgoingChunks<M>) -> Stored + Send>;

/// State that all transfers of a worker share.
#[derive(Debug)]
pub(crate) struct WorkerTransfers {
    coordinator: CoordinatorClient<Channel>,
    contents: ContentStoreClient<Channel>,
    uploads: Arc<Semaphore>,
    fetches: Arc<Semaphore>,
    /// Locked while inputs of tasks are fetched, so that an input that several tasks have is fetched once.
    bringing: Mutex<()>,
    still: Duration,
    /// Time limit of a transfer without the time that its bytes take; `None`: only the deadline counts.
    within: Option<Duration>,
    /// True if the coordinator accepts compressed chunks.
    packs: bool,
}

impl WorkerTransfers {
    fn new_deadline(&self) -> Deadline {
        self.within.map_or_else(Deadline::begin, Deadline::within)
    }

    /// Makes the state of transfers over a separate connection; `packs` says whether the coordinator accepts compressed
    /// chunks.
    pub(crate) fn new(coordinator: Channel, packs: bool) -> Self {
        let turns = || Arc::new(Semaphore::new(AT_ONCE));
        Self {
            coordinator: CoordinatorClient::new(coordinator.clone()),
            contents: ContentStoreClient::new(coordinator),
            uploads: turns(),
            fetches: turns(),
            bringing: Mutex::new(()),
            still: STILL,
            within: None,
            packs,
        }
    }

    /// Sends a checkpoint, after the contents that the coordinator lacks; tries again while the coordinator can't be
    /// reached and the VM exists. Returns the number of bytes moved once the coordinator has stored the checkpoint.
    /// `sent` counts the bytes read from the disk meanwhile.
    pub(crate) async fn put_checkpoint(
        &self,
        pass: &LaunchPass,
        reference: CheckpointRef,
        checkpoint: StoredCheckpoint,
        sent: Arc<AtomicU64>,
    ) -> Result<u64, String> {
        let CheckpointRef { task, checkpoint: number, .. } = reference;
        send_until_answered(pass, || {
            let span = debug_span!(target: SPANS, "send", task, checkpoint = number);
            sent.store(0, Ordering::Relaxed);
            let sending = self.send(reference.clone(), checkpoint.clone(), Arc::clone(&sent));
            sending.instrument(span)
        })
        .await
    }

    async fn send(
        &self,
        reference: CheckpointRef,
        checkpoint: StoredCheckpoint,
        sent: Arc<AtomicU64>,
    ) -> Result<u64, NotSent> {
        let contents = checkpoint.manifest().large_contents();
        let refers: Vec<_> =
            contents.iter().map(|(digest, _)| contents::digest_bytes(digest)).collect();
        let (kept, open) = (checkpoint.clone(), checkpoint.clone());
        let open: Open =
            Arc::new(move |digest| open.open_content(digest).map_err(|e| explain_error(&e)));
        let of = (&*reference.run, reference.task, reference.attempt);
        let before = self.send_contents(of, contents, open).await?;
        sent.fetch_add(before, Ordering::Relaxed);
        let mut coordinator = self.coordinator.clone();
        let put: Put<CheckpointChunk> = Box::new(move |stream| {
            Box::pin(async move {
                coordinator.put_checkpoint(stream).await.map(|receipt| receipt.into_inner().bytes)
            })
        });
        let export = move |writer: &mut ChunkWriter<CheckpointChunk>| {
            kept.export_checkpoint(&mut CountedWriter(writer, &sent)).map_err(|e| explain_error(&e))
        };
        Ok(before + self.upload_chunks((reference, refers), export, put).await?)
    }

    /// Sends the bytes that `write` writes through the call `put`; returns the number of stored bytes.
    async fn upload_chunks<M: ChunkMessage>(
        &self,
        of: M::Of,
        write: impl FnOnce(&mut ChunkWriter<M>) -> Result<u64, String> + Send + 'static,
        put: Put<M>,
    ) -> Result<u64, NotSent> {
        let turn = take_turn(&self.uploads).await.map_err(|e| explain_error(&e))?;
        let (chunks, stream) = mpsc::channel(IN_FLIGHT);
        let packing = self.packs.then(Packing::begin);
        let reader = spawn_blocking(move || {
            let mut writer = ChunkWriter::new(chunks, of, packing);
            let written = write(&mut writer).map_err(|why| (why, writer.is_cut_off()));
            drop(turn);
            written
        });
        let (tell, moved) = watch::channel(0);
        let stream = OutgoingChunks { chunks: stream, moved: tell };
        let limits = (self.still, self.new_deadline());
        let sent = unless_stuck(limits, moved, put(stream)).await;
        let sent = sent.map_err(|e| explain_error(&e))?;
        // With the stream it ends, unless the disk keeps it.
        let written =
            timeout(self.still, reader).await.map_err(|_| explain_error(&self.stuck_error()))?;
        let written = written.map_err(|e| explain_error(&e))?;
        match (sent, written) {
            // The files couldn't be read to their end: the coordinator knows only that too few bytes came.
            (_, Err((why, false))) => Err(why.into()),
            // Why the stream broke off is in the status, unless it was the store's doing.
            (Err(status), Err((why, true))) if status.code() == Code::Cancelled => Err(why.into()),
            (Err(status), _) => Err(status.into()),
            (Ok(_), Err((why, true))) => Err(why.into()),
            (Ok(stored), Ok(bytes)) => Ok(compare_stored(bytes, stored)?),
        }
    }

    /// Fetches a checkpoint into the local store; tries again while the coordinator can't be reached. If it gives up,
    /// the bytes that arrived are removed.
    pub(crate) async fn fetch_checkpoint(
        &self,
        store: &LocalCheckpoints,
        pass: &LaunchPass,
        reference: CheckpointRef,
        expected: &ExpectedCheckpoint,
    ) -> Result<(), FetchError> {
        let CheckpointRef { task, checkpoint, .. } = reference;
        fetch_until_answered(pass, || {
            let span = debug_span!(target: SPANS, "fetch", task, checkpoint);
            self.get_whole(store, pass, (reference.clone(), expected)).instrument(span)
        })
        .await
    }

    /// Fetches a checkpoint, and then those of its contents that aren't on this host.
    async fn get_whole(
        &self,
        store: &LocalCheckpoints,
        pass: &LaunchPass,
        (reference, expected): (CheckpointRef, &ExpectedCheckpoint),
    ) -> Result<(), FetchError> {
        let of = (reference.run.clone(), reference.task, reference.attempt);
        let arrival = self.get(store, pass, (reference, expected)).await?;
        for &(digest, bytes) in arrival.missing_contents() {
            let incoming = arrival.receive_content(digest, bytes);
            let incoming = incoming.map_err(|e| FetchError::Transport(explain_error(&e)))?;
            let of = (&*of.0, of.1, of.2);
            self.get_content(pass, contents::content_reference(of, &digest, bytes), incoming)
                .await?;
        }
        let completed = spawn_blocking(move || arrival.complete_arrival().map(drop)).await;
        let completed = completed.map_err(|e| FetchError::Transport(explain_error(&e)))?;
        completed.map_err(|e| FetchError::Absent(explain_error(&e)))
    }

    async fn get(
        &self,
        store: &LocalCheckpoints,
        pass: &LaunchPass,
        (reference, expected): (CheckpointRef, &ExpectedCheckpoint),
    ) -> Result<CheckpointArrival, FetchError> {
        let turn = pass.unless_revoked(take_turn(&self.fetches)).await??;
        let mut coordinator = self.coordinator.clone();
        let asked = timeout(self.still, coordinator.get_checkpoint(takes_packed(reference)));
        let response = pass.unless_revoked(asked).await?.map_err(|_| self.stuck_error())?;
        let stream = response?.into_inner();
        let (store, expected) = (store.clone(), expected.clone());
        let import = move |reader: &mut ChunkReader| store.receive_checkpoint(reader, &expected);
        self.take_stream(pass, turn, stream, import).await
    }

    /// Passes a stream of chunks to `read`, which runs in a blocking thread.
    async fn take_stream<
        M: ChunkMessage,
        T: Send + 'static,
        E: std::error::Error + Send + 'static,
    >(
        &self,
        pass: &LaunchPass,
        turn: OwnedSemaphorePermit,
        stream: Streaming<M>,
        read: impl FnOnce(&mut ChunkReader) -> Result<T, E> + Send + 'static,
    ) -> Result<T, FetchError> {
        let (chunks, receiver) = mpsc::channel(IN_FLIGHT);
        let writer = spawn_blocking(move || {
            let taken = read(&mut ChunkReader::new(receiver));
            drop(turn);
            taken
        });
        let received = pass.unless_revoked(self.pass_chunks(stream, chunks)).await;
        let received = received.unwrap_or_else(|revoked| Err(revoked.into()));
        // With the chunks it ends, unless the disk keeps it.
        let taken = timeout(self.still, writer).await.map_err(|_| self.stuck_error())?;
        let taken = taken.map_err(|e| FetchError::Transport(explain_error(&e)))?;
        match (taken, received) {
            (Ok(taken), _) => Ok(taken),
            (Err(_), Err(broken)) => Err(broken),
            (Err(error), Ok(())) => Err(FetchError::Absent(explain_error(&error))),
        }
    }

    /// Passes chunks on until they end or the receiver is dropped.
    async fn pass_chunks<M: ChunkMessage>(
        &self,
        mut stream: Streaming<M>,
        chunks: mpsc::Sender<Bytes>,
    ) -> Result<(), FetchError> {
        let (deadline, mut bytes) = (self.new_deadline(), 0);
        loop {
            let left = deadline.left(bytes);
            let next = timeout(self.still.min(left), stream.message()).await.map_err(|_| {
                if left < self.still {
                    StuckTransfer::Slow(deadline.missed(bytes))
                } else {
                    self.stuck_error()
                }
            })?;
            let Some(mut chunk) = next? else { return Ok(()) };
            bytes += chunk.data().len() as u64;
            let data = unpack(&mut chunk).map_err(|e| FetchError::Absent(explain_error(&e)))?;
            let taken = timeout(self.still, chunks.send(data)).await;
            // The import has failed; it says why.
            if taken.map_err(|_| self.stuck_error())?.is_err() {
                return Ok(());
            }
        }
    }

    fn stuck_error(&self) -> StuckTransfer {
        StuckTransfer::Still { after: self.still }
    }
}

/// Waits for a transfer's turn in one direction. The turn lasts as long as a thread works on the transfer.
async fn take_turn(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, StuckTransfer> {
    match timeout(TURN, Arc::clone(turns).acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        _ => Err(StuckTransfer::NoTurn { after: TURN }),
    }
}

/// Waits for a transfer that publishes its progress; fails if the transfer makes no progress for too long.
async fn unless_stuck<T>(
    (still, deadline): (Duration, Deadline),
    mut moved: watch::Receiver<u64>,
    transfer: impl Future<Output = T>,
) -> Result<T, StuckTransfer> {
    tokio::pin!(transfer);
    let stuck = |_| StuckTransfer::Still { after: still };
    loop {
        let bytes = *moved.borrow_and_update();
        let left = deadline.left(bytes);
        if left.is_zero() {
            return Err(StuckTransfer::Slow(deadline.missed(bytes)));
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

/// Makes the request of a transfer whose answer may have compressed chunks.
fn takes_packed<T>(of: T) -> Request<T> {
    let mut request = Request::new(of);
    let (name, value) = TAKES_PACKED;
    request.metadata_mut().insert(name, MetadataValue::from_static(value));
    request
}

impl From<Status> for FetchError {
    fn from(status: Status) -> Self {
        let text = format!("{}: {}", status.code(), status.message());
        match status.code() {
            Code::NotFound | Code::DataLoss => Self::Absent(text),
            Code::Unimplemented => Self::Unknown,
            _ if is_unanswered(&status) => Self::Unanswered(text),
            _ => Self::Transport(text),
        }
    }
}

/// Calls `send` for a checkpoint until it succeeds: again and again while the coordinator can't be reached and the VM
/// exists, and once more if the coordinator lacked a content. Returns the number of bytes that the coordinator has
/// stored.
///
/// # Errors
///
/// In words, why the coordinator doesn't have the checkpoint.
pub async fn send_until_answered<F: Future<Output = Result<u64, NotSent>>>(
    pass: &LaunchPass,
    mut send: impl FnMut() -> F,
) -> Result<u64, String> {
    let (mut pauses, mut has_lacked) = (RetryPauses::default(), false);
    loop {
        match send().await {
            // What it had may have gone while the checkpoint was on its way.
            Err(NotSent { lacks: true, .. }) if !has_lacked => has_lacked = true,
            Err(NotSent { unanswered: true, why, .. }) => {
                tracing::debug!(why, "a checkpoint is sent again");
                pauses.wait_pause(pass).await.map_err(|_| why)?;
            }
            done => return done.map_err(|NotSent { why, .. }| why),
        }
    }
}

/// Calls `fetch` for a checkpoint again and again while the coordinator can't be reached.
///
/// # Errors
///
/// The checkpoint wasn't fetched.
pub async fn fetch_until_answered<F: Future<Output = Result<(), FetchError>>>(
    pass: &LaunchPass,
    mut fetch: impl FnMut() -> F,
) -> Result<(), FetchError> {
    let mut pauses = RetryPauses::default();
    loop {
        match fetch().await {
            Err(FetchError::Unanswered(_)) => pauses.wait_pause(pass).await?,
            done => return done,
        }
    }
}

/// Compares the number of bytes sent with the number that the coordinator reports as stored.
///
/// # Errors
///
/// In words: the coordinator has stored more or less.
pub fn compare_stored(sent: u64, stored: u64) -> Result<u64, String> {
    match stored == sent {
        true => Ok(sent),
        false => Err(format!("{sent} bytes were sent but {stored} were stored")),
    }
}

#[cfg(test)]
mod tests;
