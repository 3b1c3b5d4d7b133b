//! Messages to a worker: those of its session, and a goodbye when the coordinator ends.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use dormouse_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// The end of all sessions, with the goodbye to all workers. It is announced once and reaches them even if actors
/// have died. Without a goodbye workers keep their VMs and redial.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionEnd {
    announced: CancellationToken,
    goodbye: Arc<OnceLock<v1::Goodbye>>,
}

impl SessionEnd {
    pub(crate) fn announce_end(&self, goodbye: Option<v1::Goodbye>) {
        if let Some(goodbye) = goodbye {
            // Only the first goodbye counts.
            let _ = self.goodbye.set(goodbye);
        }
        self.announced.cancel();
    }

    pub(crate) async fn wait_announced(&self) {
        self.announced.cancelled().await;
    }

    pub(crate) fn take_goodbye(&self) -> Option<v1::Goodbye> {
        self.goodbye.get().cloned()
    }
}

/// Stream of messages to one worker.
#[derive(Debug)]
pub struct WorkerOutbound {
    messages: mpsc::Receiver<v1::ToWorker>,
    session_end: SessionEnd,
    announced: Pin<Box<WaitForCancellationFutureOwned>>,
    over: bool,
}

impl WorkerOutbound {
    pub(crate) fn new(messages: mpsc::Receiver<v1::ToWorker>, session_end: SessionEnd) -> Self {
        let announced = Box::pin(session_end.announced.clone().cancelled_owned());
        Self { messages, session_end, announced, over: false }
    }
}

impl Stream for WorkerOutbound {
    type Item = Result<v1::ToWorker, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        let message = self.messages.poll_recv(context);
        if let Poll::Ready(Some(message)) = message {
            return Poll::Ready(Some(Ok(message)));
        }
        if self.announced.as_mut().poll(context).is_ready() {
            self.over = true;
            let goodbye = self.session_end.take_goodbye();
            return Poll::Ready(goodbye.map(|goodbye| Ok(goodbye_message(0, goodbye))));
        }
        message.map(|_| None)
    }
}

pub(crate) const fn goodbye_message(ack: u64, goodbye: v1::Goodbye) -> v1::ToWorker {
    v1::ToWorker { ack, body: Some(v1::to_worker::Body::Goodbye(goodbye)) }
}
