//! Checkpoints on their way to workers and from them: none waits for a slow peer with anything
//! that others need.
//!
//! A file is read and written on threads that the event log's writer uses, too. So a thread is held
//! for one chunk at a time, never while a peer is waited for; what a host may have under way at
//! once is bounded; and a transfer that stands still is given up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dormouse_proto::v1;
use dormouse_units::HostId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_stream::Stream;
use tonic::Status;

/// Bytes of a checkpoint in one message.
const CHUNK: usize = 256 << 10;
/// Chunks that are read before a worker wants them.
const AHEAD: usize = 2;
/// Threads that work for the store at once.
const THREADS: usize = 16;
/// Checkpoints that a host may have under way at once.
const PER_HOST: usize = 32;
/// How long a host may wait for its turn: what it has under way gets on, or is given up.
const WAIT: Duration = Duration::from_secs(300);
/// How long a peer may keep a transfer waiting.
pub(crate) const STALL: Duration = Duration::from_secs(30);

/// What all transfers share.
#[derive(Debug)]
pub(crate) struct Transfers {
    threads: Arc<Semaphore>,
    hosts: Mutex<BTreeMap<HostId, Arc<Semaphore>>>,
}

impl Default for Transfers {
    fn default() -> Self {
        Self { threads: Arc::new(Semaphore::new(THREADS)), hosts: Mutex::default() }
    }
}

impl Transfers {
    /// A host's turn, until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// What it has under way does not get on.
    pub(crate) async fn turn(&self, host: HostId) -> Result<OwnedSemaphorePermit, Status> {
        let turns = {
            // A map of counters is whole, whoever panicked with it.
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(hosts.entry(host).or_insert_with(|| Arc::new(Semaphore::new(PER_HOST))))
        };
        match timeout(WAIT, turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(Status::resource_exhausted(format!(
                "{host} has {PER_HOST} checkpoints under way that do not get on"
            ))),
        }
    }

    /// Runs work of the store that blocks.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        blocking(&self.threads, work).await
    }

    /// Gives a stored checkpoint to a host whose turn it is.
    pub(crate) fn give(
        &self,
        of: v1::CheckpointRef,
        file: File,
        turn: OwnedSemaphorePermit,
        stall: Duration,
    ) -> Download {
        let (chunks, taken) = mpsc::channel(AHEAD);
        let (say, end) = oneshot::channel();
        let threads = Arc::clone(&self.threads);
        tokio::spawn(async move {
            // Nobody wants to hear it where the reader has left.
            let _ = say.send(give(of, file, &threads, chunks, stall).await);
        });
        Download { chunks: taken, end, over: false, _turn: turn }
    }
}

/// The chunks of a checkpoint. It keeps its host's turn until whoever reads it has let it go.
#[derive(Debug)]
pub(crate) struct Download {
    chunks: mpsc::Receiver<v1::CheckpointChunk>,
    /// Said before the chunks end: whether they are all.
    end: oneshot::Receiver<Result<(), Status>>,
    over: bool,
    _turn: OwnedSemaphorePermit,
}

impl Stream for Download {
    type Item = Result<v1::CheckpointChunk, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(chunk) = ready!(self.chunks.poll_recv(context)) {
            return Poll::Ready(Some(Ok(chunk)));
        }
        let end = ready!(Pin::new(&mut self.end).poll(context));
        self.over = true;
        let end = end.unwrap_or_else(|_| Err(Status::internal("the download broke off")));
        Poll::Ready(end.err().map(Err))
    }
}

async fn give(
    of: v1::CheckpointRef,
    mut file: File,
    threads: &Arc<Semaphore>,
    chunks: mpsc::Sender<v1::CheckpointChunk>,
    stall: Duration,
) -> Result<(), Status> {
    let (task, number) = (of.task, of.checkpoint);
    let mut first = Some(of);
    loop {
        let (data, back) = blocking(threads, move || {
            let mut data = Vec::with_capacity(CHUNK);
            io::Read::read_to_end(&mut io::Read::take(&mut file, CHUNK as u64), &mut data)?;
            Ok((data, file))
        })
        .await?;
        file = back;
        // An empty checkpoint is one empty chunk.
        if data.is_empty() && first.is_none() {
            return Ok(());
        }
        let chunk = v1::CheckpointChunk { checkpoint: first.take(), data: data.into() };
        match timeout(stall, chunks.send(chunk)).await {
            Ok(Ok(())) => {}
            // The reader has left.
            Ok(Err(_)) => return Ok(()),
            Err(_) => {
                let why = format!("nothing of it was read for {} ms", stall.as_millis());
                tracing::warn!(task, checkpoint = number, why, "a download is given up");
                return Err(Status::deadline_exceeded(why));
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Status> {
    let failed = |why: String| Status::internal(format!("the checkpoint store failed: {why}"));
    let thread = Arc::clone(threads).acquire_owned().await.map_err(|e| failed(e.to_string()))?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(thread);
        done
    });
    match done.await {
        Ok(done) => done.map_err(|error| store_status(&error)),
        Err(panic) => Err(failed(panic.to_string())),
    }
}

fn store_status(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::NotFound => Status::not_found("there is no such checkpoint"),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Status::resource_exhausted("the disk of the checkpoint store is full")
        }
        _ => Status::internal(format!("the checkpoint store: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use tokio_stream::StreamExt as _;

    use super::*;

    fn file(bytes: usize) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&vec![7; bytes]).expect("room");
        file.rewind().expect("it is a file");
        file
    }

    fn of() -> v1::CheckpointRef {
        v1::CheckpointRef { run: "r".to_owned(), task: 1, checkpoint: 1, attempt: 1 }
    }

    async fn begun(transfers: &Transfers, bytes: usize, stall: Duration) -> Download {
        let turn = transfers.turn(HostId::new(0)).await.expect("a turn");
        transfers.give(of(), file(bytes), turn, stall)
    }

    #[tokio::test]
    async fn what_is_read_comes_whole_and_an_empty_one_is_one_chunk() {
        let transfers = Transfers::default();
        for (bytes, chunks) in [(0, 1), (CHUNK, 1), (5 * CHUNK + 1, 6)] {
            let all: Vec<_> = begun(&transfers, bytes, STALL).await.collect().await;
            assert_eq!(all.len(), chunks);
            let sizes = all.iter().map(|chunk| chunk.as_ref().expect("a chunk").data.len());
            assert_eq!(sizes.sum::<usize>(), bytes);
        }
    }

    #[tokio::test]
    async fn what_is_not_read_is_given_up_and_says_so_instead_of_seeming_whole() {
        let transfers = Transfers::default();
        let stall = Duration::from_millis(20);
        let unread = begun(&transfers, 9 * CHUNK, stall).await;
        // Its reader looks away until it has been given up, which closes the file.
        let given_up = async {
            while unread.end.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        timeout(STALL, given_up).await.expect("it is given up");
        let turns = transfers.hosts.lock().expect("no panic")[&HostId::new(0)].available_permits();
        assert_eq!(turns, PER_HOST - 1, "it still counts as its host's");
        let all: Vec<_> = unread.collect().await;
        let (chunks, errors): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert_eq!((chunks.len(), errors.len()), (AHEAD, 1));
        let error = errors[0].as_ref().expect_err("it is not whole");
        assert_eq!(error.code(), tonic::Code::DeadlineExceeded, "{error}");
    }
}
