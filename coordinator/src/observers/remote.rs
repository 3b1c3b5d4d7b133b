//! Client that observes a run from another process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_identity::{IdentityError, TOKEN_KEY, Token, client_config, is_impostor};
use dormouse_proto::v1;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// Name of the file, in a run's folder, that has the coordinator's address while the coordinator listens.
const ADDRESS_FILE: &str = "address";
/// Time limit for connecting to a coordinator.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limit for a coordinator's answers.
const ANSWER: Duration = Duration::from_secs(10);
/// Interval of keep-alive messages on a quiet connection.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Longest accepted line of a log, in bytes.
const LARGEST_LINE: usize = 256 << 20;

/// Reasons why a call of a coordinator fails.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The coordinator can't be reached.
    #[error(
        "no coordinator can be reached at {address}; check the address, and that the run is under way"
    )]
    Unreachable {
        /// The coordinator's expected address.
        address: String,
        /// The connection's error.
        source: tonic::transport::Error,
    },
    /// A different program answers at the coordinator's address.
    #[error(
        "what answers at {address} is not the coordinator of the token's run, and nothing was sent \
         to it; the token may be another run's"
    )]
    Impostor {
        /// Expected address of the coordinator.
        address: String,
    },
    /// TLS can't be set up.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The coordinator was reached but doesn't answer.
    #[error(
        "the coordinator at {address} has not answered for {} s: it may be stopped, or another \
         program listens there",
        within.as_secs_f64()
    )]
    Silent {
        /// The coordinator's address.
        address: String,
        /// The time limit for the answer.
        within: Duration,
    },
    /// The coordinator refused the request, or broke the connection off.
    #[error("the coordinator refused: {0}")]
    Refused(String),
    /// The run's folder can't be read.
    #[error("can't read {}: {source}; read it as its owner, or as root", path.display())]
    Folder {
        /// Path of the unreadable file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<Status> for RemoteError {
    fn from(status: Status) -> Self {
        Self::Refused(status.message().to_owned())
    }
}

/// Returns the address of the coordinator of the run in this folder; `None` if no coordinator is running.
///
/// # Errors
///
/// [`RemoteError::Folder`].
pub fn address_of(dir: &Path) -> Result<Option<String>, RemoteError> {
    let path = dir.join(ADDRESS_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(RemoteError::Folder { path, source }),
    }
}

/// The file with the coordinator's address in a run's folder, removed when this value is dropped. Only the owner of the
/// run's log may create it.
#[derive(Debug)]
pub(crate) struct AddressFile {
    path: PathBuf,
}

impl AddressFile {
    pub(crate) fn write(dir: &Path, address: SocketAddr) -> io::Result<Self> {
        let path = dir.join(ADDRESS_FILE);
        std::fs::write(&path, format!("{address}\n"))?;
        Ok(Self { path })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            let file = self.path.display();
            tracing::warn!(%error, "the address of the coordinator is left in {file}");
        }
    }
}

/// Interceptor that adds the token to every call.
#[derive(Clone, Debug)]
struct TokenInterceptor(Token);

impl Interceptor for TokenInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = self.0.header() {
            request.metadata_mut().insert(TOKEN_KEY, token);
        }
        Ok(request)
    }
}

/// Client of a running coordinator.
///
/// Use: [`RemoteCoordinator::dial_coordinator`], then any of its calls.
#[derive(Debug)]
pub struct RemoteCoordinator {
    client: v1::observe_client::ObserveClient<InterceptedService<Channel, TokenInterceptor>>,
    address: String,
    /// Time limit for the coordinator's answers.
    within: Duration,
}

impl RemoteCoordinator {
    /// Connects to a coordinator, and verifies its identity before sending it the token.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Unreachable`], [`RemoteError::Silent`], [`RemoteError::Impostor`].
    pub async fn dial_coordinator(address: &str, token: Token) -> Result<Self, RemoteError> {
        Self::dial_within(address, token, ANSWER).await
    }

    async fn dial_within(
        address: &str,
        token: Token,
        within: Duration,
    ) -> Result<Self, RemoteError> {
        let unreachable = |source| match is_impostor(&source) {
            true => RemoteError::Impostor { address: address.to_owned() },
            false => RemoteError::Unreachable { address: address.to_owned(), source },
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(unreachable)?;
        let endpoint = endpoint
            // Later than the one below, whose error says that nobody answers and not that nobody is there.
            .connect_timeout(within + CONNECT)
            .http2_keep_alive_interval(ALIVE_EVERY)
            .keep_alive_timeout(within);
        let connecting =
            dormouse_identity::channel(&endpoint, client_config(token.authority, None)?);
        let patience = within.min(CONNECT);
        let channel = tokio::time::timeout(patience, connecting).await;
        let channel = channel.map_err(|_| silent_error(address, patience))?.map_err(unreachable)?;
        let client =
            v1::observe_client::ObserveClient::with_interceptor(channel, TokenInterceptor(token))
                .max_decoding_message_size(LARGEST_LINE);
        Ok(Self { client, address: address.to_owned(), within })
    }

    /// Waits for an answer within the time limit.
    async fn await_answer<T>(
        &self,
        asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, RemoteError> {
        match tokio::time::timeout(self.within, asked).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(silent_error(&self.address, self.within)),
        }
    }

    /// Returns the status of the run.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn get_status(&mut self) -> Result<v1::StatusReply, RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.status(v1::StatusRequest {})).await
    }

