//! A coordinator's desk as the network's server.

use std::sync::Arc;

use dormouse_coordinator::WorkerDesk;
use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio_stream::StreamExt as _;
use tonic::Status;

use super::{Messages, Server, Serving};

impl Server for WorkerDesk {
    fn join(&self, worker: &str, former: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        Self::join_worker(self, worker, former)
    }

    fn session(
        self: Arc<Self>,
        life: WorkerLife,
        inbound: Messages<v1::FromWorker>,
    ) -> Serving<Messages<v1::ToWorker>> {
        Box::pin(async move {
            let outbound = Self::open_session(&self, &life, inbound).await?;
            Ok::<Messages<v1::ToWorker>, Status>(Box::pin(outbound))
        })
    }

    fn put_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        chunks: Messages<v1::CheckpointChunk>,
    ) -> Serving<v1::CheckpointReceipt> {
        Box::pin(async move { Self::put_checkpoint(&self, &life, chunks).await })
    }

    fn get_checkpoint(
        self: Arc<Self>,
        life: WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Serving<Vec<v1::CheckpointChunk>> {
        Box::pin(async move {
            let mut download = Self::get_checkpoint(&self, &life, wanted).await?;
            let mut chunks = Vec::new();
            while let Some(chunk) = download.next().await {
                chunks.push(chunk?);
            }
            Ok(chunks)
        })
    }
}
