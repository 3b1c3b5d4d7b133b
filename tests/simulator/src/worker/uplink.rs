//! A simulated worker's link to its coordinator.

use std::fmt::Debug;

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

use crate::network::{Inbound, Port};

/// A worker's end of a network: that of a whole simulated run, or that of a test.
pub trait Uplink: Clone + Debug + Send + Sync + 'static {
    /// Messages of the coordinator as they arrive.
    type Inbound: Stream<Item = Result<v1::ToWorker, Status>> + Unpin + Send + 'static;

    /// Checks whether the coordinator can be reached.
    fn dial(&self) -> impl Future<Output = Result<(), Status>> + Send;

    /// Joins the run; shows the certificate of a former session if there was one.
    fn join(
        &self,
        former: Option<&WorkerLife>,
    ) -> impl Future<Output = Result<WorkerLife, Status>> + Send;

    /// Opens a session.
    fn session(
        &self,
        life: &WorkerLife,
        messages: mpsc::Receiver<v1::FromWorker>,
    ) -> impl Future<Output = Result<Self::Inbound, Status>> + Send;

    /// Stores a checkpoint.
    fn put_checkpoint(
        &self,
        life: &WorkerLife,
        chunks: Vec<v1::CheckpointChunk>,
    ) -> impl Future<Output = Result<v1::CheckpointReceipt, Status>> + Send;

    /// Fetches a checkpoint.
    fn get_checkpoint(
        &self,
        life: &WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> impl Future<Output = Result<Vec<v1::CheckpointChunk>, Status>> + Send;
}

impl Uplink for Port {
    type Inbound = Inbound;

    async fn dial(&self) -> Result<(), Status> {
        Self::dial(self).await
    }

    async fn join(&self, former: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        Self::join(self, former).await
    }

    async fn session(
        &self,
        life: &WorkerLife,
        messages: mpsc::Receiver<v1::FromWorker>,
    ) -> Result<Inbound, Status> {
        Self::session(self, life, messages).await
    }

    async fn put_checkpoint(
        &self,
        life: &WorkerLife,
        chunks: Vec<v1::CheckpointChunk>,
    ) -> Result<v1::CheckpointReceipt, Status> {
        Self::put_checkpoint(self, life, chunks).await
    }

    async fn get_checkpoint(
        &self,
        life: &WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Result<Vec<v1::CheckpointChunk>, Status> {
        Self::get_checkpoint(self, life, wanted).await
    }
}
