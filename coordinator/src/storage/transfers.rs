//! Transfers of checkpoints and contents to and from workers: a slow peer never delays what others need.
//!
//! Files are read and written on threads that the event log's writer uses, too. So a transfer holds a thread for one
//! chunk at a time, never while it waits for a peer; the number of a host's transfers under way is bounded; and a
//! transfer that makes no progress, or too little, is given up.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use dormouse_proto::{Carrier, Deadline, Packing, unpack, v1};
use dormouse_units::HostId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};
use tonic::Status;

use crate::protocol::given::OutgoingStream;
use crate::system::session_limits::SessionLimits;
use crate::system::world::BlockingThreads;

/// Bytes of a checkpoint in one message.
const CHUNK: usize = 256 << 10;
/// Number of chunks that are read ahead of a worker.
const AHEAD: usize = 2;
/// Time for which a host may wait for its turn: its other transfers either make progress or are given up.
const WAIT: Duration = Duration::from_secs(300);
/// Time for which a peer may stall a transfer.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// State that all transfers share.
#[derive(Debug)]
pub(crate) struct StoreTransfers {
    pool: StoreThreads,
    hosts: Mutex<BTreeMap<HostId, Arc<Semaphore>>>,
    /// Number of checkpoints that a host may have under way at once.
    per_host: usize,
}

/// Threads that work for the store.
#[derive(Clone, Debug)]
struct StoreThreads {
    threads: BlockingThreads,
    free: Arc<Semaphore>,
}

impl StoreTransfers {
    /// Makes the state of transfers whose files are read and written on these threads.
    pub(crate) fn new(threads: BlockingThreads, limits: SessionLimits) -> Self {
        let pool = StoreThreads { threads, free: Arc::new(Semaphore::new(limits.store_threads)) };
        Self { pool, hosts: Mutex::default(), per_host: limits.transfers }
    }

    /// Takes a host's turn for a transfer, which ends when the permit is dropped.
    ///
    /// # Errors
    ///
    /// The host's transfers under way make no progress.
    pub(crate) async fn take_turn(&self, host: HostId) -> Result<OwnedSemaphorePermit, Status> {
        let turns = {
            // A map of counters is whole, whoever panicked with it.
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host).or_insert_with(|| Arc::new(Semaphore::new(self.per_host))))
        };
        match timeout(WAIT, turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Status::resource_exhausted(format!(
                "{host} has {} transfers of checkpoints that make no progress",
                self.per_host
            ))),
        }
    }

    /// Runs blocking work of the store.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        self.pool.run(work).await
    }

    /// Returns the bytes of a chunk from a host, decompressed.
    ///
    /// # Errors
    ///
    /// The chunk is damaged or too long.
    pub(crate) async fn unpack_chunk<C: Carrier + Send + 'static>(
        &self,
        mut chunk: C,
    ) -> Result<Bytes, Status> {
        let unpacked = match chunk.carried() {
            (_, 0) => unpack(&mut chunk),
            _ => self.pool.run(move || Ok(unpack(&mut chunk))).await?,
        };
        unpacked.map_err(|bad| Status::invalid_argument(bad.to_string()))
    }

    /// Streams a file of the store to a host whose turn it is; `takes_packed` says whether the host accepts
    /// compressed chunks.
    pub(crate) fn give_parcel<P: ChunkSource>(
        &self,
        parcel: P,
        file: impl Read + Send + 'static,
        (turn, takes_packed): (OwnedSemaphorePermit, bool),
        limits: (Duration, Deadline),
    ) -> OutgoingStream<P::Chunk> {
        let pool = self.pool.clone();
        let packing = takes_packed.then(Packing::begin);
        OutgoingStream::start_giving(AHEAD, Some(turn), move |chunks| async move {
            give_chunks(parcel, (file, packing), &pool, chunks, limits).await
        })
    }
}

/// Something that is sent in chunks: a checkpoint or a content.
pub(crate) trait ChunkSource: Send + 'static {
    /// Type of the message with one chunk of what is sent.
    type Chunk: Carrier + Send + 'static;

    /// Returns the name of what is transferred, for the sender's log.
    fn name(&self) -> String;

    /// Makes the message with the next bytes.
    fn make_chunk(&mut self, data: Vec<u8>) -> Self::Chunk;

    /// Ends the transfer; an error if what was sent was damaged.
    fn check_end(self) -> Result<(), Status>;
}

