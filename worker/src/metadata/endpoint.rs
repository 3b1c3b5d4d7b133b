//! The metadata endpoint of one VM: where it listens, and how it answers requests.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener as StdListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_metadata::{
    HttpRequest, HttpResponse, MetadataService, ServiceAnswer, TokenSecret, UnixTime,
    VmAnnouncement,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::{AbortHandle, JoinSet},
};

use super::{
    facts::unix_now,
    http,
    listen::{ADDRESS, PORT, listen_in_vm},
};
use crate::jail::JailCell;

/// Connections that are answered at a time; further ones wait in the kernel.
const CONNECTIONS: usize = 64;
/// Name of the variable by which AWS's clients find the metadata at another address than usual.
pub(crate) const METADATA_VARIABLE: &str = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
/// Pause after the kernel had no descriptor for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Metadata endpoint of one VM: its service, and the address that the service listens on. Dropping the value closes the endpoint.
#[derive(Debug)]
pub struct Endpoint {
    state: Arc<State>,
    /// The address at which programs on the VM find the endpoint.
    address: SocketAddr,
    serving: Vec<AbortHandle>,
}

/// State that all connections to a VM's metadata endpoint share.
#[derive(Debug)]
pub(super) struct State {
    service: Mutex<MetadataService>,
    /// Channel that changes whenever an event is announced to the VM.
    changed: watch::Sender<()>,
    /// Channel that changes when all connections must be closed.
    hung_up: watch::Sender<()>,
    hop_limit: Option<u32>,
}

impl Endpoint {
    /// Opens the endpoint in the network of a VM's tasks, or on a port of its own if the tasks share the worker's network. Must be
    /// called within a runtime; blocks for as long as a thread takes to start.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub(crate) fn open(
        cell: Option<&JailCell>,
        service: MetadataService,
        own: Ipv4Addr,
        hop_limit: Option<u32>,
    ) -> io::Result<Self> {
        let inside = cell.filter(|cell| cell.has_network());
        let listeners = match inside {
            Some(cell) => cell.in_network(|| listen_in_vm(own))?,
            None => vec![StdListener::bind((Ipv4Addr::LOCALHOST, 0))?],
        };
        Self::answer_at(listeners, service, hop_limit)
    }

    /// Listens at `address`, and answers there as the endpoint of a VM does. Must be called within a runtime.
    ///
    /// # Errors
    ///
    /// The kernel's error, such as that another program listens there.
    pub fn listen_at(address: SocketAddr, service: MetadataService) -> io::Result<Self> {
        Self::answer_at(vec![StdListener::bind(address)?], service, None)
    }

    fn answer_at(
        listeners: Vec<StdListener>,
        service: MetadataService,
        hop_limit: Option<u32>,
    ) -> io::Result<Self> {
        let first = listeners.first().map(StdListener::local_addr).transpose()?;
        let address = first.unwrap_or(SocketAddr::from((ADDRESS, PORT)));
        let state = Arc::new(State::new(service, hop_limit));
        let turns = Arc::new(Semaphore::new(CONNECTIONS));
        let mut endpoint = Self { state, address, serving: Vec::new() };
        for listener in listeners {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            let serving =
                serve_connections(listener, Arc::clone(&turns), Arc::clone(&endpoint.state));
            endpoint.serving.push(tokio::spawn(serving).abort_handle());
        }
        Ok(endpoint)
    }

    /// Returns the address of the endpoint.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns environment variables by which libraries in programs on the VM find the endpoint: EC2's and Google's.
    pub(crate) fn own_env(&self) -> Vec<(String, String)> {
        let host = match self.address.port() {
            PORT => self.address.ip().to_string(),
            _ => self.address.to_string(),
        };
        let url = format!("http://{host}");
        let names =
            [(METADATA_VARIABLE, &url), ("GCE_METADATA_HOST", &host), ("GCE_METADATA_IP", &host)];
        names.map(|(name, value)| (name.to_owned(), value.clone())).to_vec()
    }

    /// Publishes an announcement of the provider to the VM.
    pub fn announce_event(&self, what: VmAnnouncement) {
        self.state.locked_service().announce_event(what);
        self.state.changed.send_replace(());
    }

    /// Closes all connections: a program that is about to be dumped finds its connection closed wherever it continues,
    /// and doesn't wait for ever for an answer.
    pub(crate) fn hang_up(&self) {
        self.state.hung_up.send_replace(());
    }

    /// Returns the announced notice as programs read it in EC2's dialect, with the time until which they may save their
    /// work, if any; `None`: no notice was announced.
    pub(crate) fn announced_notice(&self, save_by: Option<UnixTime>) -> Option<String> {
        let interruption = self.state.locked_service().announced_interruption()?;
        Some(match save_by {
            Some(save_by) => MetadataService::notice_to_save(interruption, save_by),
            None => MetadataService::interruption_json(interruption),
        })
    }
}

/// Makes a random key for the tokens of one VM.
///
/// # Errors
///
/// The system has no random numbers.
pub fn random_key() -> io::Result<TokenSecret> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(io::Error::from)?;
    Ok(TokenSecret::new(key))
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        for serving in &self.serving {
            serving.abort();
        }
    }
}

async fn serve_connections(listener: TcpListener, turns: Arc<Semaphore>, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let state = Arc::clone(&state);
        let mut hung_up = state.hung_up.subscribe();
        connections.spawn(async move {
            state.prepare_stream(&stream);
            tokio::select! {
                () = http::answer_one(stream, &state) => {}
                _ = hung_up.changed() => {}
            }
            drop(turn);
        });
    }
}

impl State {
    /// Makes the state of an endpoint that has no connection yet.
    pub(super) fn new(service: MetadataService, hop_limit: Option<u32>) -> Self {
        let (changed, _) = watch::channel(());
        let (hung_up, _) = watch::channel(());
        Self { service: Mutex::new(service), changed, hung_up, hop_limit }
    }

    fn locked_service(&self) -> MutexGuard<'_, MetadataService> {
        // Nothing is left half done under this lock.
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare_stream(&self, stream: &TcpStream) {
        if let Some(hops) = self.hop_limit
            && let Err(error) = stream.set_ttl(hops)
        {
            tracing::debug!(%error, hops, "the hop limit is as the system has it");
        }
    }

    /// Answers a request to the endpoint.
    pub(super) async fn answer_request(&self, mut request: HttpRequest) -> HttpResponse {
        let mut changes = self.changed.subscribe();
        let mut until = None;
        loop {
            changes.mark_unchanged();
            let now = unix_now();
            let said = self.locked_service().answer_request(&request, now);
            let (etag, within) = match said {
                ServiceAnswer::Now(response) => return response,
                ServiceAnswer::Later { etag, within } => (etag, within),
            };
            let begun = tokio::time::Instant::now();
            let until = *until.get_or_insert_with(|| within.and_then(|it| begun.checked_add(it)));
            request = request.changed_since(etag);
            let is_over = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        request = request.without_waiting();
                    }
                }
                () = is_over => request = request.without_waiting(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
