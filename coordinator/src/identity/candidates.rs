//! Connections that have not shown a token or a worker's certificate yet: they are few, and they
//! leave soon.
//!
//! A connection costs a file descriptor, and whoever reaches the port can make thousands. So one
//! that has not shaken hands and made a call that was let in after a while is closed, one whose calls
//! are refused again and again as well, and when there are too many whoever has waited longest makes
//! room: a worker shows what it has with its first call, at once.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use dormouse_identity::WorkerLife;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use tonic::transport::server::Connected;

use crate::system::listener::Link;

/// How long a connection may take until its first call that is let in, its handshake included.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many may be without at once.
const MAX_CANDIDATES: usize = 128;
/// How many calls of one may be refused: then it has to shake hands anew.
const REFUSALS: u64 = 4;

/// All connections that were not let in yet, [`MAX_CANDIDATES`] of them at most.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    came: u64,
    /// Those that wait, in the order in which they came, and what closes each.
    queue: VecDeque<(u64, CancellationToken)>,
}

/// A connection's place among the candidates, until it is admitted or ends.
#[derive(Clone, Debug)]
pub(crate) struct Candidate(Arc<Place>);

#[derive(Debug)]
struct Place {
    number: u64,
    candidates: Candidates,
    admitted: AtomicBool,
    refusals: AtomicU64,
    out: CancellationToken,
}

/// A connection, admitted or not: it can't be read any more once it has had to go.
pub(crate) struct Socket {
    stream: Box<dyn Link>,
    caller: Caller,
    /// Done when it has to go.
    leave: Option<Pin<Box<dyn Future<Output = &'static str> + Send>>>,
}

/// What a call tells of its connection.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) candidate: Candidate,
    /// Life of a worker whose certificate it has shown.
    pub(crate) life: Option<Arc<WorkerLife>>,
}

impl Candidates {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Whoever panicked with it had changed it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection has come: one more candidate.
    pub(crate) fn add(&self, stream: Box<dyn Link>, from: SocketAddr) -> Socket {
        let out = CancellationToken::new();
        let number = {
            let mut waiting = self.waiting();
            waiting.came += 1;
            let number = waiting.came;
            waiting.queue.push_back((number, out.clone()));
            if waiting.queue.len() > MAX_CANDIDATES
                && let Some((_, longest)) = waiting.queue.pop_front()
            {
                longest.cancel();
            }
            number
        };
        let place = Place {
            number,
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
        let candidate = Candidate(Arc::new(place));
        let caller = Caller { address: Some(from), candidate, life: None };
        Socket { stream, caller, leave: Some(Box::pin(leave)) }
    }
}

impl Candidate {
    /// Lets the connection stay, because a call of it was let in.
    pub(crate) fn admit(&self) {
        if !self.0.admitted.swap(true, Ordering::Relaxed) {
            self.0.free();
        }
    }
}

impl Candidate {
    /// A call of the connection was refused.
    pub(crate) fn refuse(&self) {
        if self.0.refusals.fetch_add(1, Ordering::Relaxed) + 1 >= REFUSALS {
            self.0.out.cancel();
        }
    }
}

impl Place {
    fn free(&self) {
        self.candidates.waiting().queue.retain(|(number, _)| *number != self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free();
    }
}

impl Connected for Socket {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl Socket {
    /// Ready once it has to go; never for who was admitted.
    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.caller.candidate.0.admitted.load(Ordering::Relaxed) {
            self.leave = None;
        }
        let Some(leave) = &mut self.leave else { return Poll::Pending };
        let why = ready!(leave.as_mut().poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, why))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(out) = self.poll_leave(context) {
            // It has been said: it need not be asked again.
            self.leave = Some(Box::pin(std::future::ready("it was told to go")));
            return Poll::Ready(Err(out));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
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