/// A checkpoint that is being sent; only the first chunk names it.
#[derive(Debug)]
pub(crate) struct GivenCheckpoint {
    task: u32,
    number: u32,
    first: Option<v1::CheckpointRef>,
}

impl GivenCheckpoint {
    pub(crate) fn new(of: v1::CheckpointRef) -> Self {
        Self { task: of.task, number: of.checkpoint, first: Some(of) }
    }
}

impl ChunkSource for GivenCheckpoint {
    type Chunk = v1::CheckpointChunk;

    fn name(&self) -> String {
        format!("checkpoint {} of task {}", self.number, self.task)
    }

    fn make_chunk(&mut self, data: Vec<u8>) -> v1::CheckpointChunk {
        let (checkpoint, contents) = (self.first.take(), Vec::new());
        v1::CheckpointChunk { checkpoint, data: data.into(), contents, unpacked: 0 }
    }

    fn check_end(self) -> Result<(), Status> {
        Ok(())
    }
}

/// Chunks of a checkpoint for a worker.
pub type Download = OutgoingStream<v1::CheckpointChunk>;

async fn give_chunks<P: ChunkSource, R: Read + Send + 'static>(
    mut parcel: P,
    (mut file, mut packing): (R, Option<Packing>),
    pool: &StoreThreads,
    chunks: mpsc::Sender<P::Chunk>,
    (stall, deadline): (Duration, Deadline),
) -> Result<(), Status> {
    let name = parcel.name();
    let given_up = |why: String| {
        tracing::warn!(what = name, why, "a download is cancelled");
        Status::deadline_exceeded(why)
    };
    let (mut bytes, mut is_first) = (0, true);
    loop {
        let read = move || {
            let mut data = Vec::with_capacity(CHUNK);
            (&mut file).take(CHUNK as u64).read_to_end(&mut data)?;
            Ok((data, file))
        };
        let (data, back) = pool.run(read).await?;
        file = back;
        // An empty one is one empty chunk.
        if data.is_empty() && !is_first {
            return parcel.check_end();
        }
        is_first = false;
        bytes += data.len() as u64;
        let left = deadline.left(bytes);
        if left.is_zero() {
            return Err(given_up(deadline.missed(bytes)));
        }
        let mut chunk = parcel.make_chunk(data);
        if let Some(mut packs) = packing.take_if(Packing::is_worth) {
            let pack = move || {
                packs.pack(&mut chunk);
                Ok((chunk, packs))
            };
            let (packed, back) = pool.run(pack).await?;
            (chunk, packing) = (packed, Some(back));
        }
        let (sent, waits) = (chunk.carried().0.len(), Instant::now());
        match timeout(stall.min(left), chunks.send(chunk)).await {
            Ok(Ok(())) => {
                if let Some(packing) = &mut packing {
                    packing.went(sent, waits);
                }
            }
            // The reader has left.
            Ok(Err(_)) => return Ok(()),
            Err(_) if left < stall => return Err(given_up(deadline.missed(bytes))),
            Err(_) => {
                let ms = stall.as_millis();
                return Err(given_up(format!("nothing of it was read for {ms} ms")));
            }
        }
    }
}

impl StoreThreads {
    /// Runs a function on the store once a thread is free.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        let failed = |why: String| Status::internal(format!("the checkpoint store failed: {why}"));
        let free = Arc::clone(&self.free).acquire_owned().await;
        let thread = free.map_err(|error| failed(error.to_string()))?;
        let work = move || {
            let done = work();
            drop(thread);
            done
        };
        match self.threads.run(work).await {
            Ok(done) => done.map_err(|error| store_status(&error)),
            Err(panic) => Err(failed(panic.to_string())),
        }
    }
}

