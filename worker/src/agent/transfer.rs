//! Checkpoints to and from the coordinator's store.
//!
//! The wire is asynchronous and the local store is not: a bounded channel of chunks lies
//! between, so that neither runs ahead of the other.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes, BytesMut};
use dormouse_proto::v1::{CheckpointChunk, CheckpointRef};
use tokio::{sync::mpsc, task::spawn_blocking};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::{
    gate::{Pass, Revoked},
    host::Host,
    report::explain,
};
use crate::store::{Checkpoint, Store};

const CHUNK: usize = 256 * 1024;
/// Chunks on their way between the store and the wire.
const IN_FLIGHT: usize = 8;

/// Why a checkpoint did not come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The coordinator does not have it, or not whole.
    #[error("the coordinator has no sound copy: {0}")]
    Absent(String),
    /// It could not be asked.
    #[error("the coordinator cannot be asked for it: {0}")]
    Transport(String),
    /// Nobody waits for it any more.
    #[error(transparent)]
    Revoked(#[from] Revoked),
}

/// Sends a checkpoint; its size in bytes once the coordinator has it for good.
pub(crate) async fn put(
    host: &Host,
    reference: CheckpointRef,
    checkpoint: Checkpoint,
) -> Result<u64, String> {
    let (chunks, stream) = mpsc::channel(IN_FLIGHT);
    let reader = spawn_blocking(move || {
        let mut writer =
            ChunkWriter { chunks, reference: Some(reference), buffer: BytesMut::new() };
        checkpoint.export(&mut writer)
    });
    let sent = host.coordinator.clone().put_checkpoint(ReceiverStream::new(stream)).await;
    let exported = reader.await.map_err(|e| explain(&e))?;
    match (sent, exported) {
        // Why the stream broke off is in the status, unless it was the store's doing.
        (Err(status), Err(error)) if status.code() == Code::Cancelled => Err(explain(&error)),
        (Err(status), _) => Err(format!("{}: {}", status.code(), status.message())),
        (Ok(_), Err(error)) => Err(explain(&error)),
        (Ok(receipt), Ok(bytes)) => {
            let stored = receipt.into_inner().bytes;
            if stored == bytes {
                Ok(bytes)
            } else {
                Err(format!("{bytes} bytes were sent and {stored} stored"))
            }
        }
    }
}

/// Fetches a checkpoint into the local store. What came of one that is given up is removed.
pub(crate) async fn fetch(
    host: &Host,
    pass: &Pass,
    reference: CheckpointRef,
) -> Result<(), FetchError> {
    let told = |status: tonic::Status| {
        let text = format!("{}: {}", status.code(), status.message());
        match status.code() {
            Code::NotFound | Code::DataLoss => FetchError::Absent(text),
            _ => FetchError::Transport(text),
        }
    };
    let mut coordinator = host.coordinator.clone();
    let response = pass.unless_revoked(coordinator.get_checkpoint(reference)).await?;
    let response = response.map_err(told)?;
    let mut stream = response.into_inner();
    let (chunks, receiver) = mpsc::channel(IN_FLIGHT);
    let store: Store = host.store().clone();
    let writer = spawn_blocking(move || {
        let mut reader = ChunkReader { chunks: receiver, current: Bytes::new() };
        store.import(&mut reader).map(drop)
    });
    let mut broken = None;
    loop {
        match pass.unless_revoked(stream.message()).await {
            Ok(Ok(Some(chunk))) => {
                // The import has failed; it says why.
                if chunks.send(chunk.data).await.is_err() {
                    break;
                }
            }
            Ok(Ok(None)) => break,
            Ok(Err(status)) => {
                broken = Some(told(status));
                break;
            }
            Err(revoked) => {
                broken = Some(revoked.into());
                break;
            }
        }
    }
    drop(chunks);
    let imported = writer.await.map_err(|e| FetchError::Transport(explain(&e)))?;
    match (imported, broken) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(broken)) => Err(broken),
        (Err(error), None) => Err(FetchError::Absent(explain(&error))),
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
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_written_arrives_in_chunks_and_reads_back() {
        let (chunks, mut written) = mpsc::channel(IN_FLIGHT);
        let (forward, chunks_out) = mpsc::channel(IN_FLIGHT);
        let reference = CheckpointRef { run: "r".to_owned(), task: 1, checkpoint: 2, attempt: 1 };
        let mut writer =
            ChunkWriter { chunks, reference: Some(reference.clone()), buffer: BytesMut::new() };
        let sent: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let source = thread::spawn(move || {
            writer.write_all(&sent).unwrap();
            writer.flush().unwrap();
        });
        let relay = thread::spawn(move || {
            let mut references = Vec::new();
            while let Some(chunk) = written.blocking_recv() {
                references.push(chunk.checkpoint);
                forward.blocking_send(chunk.data).unwrap();
            }
            references
        });
        let mut reader = ChunkReader { chunks: chunks_out, current: Bytes::new() };
        let mut arrived = Vec::new();
        reader.read_to_end(&mut arrived).unwrap();
        source.join().unwrap();
        assert_eq!(relay.join().unwrap(), [Some(reference), None, None]);
        assert!(arrived == expected);
    }
}
