//! Looking on at a run from another process.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_proto::{SECRET_KEY, Secret, v1};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// The file in a run's folder that says where its coordinator listens, while it does.
const ADDRESS_FILE: &str = "address";
/// How long a coordinator may take to be reached.
const CONNECT: Duration = Duration::from_secs(5);
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
    /// It refuses, or broke off.
    #[error("the coordinator says: {0}")]
    Refused(String),
    /// The run's folder can't be read.
    #[error("{}: {source}", path.display())]
    Folder {
        /// The file.
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

/// Says in a run's folder where its coordinator listens.
pub(crate) fn say_address(dir: &Path, address: SocketAddr) -> io::Result<()> {
    std::fs::write(dir.join(ADDRESS_FILE), format!("{address}\n"))
}

/// It listens no more.
pub(crate) fn forget_address(dir: &Path) -> io::Result<()> {
    std::fs::remove_file(dir.join(ADDRESS_FILE))
}

/// Adds the secret to every call.
#[derive(Clone, Debug)]
struct Carries(Secret);

impl Interceptor for Carries {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(secret) = self.0.header() {
            request.metadata_mut().insert(SECRET_KEY, secret);
        }
        Ok(request)
    }
}

/// The coordinator of a run that goes.
#[derive(Debug)]
pub struct Remote {
    client: v1::observe_client::ObserveClient<InterceptedService<Channel, Carries>>,
}

impl Remote {
    /// Dials it.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Unreachable`].
    pub async fn dial(address: &str, secret: Secret) -> Result<Self, RemoteError> {
        let unreachable = |source| RemoteError::Unreachable { address: address.to_owned(), source };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(unreachable)?;
        let channel = endpoint.connect_timeout(CONNECT).connect().await.map_err(unreachable)?;
        let client = v1::observe_client::ObserveClient::with_interceptor(channel, Carries(secret))
            .max_decoding_message_size(LARGEST_LINE);
        Ok(Self { client })
    }

    /// How the run goes.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`].
    pub async fn status(&mut self) -> Result<v1::StatusReply, RemoteError> {
        Ok(self.client.status(v1::StatusRequest {}).await?.into_inner())
    }

    /// Ends the run before its time, for this reason.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`].
    pub async fn cancel(&mut self, why: String) -> Result<(), RemoteError> {
        self.client.cancel(v1::CancelRequest { why }).await?;
        Ok(())
    }

    /// Lines of its log.
    ///
    /// # Errors
    ///
    /// [`RemoteError::Refused`].
    pub async fn events(&mut self, wanted: v1::EventsRequest) -> Result<EventLines, RemoteError> {
        Ok(EventLines(self.client.events(wanted).await?.into_inner()))
    }
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