pub(crate) fn store_status(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::NotFound => Status::not_found("there is no such checkpoint or content"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Status::resource_exhausted("the disk of the checkpoint store is full")
        }
        // Whoever asked asks the next coordinator.
        io::ErrorKind::NotConnected => Status::unavailable("the coordinator is shutting down"),
        io::ErrorKind::InvalidData => Status::data_loss(error.to_string()),
        _ => Status::internal(format!("the checkpoint store: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek as _, Write as _};

    use tokio_stream::StreamExt as _;

    use super::*;

    fn file(bytes: usize) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&vec![7; bytes]).expect("room");
        file.rewind().expect("it is a file");
        file
    }

    fn reference() -> v1::CheckpointRef {
        v1::CheckpointRef { run: "r".to_owned(), task: 1, checkpoint: 1, attempt: 1 }
    }

    async fn begun(transfers: &StoreTransfers, bytes: usize, stall: Duration) -> Download {
        let turn = transfers.take_turn(HostId::new(0)).await.expect("a turn");
        transfers.give_parcel(
            GivenCheckpoint::new(reference()),
            file(bytes),
            (turn, false),
            (stall, Deadline::begin()),
        )
    }

    #[tokio::test]
    async fn what_is_read_comes_whole_and_an_empty_one_is_one_chunk() {
        let transfers = StoreTransfers::new(BlockingThreads::System, SessionLimits::default());
        for (bytes, chunks) in [(0, 1), (CHUNK, 1), (5 * CHUNK + 1, 6)] {
            let all: Vec<_> = begun(&transfers, bytes, STALL).await.collect().await;
            assert_eq!(all.len(), chunks);
            let sizes = all.iter().map(|chunk| chunk.as_ref().expect("a chunk").data.len());
            assert_eq!(sizes.sum::<usize>(), bytes);
        }
    }

    #[tokio::test]
    async fn what_waits_for_the_wire_is_packed_for_whoever_takes_it_so() {
        let transfers = StoreTransfers::new(BlockingThreads::System, SessionLimits::default());
        for takes_packed in [true, false] {
            let turn = transfers.take_turn(HostId::new(0)).await.expect("a turn");
            let (of, limits) = (GivenCheckpoint::new(reference()), (STALL, Deadline::begin()));
            let mut given =
                transfers.give_parcel(of, file(48 * CHUNK), (turn, takes_packed), limits);
            let (mut sent, mut unpacked) = (0, 0);
            while let Some(chunk) = given.next().await {
                // This is the wire's slowness: nothing is waited for.
                tokio::time::sleep(Duration::from_millis(10)).await;
                let mut chunk = chunk.expect("a chunk");
                sent += chunk.data.len();
                let data = unpack(&mut chunk).expect("it is whole");
                assert!(data.iter().all(|&byte| byte == 7));
                unpacked += data.len();
            }
            assert_eq!(unpacked, 48 * CHUNK);
            assert_eq!(sent < unpacked / 2, takes_packed, "{sent} of {unpacked}");
        }
    }

    #[tokio::test]
    async fn what_is_read_too_slowly_is_given_up_though_it_never_stands_still() {
        let transfers = StoreTransfers::new(BlockingThreads::System, SessionLimits::default());
        let turn = transfers.take_turn(HostId::new(0)).await.expect("a turn");
        // It may take 50 ms and a quarter of a second for each chunk.
        let limits = (STALL, Deadline::within(Duration::from_millis(50)));
        let mut slow = transfers.give_parcel(
            GivenCheckpoint::new(reference()),
            file(99 * CHUNK),
            (turn, false),
            limits,
        );
        let mut chunks = 0;
        let error = loop {
            // This is its slowness: nothing is waited for.
            tokio::time::sleep(Duration::from_millis(400)).await;
            match slow.next().await.expect("an end with a reason") {
                Ok(_) => chunks += 1,
                Err(error) => break error,
            }
        };
        assert!(chunks < 20, "{chunks}");
        assert_eq!(error.code(), tonic::Code::DeadlineExceeded, "{error}");
        assert!(error.message().contains("more slowly than 1024 KiB"), "{error}");
    }

    #[tokio::test]
    async fn what_is_not_read_is_given_up_and_says_so_instead_of_seeming_whole() {
        let transfers = StoreTransfers::new(BlockingThreads::System, SessionLimits::default());
        let stall = Duration::from_millis(20);
        let unread = begun(&transfers, 9 * CHUNK, stall).await;
        // Its reader looks away until it has been given up, which closes the file.
        let given_up = async {
            while !unread.has_ended() {
                tokio::task::yield_now().await;
            }
        };
        timeout(STALL, given_up).await.expect("it was cancelled");
        let turns = transfers.hosts.lock().expect("no panic")[&HostId::new(0)].available_permits();
        assert_eq!(turns, SessionLimits::default().transfers - 1, "it still counts as its host's");
        let all: Vec<_> = unread.collect().await;
        let (chunks, errors): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert_eq!((chunks.len(), errors.len()), (AHEAD, 1));
        let error = errors[0].as_ref().expect_err("it is not whole");
        assert_eq!(error.code(), tonic::Code::DeadlineExceeded, "{error}");
    }
}
