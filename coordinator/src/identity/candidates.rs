//! Connections that haven't shown a token or a worker's certificate yet: their number and their time are bounded. The
//! port for workers and the live page both use these bounds.
//!
//! A connection costs a file descriptor, and anybody who reaches a port can open thousands. So a connection without an
//! accepted call is closed after a while, and so is one whose calls are refused again and again. If there are too many,
//! the oldest connection of the address with the most connections is closed: a correct client authenticates with its
//! first call, at once. Accepted connections are bounded as well, in total and for each address.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dormouse_identity::{TokenId, WorkerLife};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::sources::source_of;
use crate::system::listener::ByteLink;

/// Time that a connection has for its handshake and its first accepted call.
const PATIENCE: Duration = Duration::from_secs(5);
/// Greatest number of connections at once without an accepted call.
const MAX_CANDIDATES: usize = 128;
/// Number of refused calls after which a connection is closed.
const REFUSALS: u64 = 4;

/// Bounds on the accepted connections of a port at a time.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionBounds {
    /// Greatest number of connections of all addresses in total.
    pub in_all: usize,
    /// Greatest number of connections from one address, or from one 64-bit IPv6 network.
    pub of_one_address: usize,
}

/// Connections of one listening port: accepted ones, whose caller was let in, up to the port's bounds; and
/// unauthenticated ones, whose caller hasn't proved who it is, up to [`MAX_CANDIDATES`]. Clones share the same port.
#[derive(Clone, Debug)]
pub struct UnauthenticatedConnections(Arc<PortConnections>);

#[derive(Debug)]
struct PortConnections {
    bounds: ConnectionBounds,
    connections: Mutex<ConnectionTable>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    came: u64,
    /// Unauthenticated connections in order of arrival: number, source, and the token that closes each.
    queue: VecDeque<(u64, IpAddr, CancellationToken)>,
    /// Number of accepted connections of each source.
    admitted: BTreeMap<IpAddr, usize>,
}

/// One connection's entry among the unauthenticated ones, until it is accepted or ends.
#[derive(Clone, Debug)]
pub struct UnauthenticatedConnection(Arc<ConnectionPlace>);

#[derive(Debug)]
struct ConnectionPlace {
    number: u64,
    source: IpAddr,
    candidates: UnauthenticatedConnections,
    admitted: AtomicBool,
    refusals: AtomicU64,
    out: CancellationToken,
}

/// A connection that can no longer be read or written once it was told to close.
pub struct GuardedSocket {
    stream: Box<dyn ByteLink>,
    caller: ConnectionCaller,
    /// Completes when the connection must close.
    leave: Option<Pin<Box<dyn Future<Output = &'static str> + Send>>>,
}

/// What a connection reveals about its caller.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionCaller {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) candidate: UnauthenticatedConnection,
    /// Session of the worker whose certificate the connection has shown; `None`: it has shown none.
    pub(crate) life: Option<Arc<WorkerLife>>,
    /// Token with which the worker of the connection's certificate joined.
    pub(crate) token: Option<TokenId>,
    /// End of the certificate's validity, in seconds since 1970; 0 if it doesn't say, as in older versions.
    pub(crate) until: u64,
    /// True if the certificate was valid when the connection was made; the worker may have renewed it since.
    pub(crate) came_in_time: bool,
}

impl ConnectionCaller {
    /// Accepts the connection, as one of its calls was let in.
    ///
    /// # Errors
    ///
    /// The bounds on connections are reached.
    pub(crate) fn stay_connected(&self) -> Result<(), Status> {
        match self.candidate.admit_connection() {
            true => Ok(()),
            false => {
                Err(Status::resource_exhausted("there are too many open connections: close one"))
            }
        }
    }
}

impl ConnectionTable {
    /// Takes the oldest unauthenticated connection of the source that has the most.
    fn longest_of_most(&mut self) -> Option<CancellationToken> {
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        self.queue.iter().for_each(|(_, source, _)| *counts.entry(*source).or_default() += 1);
        let most = counts.values().max()?;
        let at = self.queue.iter().position(|(_, source, _)| counts.get(source) == Some(most))?;
        self.queue.remove(at).map(|(.., out)| out)
    }

    /// Counts an accepted connection of a source; false if the bounds are reached.
    fn admit_source(&mut self, source: IpAddr, bounds: ConnectionBounds) -> bool {
        let of_one = self.admitted.get(&source).copied().unwrap_or_default();
        if of_one >= bounds.of_one_address || self.admitted.values().sum::<usize>() >= bounds.in_all
        {
            return false;
        }
        self.admitted.insert(source, of_one + 1);
        true
    }

    fn forget_admitted(&mut self, source: IpAddr) {
        if let Some(count) = self.admitted.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.admitted.remove(&source);
            }
        }
    }
}

impl UnauthenticatedConnections {
    /// Makes the connections of a port that has none yet.
    #[must_use]
    pub fn new(bounds: ConnectionBounds) -> Self {
        Self(Arc::new(PortConnections { bounds, connections: Mutex::default() }))
    }

