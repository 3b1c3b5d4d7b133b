//! A stream to a peer that ends with a success or an error, so that the peer knows whether it was complete.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio_stream::Stream;
use tonic::Status;

/// A stream of items to a peer. If it has a permit for a transfer, the permit is released when the stream is dropped.
#[derive(Debug)]
pub struct OutgoingStream<T> {
    items: mpsc::Receiver<T>,
    /// Receives, before the stream ends, whether all items were sent.
    end: oneshot::Receiver<Result<(), Status>>,
    over: bool,
    _kept: Option<OwnedSemaphorePermit>,
}

impl<T: Send + 'static> OutgoingStream<T> {
    /// Starts a stream of what `giving` sends, at most `ahead` items before they are read. The stream holds the permit `kept` until
    /// it is dropped; `None`: `giving` holds its own.
    pub(crate) fn start_giving<F>(
        ahead: usize,
        kept: Option<OwnedSemaphorePermit>,
        giving: impl FnOnce(mpsc::Sender<T>) -> F,
    ) -> Self
    where
        F: Future<Output = Result<(), Status>> + Send + 'static,
    {
        let (items, taken) = mpsc::channel(ahead);
        let (say, end) = oneshot::channel();
        let giving = giving(items);
        tokio::spawn(async move {
            // Nobody wants to hear it where the reader has left.
            let _ = say.send(giving.await);
        });
        Self { items: taken, end, over: false, _kept: kept }
    }

    /// Returns whether all items were sent or given up.
    #[cfg(test)]
    pub(crate) fn has_ended(&self) -> bool {
        !self.end.is_empty()
    }
}

impl<T> Stream for OutgoingStream<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(item) = ready!(self.items.poll_recv(context)) {
            return Poll::Ready(Some(Ok(item)));
        }
        let end = ready!(Pin::new(&mut self.end).poll(context));
        self.over = true;
        let end = end.unwrap_or_else(|_| {
            Err(Status::internal("the coordinator's side of this call ended early; call again"))
        });
        Poll::Ready(end.err().map(Err))
    }
}