    /// Cancels the run, for this reason.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn cancel_run(&mut self, why: String) -> Result<(), RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.cancel(v1::CancelRequest { why })).await.map(drop)
    }

    /// Submits a parallel job, and returns once the submission is in the run's log. Submitting a job again under the
    /// same key has no effect.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn submit_job(
        &mut self,
        request: v1::SubmitRequest,
    ) -> Result<v1::SubmitReply, RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.submit(request)).await
    }

    /// Makes the provider act on spot VMs; returns once that is in the run's log.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn interrupt_vms(
        &mut self,
        request: v1::InterruptRequest,
    ) -> Result<v1::InterruptReply, RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.interrupt(request)).await
    }

    /// Closes the run to further jobs.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn close(&mut self) -> Result<(), RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.close(v1::CloseRequest {})).await.map(drop)
    }

    /// Returns lines of the run's log.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn read_events(
        &mut self,
        wanted: v1::EventsRequest,
    ) -> Result<EventLines, RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.events(wanted)).await.map(EventLines)
    }
}

fn silent_error(address: &str, within: Duration) -> RemoteError {
    RemoteError::Silent { address: address.to_owned(), within }
}

/// Stream of a log's lines.
#[derive(Debug)]
pub struct EventLines(Streaming<v1::EventLine>);

impl EventLines {
    /// Returns the next line; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`]: the stream broke off.
    pub async fn next(&mut self) -> Result<Option<v1::EventLine>, RemoteError> {
        Ok(self.0.message().await?)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_identity::{Authority, Role, server_config};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    #[tokio::test]
    async fn whoever_takes_calls_and_answers_none_is_not_waited_for() {
        let authority = Authority::generate().expect("an authority");
        let day = Duration::from_secs(86_400);
        let token = Token::generate(Role::Operator, authority.fingerprint(), day).expect("a token");
        // What is accepted by nobody stands in the queue of the system, as with a stopped process.
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let within = Duration::from_millis(50);
        let no = RemoteCoordinator::dial_within(&address, token.clone(), within)
            .await
            .expect_err("silence");
        assert!(matches!(&no, RemoteError::Silent { .. }), "{no}");
        // This one shakes hands, and says nothing more.
        let acceptor = TlsAcceptor::from(server_config(&authority).expect("TLS"));
        let silent = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                kept.push(acceptor.accept(stream).await);
            }
        });
        let within = Duration::from_millis(500);
        let mut remote =
            RemoteCoordinator::dial_within(&address, token, within).await.expect("it is reached");
        let wanted = v1::EventsRequest { from_seq: 0, header: true, follow: true };
        for no in [
            remote.get_status().await.map(drop).expect_err("nobody answers"),
            remote.cancel_run(String::new()).await.expect_err("nobody answers"),
            remote.read_events(wanted).await.map(drop).expect_err("nobody answers"),
        ] {
            assert!(matches!(&no, RemoteError::Silent { .. }), "{no}");
            assert!(no.to_string().contains(&address), "{no}");
        }
        silent.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_there_and_does_not_shake_hands_is_silent_and_not_absent() {
        let authority = Authority::generate().expect("an authority");
        let day = Duration::from_secs(86_400);
        let token = Token::generate(Role::Operator, authority.fingerprint(), day).expect("a token");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let no = RemoteCoordinator::dial_coordinator(&address, token.clone())
            .await
            .expect_err("silence");
        assert!(matches!(&no, RemoteError::Silent { within: CONNECT, .. }), "{no}");
        drop(listener);
        let no = RemoteCoordinator::dial_coordinator(&address, token)
            .await
            .expect_err("nobody is there");
        assert!(matches!(&no, RemoteError::Unreachable { .. }), "{no}");
    }

    #[tokio::test]
    async fn an_impostor_is_not_shown_the_token() {
        let (ours, other) =
            (Authority::generate().expect("one"), Authority::generate().expect("another"));
        let day = Duration::from_secs(86_400);
        let token = Token::generate(Role::Operator, ours.fingerprint(), day).expect("a token");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let acceptor = TlsAcceptor::from(server_config(&other).expect("TLS"));
        let impostor = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a call");
            acceptor.accept(stream).await.map(drop)
        });
        let no =
            RemoteCoordinator::dial_coordinator(&address, token).await.expect_err("an impostor");
        assert!(matches!(&no, RemoteError::Impostor { .. }), "{no}");
        assert!(impostor.await.expect("no panic").is_err(), "it never saw a whole handshake");
    }
}
