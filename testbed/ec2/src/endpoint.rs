//! The port of an endpoint, with limits on the number of connections and on the bytes that each may send.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use dormouse_coordinator::{
    ConnectionBounds, GuardedSocket, UnauthenticatedConnection, UnauthenticatedConnections,
};
use dormouse_ec2_wire::{ApiError, ModelError, ServiceModel};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use crate::clock::ClockedCloud;
use crate::reply::HttpReply;
use crate::site::{CallOrigin, Ec2Site};
use crate::{AccessSecrets, ClockMode, CloudSession};

/// Greatest numbers of connections at once.
const BOUNDS: ConnectionBounds = ConnectionBounds { in_all: 512, of_one_address: 512 };
/// The longest time until the head of a request has arrived, counted from the previous answer on the connection.
const HEAD_PATIENCE: Duration = Duration::from_secs(60);
/// The longest time until the body of a request has arrived.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a request line with its headers.
const HEAD_BYTES: usize = 64 << 10;
/// The most bytes of a body.
const BODY_BYTES: usize = 1 << 20;
/// Time for which no connection is accepted after the system had no room for one.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Settings of an endpoint: its address, its clock and its secrets.
#[derive(Debug)]
pub struct EndpointSetup {
    /// The address on which the endpoint listens.
    pub listen: SocketAddr,
    /// The way in which the run's time passes.
    pub clock: ClockMode,
    /// The secrets with which signatures are checked; `None`: signatures are not checked, which is allowed on loopback
    /// only.
    pub secrets: Option<AccessSecrets>,
}

/// Error: the endpoint can't be served.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The endpoint can't listen on the address.
    #[error("can't listen at {listen}: {source}; give another --listen, such as 127.0.0.1:0")]
    Listen {
        /// The address that is requested.
        listen: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// Signatures are not checked, so that anyone who can reach the host could make calls.
    #[error(
        "{0} can be reached by other hosts, so signatures have to be checked: give --secret-file, \
         or listen at 127.0.0.1"
    )]
    NoSecrets(SocketAddr),
    /// The service model that is built in can't be read.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// A port that answers EC2's calls.
#[derive(Debug)]
pub struct Ec2Endpoint<S> {
    listener: TcpListener,
    address: SocketAddr,
    /// The port for instances; `None`: no instance calls.
    inner: Option<TcpListener>,
    site: Arc<Ec2Site<S>>,
}

impl<S: CloudSession + 'static> Ec2Endpoint<S> {
    /// Opens the endpoint; it answers only once [`serve_until`](Self::serve_until) is called.
    ///
    /// # Errors
    ///
    /// [`EndpointError`].
    pub async fn bind(setup: EndpointSetup, session: S) -> Result<Self, EndpointError> {
        let EndpointSetup { listen, clock, secrets } = setup;
        if secrets.is_none() && !listen.ip().is_loopback() {
            return Err(EndpointError::NoSecrets(listen));
        }
        let model = ServiceModel::ec2()?;
        let refused = |source| EndpointError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let site = Ec2Site::new(ClockedCloud::new(session, clock), model, secrets);
        Ok(Self { listener, address, inner: None, site: Arc::new(site) })
    }

    /// Opens a second port, at this IP address, for the programs of instances: each request has to be signed with the credentials of
    /// an instance's role. Returns its address.
    ///
    /// # Errors
    ///
    /// [`EndpointError`].
    pub async fn open_inner(&mut self, ip: IpAddr) -> Result<SocketAddr, EndpointError> {
        let listen = SocketAddr::from((ip, 0));
        let refused = |source| EndpointError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        self.inner = Some(listener);
        Ok(address)
    }

    /// The URL of the endpoint for clients on this host.
    #[must_use]
    pub fn url(&self) -> String {
        let mut at = self.address;
        if at.ip().is_unspecified() {
            at.set_ip(match at {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            });
        }
        format!("http://{at}")
    }

    /// Serves calls until `end`, then returns the cloud after the last call; `None` only if the cloud was returned
    /// before.
    pub async fn serve_until(self, end: impl Future<Output = ()>) -> Option<S> {
        let Self { listener, inner, site, .. } = self;
        let of_instances = async {
            match inner {
                Some(inner) => answer_all(inner, CallOrigin::Instance, Arc::clone(&site)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = answer_all(listener, CallOrigin::Client, Arc::clone(&site)) => {}
            () = of_instances => {}
            () = end => {}
        }
        // A call that takes long may hold the cloud.
        spawn_blocking(move || site.end()).await.ok().flatten()
    }
}

/// Accepts connections and answers their requests; never returns. If its future is dropped, the connections end.
async fn answer_all<S: CloudSession + 'static>(
    listener: TcpListener,
    origin: CallOrigin,
    site: Arc<Ec2Site<S>>,
) {
    let candidates = UnauthenticatedConnections::new(BOUNDS);
    let mut connections = JoinSet::new();
    loop {
        let came = tokio::select! {
            came = listener.accept() => came,
            Some(_) = connections.join_next() => continue,
        };
        match came {
            Ok((stream, from)) => {
                // It is slower without, and nothing worse.
                let _ = stream.set_nodelay(true);
                let socket = candidates.add_connection(Box::new(stream), from);
                connections.spawn(answer_connection(socket, origin, Arc::clone(&site)));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to the endpoint can't be taken");
                sleep(NO_ROOM).await;
            }
        }
    }
}

async fn answer_connection<S: CloudSession + 'static>(
    socket: GuardedSocket,
    origin: CallOrigin,
    site: Arc<Ec2Site<S>>,
) {
    let candidate = socket.candidate();
    let service = service_fn(move |request| {
        let (site, candidate) = (Arc::clone(&site), candidate.clone());
        async move { Ok::<_, Infallible>(answer_request(request, candidate, origin, site).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(socket), service).await {
        tracing::debug!(%error, "a connection to the endpoint has ended");
    }
}

async fn answer_request<S: CloudSession + 'static>(
    request: Request<Incoming>,
    candidate: UnauthenticatedConnection,
    origin: CallOrigin,
    site: Arc<Ec2Site<S>>,
) -> Response<Full<Bytes>> {
    let request_id = site.next_request_id();
    let refused = |status: u16, code: &str, text: &str| {
        let reply = HttpReply::ec2_error(&ApiError::new(code, text), &request_id);
        reply.with_status(status).into_response(&request_id)
    };
    if !candidate.admit_connection() {
        return refused(503, "RequestLimitExceeded", "There are too many connections: close one.");
    }
    let (parts, body) = request.into_parts();
    let body = match timeout(BODY_PATIENCE, Limited::new(body, BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let text =
                format!("The body of the request is broken, or longer than {BODY_BYTES} bytes.");
            return refused(413, "MalformedQueryString", &text);
        }
        Err(_) => return refused(408, "RequestExpired", "The body of the request took too long."),
    };
    let id = request_id.clone();
    let answering = spawn_blocking(move || site.answer(origin, &parts, &body, &id));
    match answering.await {
        Ok(reply) => reply.into_response(&request_id),
        Err(_) => refused(500, "InternalError", "The call could not be answered."),
    }
}

#[cfg(test)]
mod tests;
