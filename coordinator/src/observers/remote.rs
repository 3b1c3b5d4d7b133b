//! Looking on at a run from another process.

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

/// The file in a run's folder that says where its coordinator listens, while it does.
const ADDRESS_FILE: &str = "address";
/// How long a coordinator may take to be reached.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How often it is asked for a sign of life while nothing comes.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// The longest line of a log that is taken.
const LARGEST_LINE: usize = 256 << 20;

/// Why a coordinator says nothing.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It can't be reached.
    #[error("there is no coordinator at {address}")]
    Unreachable {
        /// Where it should be.
        address: String,
        /// What the connection failed with.
        source: tonic::transport::Error,
    },
    /// Somebody else answers there.
    #[error(
        "who answers at {address} is not the coordinator of the token's run, and was told nothing; the \
         token may be another run's"
    )]
    Impostor {
        /// Where the coordinator should be.
        address: String,
    },
    /// TLS can't be set up.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// It is reached and says nothing.
    #[error(
        "the coordinator at {address} has not answered for {} s: it may be stopped, or no coordinator",
        within.as_secs_f64()
    )]
    Silent {
        /// Where it is.
        address: String,
        /// For how long.
        within: Duration,
    },
    /// It refuses, or broke off.
    #[error("the coordinator says: {0}")]
    Refused(String),
    /// The run's folder can't be read.
    #[error("{}: {source}", path.display())]
    Folder {
        /// Path of the file in the run's folder that can't be read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl From<Status> for RemoteError {
    fn from(status: Status) -> Self {
        Self::Refused(status.message().to_owned())
    }
}

/// Where the coordinator of the run in this folder listens; `None`: nobody serves it.
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

/// The file in a run's folder that says where its coordinator listens. It goes with this: only who
/// has the run's log may have it.
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

/// Adds the token to every call.
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

/// The coordinator of a run that goes.
#[derive(Debug)]
pub struct RemoteCoordinator {
    client: v1::observe_client::ObserveClient<InterceptedService<Channel, TokenInterceptor>>,
    address: String,
    /// How long it may take to answer.
    within: Duration,
}

impl RemoteCoordinator {
    /// Dials it, and has it prove itself before it is shown the token.
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

    /// What it answers, if it does in time.
    async fn await_answer<T>(
        &self,
        asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, RemoteError> {
        match tokio::time::timeout(self.within, asked).await {
            Ok(answer) => Ok(answer?.into_inner()),
            Err(_) => Err(silent_error(&self.address, self.within)),
        }
    }

    /// How the run goes.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn get_status(&mut self) -> Result<v1::StatusReply, RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.status(v1::StatusRequest {})).await
    }

    /// Ends the run before its time, for this reason.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn cancel_run(&mut self, why: String) -> Result<(), RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.cancel(v1::CancelRequest { why })).await.map(drop)
    }

    /// Gives it a parallel job more, which is in its log then. Sent again under the same key, it is
    /// the same job.
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

    /// Has the provider act on spot VMs; answered once that is in the run's log.
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

    /// Tells it that no more jobs come.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`], [`RemoteError::Silent`].
    pub async fn close(&mut self) -> Result<(), RemoteError> {
        let mut client = self.client.clone();
        self.await_answer(client.close(v1::CloseRequest {})).await.map(drop)
    }

    /// Lines of its log.
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

/// Lines of a log, as they come.
#[derive(Debug)]
pub struct EventLines(Streaming<v1::EventLine>);

impl EventLines {
    /// The next; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`]: they broke off.
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
