//! A stream to an accepted caller, which ends once the caller would no longer be accepted.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_stream::Stream;
use tonic::Status;

/// Interval at which the coordinator looks whether a token was revoked.
const LOOK: Duration = Duration::from_millis(500);

/// A stream that ends with an error once `check` refuses its peer.
pub(crate) struct CheckedStream<S> {
    stream: S,
    check: Box<dyn Fn() -> Result<(), Status> + Send>,
    look: Interval,
    is_over: bool,
}

impl<S> CheckedStream<S> {
    pub(crate) fn new(stream: S, check: impl Fn() -> Result<(), Status> + Send + 'static) -> Self {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { stream, check: Box::new(check), look, is_over: false }
    }
}

impl<T, S: Stream<Item = Result<T, Status>> + Unpin> Stream for CheckedStream<S> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        while self.look.poll_tick(context).is_ready() {
            if let Err(status) = (self.check)() {
                self.is_over = true;
                return Poll::Ready(Some(Err(status)));
            }
        }
        Pin::new(&mut self.stream).poll_next(context)
    }
}