    fn connections(&self) -> MutexGuard<'_, ConnectionTable> {
        // Whoever panicked with it had changed it whole.
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new, unauthenticated connection from this address.
    #[must_use]
    pub fn add_connection(&self, stream: Box<dyn ByteLink>, from: SocketAddr) -> GuardedSocket {
        let out = CancellationToken::new();
        let source = source_of(from.ip());
        let number = {
            let mut connections = self.connections();
            connections.came += 1;
            let number = connections.came;
            connections.queue.push_back((number, source, out.clone()));
            if connections.queue.len() > MAX_CANDIDATES
                && let Some(longest) = connections.longest_of_most()
            {
                longest.cancel();
            }
            number
        };
        let place = ConnectionPlace {
            number,
            source,
            candidates: self.clone(),
            admitted: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
            out: out.clone(),
        };
        let leave = async move {
            tokio::select! {
                () = out.cancelled_owned() => "others want to be heard, too",
                () = tokio::time::sleep(PATIENCE) => "it took too long to show who it is",
            }
        };
        let candidate = UnauthenticatedConnection(Arc::new(place));
        let caller = ConnectionCaller {
            address: Some(from),
            candidate,
            life: None,
            token: None,
            until: 0,
            came_in_time: false,
        };
        GuardedSocket { stream, caller, leave: Some(Box::pin(leave)) }
    }
}

impl UnauthenticatedConnection {
    /// Accepts the connection, as one of its calls was accepted. Returns false if the bounds are reached; the
    /// connection is closed then.
    #[must_use]
    pub fn admit_connection(&self) -> bool {
        let place = &*self.0;
        if place.admitted.load(Ordering::Relaxed) {
            return true;
        }
        let mut connections = place.candidates.connections();
        // Another call of the connection may have been let in meanwhile.
        if place.admitted.load(Ordering::Relaxed) {
            return true;
        }
        if !connections.admit_source(place.source, place.candidates.0.bounds) {
            place.out.cancel();
            return false;
        }
        place.admitted.store(true, Ordering::Relaxed);
        connections.queue.retain(|(number, ..)| *number != place.number);
        true
    }

    /// Counts a refused call of the connection, which closes it after too many.
    pub fn count_refused(&self) {
        if self.0.refusals.fetch_add(1, Ordering::Relaxed) + 1 >= REFUSALS {
            self.0.out.cancel();
        }
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut connections = self.candidates.connections();
        if self.admitted.load(Ordering::Relaxed) {
            connections.forget_admitted(self.source);
        } else {
            connections.queue.retain(|(number, ..)| *number != self.number);
        }
    }
}

impl std::fmt::Debug for GuardedSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Socket").field(&self.caller).finish()
    }
}

impl GuardedSocket {
    /// Returns the connection's entry among the unauthenticated ones.
    #[must_use]
    pub fn candidate(&self) -> UnauthenticatedConnection {
        self.caller.candidate.clone()
    }

    /// Returns what the connection's calls reveal about its caller.
    pub(crate) fn caller(&self) -> ConnectionCaller {
        self.caller.clone()
    }

    /// Polls whether the connection must close; never ready for an accepted one.
    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.caller.candidate.0.admitted.load(Ordering::Relaxed) {
            self.leave = None;
        }
        let Some(leave) = &mut self.leave else { return Poll::Pending };
        let why = ready!(leave.as_mut().poll(context));
        // It has been said: it need not be asked again.
        self.leave = Some(Box::pin(std::future::ready("it was told to go")));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }
}

impl AsyncRead for GuardedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(out) = self.poll_leave(context) {
            return Poll::Ready(Err(out));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for GuardedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::*;

    fn came(port: &UnauthenticatedConnections, from: &str) -> (GuardedSocket, DuplexStream) {
        let (near, far) = duplex(64);
        (port.add_connection(Box::new(near), format!("{from}:1").parse().expect("an address")), far)
    }

    /// Returns whether a connection was told to close.
    async fn is_out(socket: &mut GuardedSocket) -> bool {
        tokio::time::timeout(Duration::from_millis(1), socket.read_u8()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_from_one_address_costs_another_address_nothing() {
        let port =
            UnauthenticatedConnections::new(ConnectionBounds { in_all: 4, of_one_address: 2 });
        let mut right = came(&port, "192.0.2.1");
        let mut flood: Vec<_> = (0..1_100).map(|_| came(&port, "192.0.2.2")).collect();
        assert!(!is_out(&mut right.0).await, "it has waited longest, and is alone of its address");
        assert!(is_out(&mut flood[0].0).await && !is_out(&mut flood[1_099].0).await);
        assert!(right.0.candidate().admit_connection());
        // Whoever says nothing leaves by itself, and who was let in stays.
        tokio::time::sleep(PATIENCE).await;
        assert!(is_out(&mut flood[1_099].0).await && !is_out(&mut right.0).await);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_that_were_let_in_are_bounded_too() {
        let port =
            UnauthenticatedConnections::new(ConnectionBounds { in_all: 3, of_one_address: 2 });
        let mut all: Vec<_> = (0..3).map(|_| came(&port, "192.0.2.1")).collect();
        let admitted = all.iter().map(|(socket, _)| socket.candidate().admit_connection());
        assert_eq!(admitted.collect::<Vec<_>>(), [true, true, false]);
        assert!(is_out(&mut all[2].0).await);
        let (other, too_many) = (came(&port, "192.0.2.2"), came(&port, "192.0.2.3"));
        assert!(
            other.0.candidate().admit_connection() && !too_many.0.candidate().admit_connection()
        );
        // One that ends makes room.
        all.truncate(1);
        assert!(came(&port, "192.0.2.1").0.candidate().admit_connection());
    }
}
