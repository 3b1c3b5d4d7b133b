//! Bytes in chunks, each a message of the wire.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes, BytesMut};
use dormouse_proto::{
    Carrier, Packing,
    v1::{CheckpointChunk, CheckpointRef, ContentChunk, ContentRef},
};
use tokio::{sync::mpsc, time::Instant};

/// Most bytes of data in one chunk.
pub(super) const CHUNK: usize = 256 * 1024;

/// Message of one chunk of a transfer; the first one says what is transferred.
pub(super) trait ChunkMessage: Carrier + Send + Sized + 'static {
    /// Reference to the checkpoint or content that is transferred.
    type Of: Send + 'static;

    fn new(of: Option<Self::Of>, data: Bytes) -> Self;
    fn data(&self) -> &Bytes;
}

impl ChunkMessage for CheckpointChunk {
    /// A checkpoint, and the digests of the contents that it refers to.
    type Of = (CheckpointRef, Vec<Bytes>);

    fn new(of: Option<Self::Of>, data: Bytes) -> Self {
        let (checkpoint, contents) = of.unzip();
        Self { checkpoint, data, contents: contents.unwrap_or_default(), unpacked: 0 }
    }

    fn data(&self) -> &Bytes {
        &self.data
    }
}

impl ChunkMessage for ContentChunk {
    type Of = ContentRef;

    fn new(content: Option<ContentRef>, data: Bytes) -> Self {
        Self { content, data, unpacked: 0 }
    }

    fn data(&self) -> &Bytes {
        &self.data
    }
}

/// Writer that sends written bytes in chunks. Blocks while the connection is slower.
pub(super) struct ChunkWriter<M: ChunkMessage> {
    chunks: mpsc::Sender<M>,
    /// Reference to the checkpoint or content that is transferred; `None` once the first chunk was sent.
    of: Option<M::Of>,
    buffer: BytesMut,
    /// Compression; `None`: the receiver can't decompress.
    packing: Option<Packing>,
}

impl<M: ChunkMessage> ChunkWriter<M> {
    pub(super) fn new(chunks: mpsc::Sender<M>, of: M::Of, packing: Option<Packing>) -> Self {
        Self { chunks, of: Some(of), buffer: BytesMut::new(), packing }
    }

    /// Whether nobody takes chunks any more: the call that sent them has ended.
    pub(super) fn is_cut_off(&self) -> bool {
        self.chunks.is_closed()
    }

    fn send_chunk(&mut self) -> io::Result<()> {
        let mut chunk = M::new(self.of.take(), self.buffer.split().freeze());
        if let Some(packing) = &mut self.packing
            && packing.is_worth()
        {
            packing.pack(&mut chunk);
        }
        let (bytes, waits) = (chunk.data().len(), Instant::now());
        let sent = self.chunks.blocking_send(chunk);
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        if let Some(packing) = &mut self.packing {
            packing.went(bytes, waits);
        }
        Ok(())
    }

    /// Sends the remaining bytes as a last chunk; sends one empty chunk if nothing was written.
    pub(super) fn finish_chunks(&mut self) -> io::Result<()> {
        if self.of.is_some() { self.send_chunk() } else { self.flush() }
    }
}

impl<M: ChunkMessage> Write for ChunkWriter<M> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(CHUNK - self.buffer.len());
        let (now, _) = bytes.split_at(taken);
        self.buffer.extend_from_slice(now);
        if self.buffer.len() == CHUNK {
            self.send_chunk()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.send_chunk() }
    }
}

/// Reads a sequence of chunks as one stream of bytes.
pub(super) struct ChunkReader {
    chunks: mpsc::Receiver<Bytes>,
    current: Bytes,
}

impl ChunkReader {
    pub(super) fn new(chunks: mpsc::Receiver<Bytes>) -> Self {
        Self { chunks, current: Bytes::new() }
    }

    /// Returns the next chunk; `None` after the last.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        self.chunks.blocking_recv()
    }

    /// Returns the next bytes, at least one and at most `most`; `None` after the last chunk.
    pub(super) fn next_of(&mut self, most: u64) -> Option<Bytes> {
        while self.current.is_empty() {
            self.current = self.chunks.blocking_recv()?;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(self.current.len());
        Some(self.current.split_to(most))
    }
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
