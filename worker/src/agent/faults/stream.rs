//! A connection that can be disturbed in both directions.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{WorkerNetwork, line::DelayLine};

/// Bytes read at once from a disturbed connection.
const READ: usize = 16 * 1024;

/// A connection through a network that may be disturbed. While it isn't, bytes pass unchanged.
#[derive(Debug)]
pub(super) struct DisturbedStream<S> {
    inner: S,
    network: WorkerNetwork,
    /// Bytes in transit from the coordinator to this worker.
    coming: DelayLine,
    /// Bytes in transit from this worker to the coordinator.
    going: DelayLine,
    /// How the coordinator's end was closed, to be reported after all bytes before it.
    ended: Option<io::Result<()>>,
}

impl<S> DisturbedStream<S> {
    pub(super) fn new(inner: S, network: WorkerNetwork) -> Self {
        Self { inner, network, coming: DelayLine::new(), going: DelayLine::new(), ended: None }
    }
}

impl<S: AsyncRead + Unpin> DisturbedStream<S> {
    /// Reads the bytes that have arrived at this end, and puts them in transit.
    fn take_in(&mut self, cx: &mut Context<'_>) {
        let mut space = [0; READ];
        while self.ended.is_none() && self.coming.room_left() > 0 {
            let most = READ.min(self.coming.room_left());
            let mut buffer = ReadBuf::new(&mut space[..most]);
            match Pin::new(&mut self.inner).poll_read(cx, &mut buffer) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => self.ended = Some(Err(error)),
                Poll::Ready(Ok(())) if buffer.filled().is_empty() => self.ended = Some(Ok(())),
                Poll::Ready(Ok(())) => self.coming.send_bytes(buffer.filled(), &self.network),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for DisturbedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let is_plain = this.coming.is_empty() && this.ended.is_none();
        if is_plain && !this.network.is_disturbed() {
            return Pin::new(&mut this.inner).poll_read(cx, to);
        }
        this.take_in(cx);
        if this.coming.is_empty() {
            // Whoever waits is woken by the connection itself.
            return this.ended.take().map_or(Poll::Pending, Poll::Ready);
        }
        let first = ready!(this.coming.poll_first(cx));
        let count = first.len().min(to.remaining());
        to.put_slice(&first[..count]);
        this.coming.bytes_taken(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> DisturbedStream<S> {
    /// Writes the bytes that have arrived at the coordinator's end; ready once nothing is in transit.
    fn poll_arrive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.going.is_empty() {
            let first = ready!(self.going.poll_first(cx));
            let count = ready!(Pin::new(&mut self.inner).poll_write(cx, first))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.going.bytes_taken(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for DisturbedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let arrived = this.poll_arrive(cx)?;
        if arrived.is_ready() && !this.network.is_disturbed() {
            return Pin::new(&mut this.inner).poll_write(cx, from);
        }
        if this.going.room_left() == 0 {
            return Poll::Pending;
        }
        let count = from.len().min(this.going.room_left());
        this.going.send_bytes(&from[..count], &this.network);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_arrive(cx))?;
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_arrive(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::Instant,
    };

    use super::*;
    use crate::agent::faults::network::NetworkDisturbance;

    /// Returns both ends of a connection; the near end can be disturbed.
    fn pair(
        network: &WorkerNetwork,
    ) -> (DisturbedStream<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = duplex(1 << 20);
        (DisturbedStream::new(near, network.clone()), far)
    }

    #[tokio::test]
    async fn bytes_come_late_whole_and_in_order_in_both_directions() {
        let network = WorkerNetwork::default();
        let (mut near, mut far) = pair(&network);
        let began = Instant::now();
        let until = began + Duration::from_secs(60);
        let delay =
            network.disturb_until(1, NetworkDisturbance::Delay(Duration::from_millis(50)), until);
        let text: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let sent = text.clone();
        let there = tokio::spawn(async move {
            let mut got = vec![0; sent.len()];
            far.read_exact(&mut got).await.unwrap();
            assert_eq!(got, sent);
            far.write_all(&got).await.unwrap();
            far
        });
        near.write_all(&text).await.unwrap();
        near.flush().await.unwrap();
        let mut back = vec![0; text.len()];
        near.read_exact(&mut back).await.unwrap();
        assert_eq!(back, text);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(100), "{took:?}");
        drop(delay);
        let far = there.await.unwrap();
        // What is closed is heard of after all else.
        drop(far);
        assert_eq!(near.read(&mut back).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn nothing_passes_a_partition_until_it_is_over() {
        let network = WorkerNetwork::default();
        let (mut near, mut far) = pair(&network);
        let began = Instant::now();
        let lasts = Duration::from_millis(70);
        let _partition = network.disturb_until(1, NetworkDisturbance::Partition, began + lasts);
        far.write_all(b"hello").await.unwrap();
        let mut word = [0; 5];
        near.read_exact(&mut word).await.unwrap();
        assert_eq!((&word, began.elapsed() >= lasts), (b"hello", true));
    }
}
