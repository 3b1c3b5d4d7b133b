//! The way to a coordinator: connections, a worker's place in the run, and sessions.

use std::{convert::Infallible, fmt::Debug, time::Duration};

use dormouse_identity::is_impostor;
use dormouse_proto::v1::{FromWorker, ToWorker, coordinator_client::CoordinatorClient};
use tokio::{sync::mpsc, time::MissedTickBehavior};
use tokio_stream::{Stream, wrappers::ReceiverStream};
use tonic::{
    Status, Streaming,
    transport::{Channel, Endpoint},
};

use super::credentials::WorkerCredentials;
use crate::agent::{faults::WorkerNetwork, report::explain_error};

/// Largest message, as commands come in large batches when a run begins.
const MESSAGE_LIMIT: usize = 64 << 20;

/// Interval at which the worker looks whether the certificate must be renewed: the clock may be set, and hosts may
/// sleep.
const LOOK: Duration = Duration::from_secs(60);

/// Error: there is no connection to the coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialError {
    /// The server isn't the coordinator of the worker's run.
    Impostor,
    /// No server answered; the reason in words.
    Unreachable(String),
}

/// Transport from a worker to its coordinator: TLS and gRPC in a real run, a simulated network in the simulator.
pub trait SessionTransport: Clone + Debug + Send + Sync + 'static {
    /// A connection to the verified coordinator.
    type Connection: Send + 'static;
    /// Messages of the coordinator in a session.
    type Inbound: Stream<Item = Result<ToWorker, Status>> + Send + Unpin;

    /// Connects to the coordinator.
    fn dial_coordinator(&self) -> impl Future<Output = Result<Self::Connection, DialError>> + Send;

    /// Joins the run over a connection, under the worker's name; returns the number (incarnation) of this session, which all
    /// further connections show.
    fn join_run(
        &self,
        connection: Self::Connection,
        worker: &str,
    ) -> impl Future<Output = Result<u64, Status>> + Send;

    /// Begins a session over a connection; the worker's messages are sent in it, and the coordinator's are returned.
    fn begin_session(
        &self,
        connection: Self::Connection,
        messages: mpsc::Receiver<FromWorker>,
    ) -> impl Future<Output = Result<Self::Inbound, Status>> + Send;
}

/// Transport of a real run, over TLS and gRPC.
#[derive(Clone, Debug)]
pub struct GrpcTransport {
    /// Address of the coordinator, and settings of connections to it.
    pub endpoint: Endpoint,
    /// Network between the worker and the coordinator, which injected faults may disturb.
    pub network: WorkerNetwork,
    /// Credentials of the worker.
    pub credentials: WorkerCredentials,
}

impl GrpcTransport {
    async fn connect_channel(&self) -> Result<Channel, DialError> {
        let tls =
            self.credentials.tls_config().map_err(|e| DialError::Unreachable(explain_error(&e)))?;
        self.network.connect_securely(&self.endpoint, tls).await.map_err(|error| {
            if is_impostor(&error) {
                DialError::Impostor
            } else {
                DialError::Unreachable(explain_error(&error))
            }
        })
    }

    /// Renews the certificate of this session in time, for as long as the future is polled.
    pub(crate) async fn renew_in_time(self) -> Infallible {
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            if self.credentials.is_due()
                && let Err(error) = self.dial_coordinator().await
            {
                tracing::debug!(?error, "the certificate is not renewed yet");
            }
        }
    }
}

impl SessionTransport for GrpcTransport {
    type Connection = Channel;
    type Inbound = Streaming<ToWorker>;

    async fn dial_coordinator(&self) -> Result<Channel, DialError> {
        let channel = self.connect_channel().await?;
        if !self.credentials.is_due() {
            return Ok(channel);
        }
        if let Err(status) = self.credentials.renew_certificate(channel).await {
            let why = status.message();
            tracing::warn!(why, "the coordinator does not renew this worker's certificate");
        }
        // Connections show the certificate that there was when they were made.
        self.connect_channel().await
    }

    async fn join_run(&self, channel: Channel, worker: &str) -> Result<u64, Status> {
        self.credentials.join_run(channel, worker).await
    }

    async fn begin_session(
        &self,
        channel: Channel,
        messages: mpsc::Receiver<FromWorker>,
    ) -> Result<Streaming<ToWorker>, Status> {
        let mut client = CoordinatorClient::new(channel)
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        let response = client.session(ReceiverStream::new(messages)).await?;
        Ok(response.into_inner())
    }
}
