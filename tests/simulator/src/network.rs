//! The simulated network: what a worker dials, and what becomes of its messages.

use dormouse_identity::WorkerLife;
use dormouse_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// The network between one coordinator and its workers.
#[derive(Clone, Debug, Default)]
pub struct Network {}

impl Network {
    /// The end of the network that a worker has.
    #[must_use]
    pub fn port(&self, worker: &str) -> Port {
        Port { worker: worker.to_owned() }
    }
}

/// The end of the network that one worker has, whatever life it is in.
#[derive(Clone, Debug)]
pub struct Port {
    worker: String,
}

/// Messages of a coordinator as they arrive; an error is a broken connection.
pub type Inbound = ReceiverStream<Result<v1::ToWorker, Status>>;

impl Port {
    fn unreachable(&self) -> Status {
        Status::unavailable(format!("no coordinator can be reached from {}", self.worker))
    }

    /// Joins the run: a life there, with the certificate of a former one if there was any.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses.
    pub async fn join(&self, former: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        let _ = former;
        Err(self.unreachable())
    }

    /// Opens a session. A dropped sender, or a dropped stream, closes the connection.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses.
    pub async fn session(
        &self,
        life: &WorkerLife,
        messages: mpsc::Receiver<v1::FromWorker>,
    ) -> Result<Inbound, Status> {
        let _ = (life, messages);
        Err(self.unreachable())
    }

    /// Stores a checkpoint.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses, or the connection broke.
    pub async fn put_checkpoint(
        &self,
        life: &WorkerLife,
        chunks: Vec<v1::CheckpointChunk>,
    ) -> Result<v1::CheckpointReceipt, Status> {
        let _ = (life, chunks);
        Err(self.unreachable())
    }

    /// Fetches a checkpoint.
    ///
    /// # Errors
    ///
    /// The coordinator can't be reached (`Unavailable`) or refuses, or the connection broke.
    pub async fn get_checkpoint(
        &self,
        life: &WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Result<Vec<v1::CheckpointChunk>, Status> {
        let _ = (life, wanted);
        Err(self.unreachable())
    }
}
