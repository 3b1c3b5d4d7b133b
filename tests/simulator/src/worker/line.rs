//! A session's connection to the coordinator, over an uplink.

use std::sync::{Arc, Mutex, PoisonError};

use dormouse_identity::WorkerLife;
use dormouse_proto::v1::{CheckpointChunk, CheckpointRef, FromWorker, from_worker};
use dormouse_worker::agent::in_process::{DialError, SessionTransport};
use tokio::sync::mpsc;
use tonic::Status;

use super::{fence::Fence, honesty::Liar, shared::Shared, uplink::Uplink};

/// Bytes in one chunk of a transfer, few enough that an image has several chunks.
const CHUNK: usize = 256;

/// An uplink, with the certificates that were received over it.
#[derive(Clone, Debug)]
pub(super) struct Line<U> {
    pub(super) uplink: U,
    pub(super) shared: Arc<Shared>,
    pub(super) liar: Arc<Mutex<Liar>>,
}

impl<U: Uplink> SessionTransport for Line<U> {
    type Connection = ();
    type Inbound = U::Inbound;

    async fn dial_coordinator(&self) -> Result<(), DialError> {
        let dialled = self.uplink.dial().await;
        dialled.map_err(|status| DialError::Unreachable(status.message().to_owned()))
    }

    async fn join_run(&self, (): (), _: &str) -> Result<u64, Status> {
        let former = self.shared.life();
        let life = self.uplink.join(former.as_ref()).await?;
        let incarnation = life.incarnation;
        self.shared.joined(life);
        Ok(incarnation)
    }

    async fn begin_session(
        &self,
        (): (),
        messages: mpsc::Receiver<FromWorker>,
    ) -> Result<U::Inbound, Status> {
        let life = self.joined_life()?;
        let miscounts = self.liar().miscounts();
        let messages = if miscounts { self.miscounted(messages) } else { messages };
        self.uplink.session(&life, messages).await
    }
}

impl<U: Uplink> Line<U> {
    fn joined_life(&self) -> Result<WorkerLife, Status> {
        self.shared.life().ok_or_else(|| Status::unauthenticated("it has not joined"))
    }

    /// Stores these bytes as a checkpoint, in chunks; returns how many bytes the coordinator has received.
    pub(super) async fn put_checkpoint(
        &self,
        reference: &CheckpointRef,
        bytes: &[u8],
    ) -> Result<u64, Status> {
        let mut first = Some(reference.clone());
        let chunks = bytes.chunks(CHUNK).map(|data| CheckpointChunk {
            checkpoint: first.take(),
            data: data.to_vec().into(),
            ..CheckpointChunk::default()
        });
        let chunks = chunks.collect();
        Ok(self.uplink.put_checkpoint(&self.joined_life()?, chunks).await?.bytes)
    }

    /// Fetches the bytes of a checkpoint.
    pub(super) async fn get_checkpoint(&self, wanted: &CheckpointRef) -> Result<Vec<u8>, Status> {
        let life = self.joined_life()?;
        let chunks = self.uplink.get_checkpoint(&life, wanted.clone()).await?;
        Ok(chunks.into_iter().flat_map(|chunk| chunk.data).collect())
    }

    fn liar(&self) -> std::sync::MutexGuard<'_, Liar> {
        self.liar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fence(&self) -> &Fence {
        self.shared.fence()
    }

    /// These messages, with report numbers that jump or repeat.
    fn miscounted(&self, mut messages: mpsc::Receiver<FromWorker>) -> mpsc::Receiver<FromWorker> {
        let (out, miscounted) = mpsc::channel(messages.max_capacity());
        let liar = Arc::clone(&self.liar);
        tokio::spawn(self.fence().around(async move {
            while let Some(mut message) = messages.recv().await {
                let mut again = None;
                if let Some(from_worker::Body::Reports(reports)) = &mut message.body {
                    let mut liar = liar.lock().unwrap_or_else(PoisonError::into_inner);
                    reports.first = liar.number(reports.first);
                    again = liar.repeats().then(|| message.clone());
                }
                for message in std::iter::once(message).chain(again) {
                    if out.send(message).await.is_err() {
                        return;
                    }
                }
            }
        }));
        miscounted
    }
}
