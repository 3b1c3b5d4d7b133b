//! Connections to a page: their number and time limits.
//!
//! A connection is a candidate, as at the workers' port, until one of its requests was accepted. After that the
//! connection is closed if the head of its next request does not arrive in time, or if the client reads nothing of an
//! answer for a while.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use dormouse_coordinator::{ConnectionBounds, GuardedSocket, UnauthenticatedConnections};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower::Service as _;

use super::peer::PagePeer;
use super::routes::{SiteState, router};

/// Greatest numbers of connections at once, in all and from one address: 64 pages that follow the run, with their other
/// requests.
const BOUNDS: ConnectionBounds = ConnectionBounds { in_all: 256, of_one_address: 128 };
/// Longest time for the head of a request, from the previous answer or from the connection's beginning.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// Greatest number of bytes of a request line with its headers.
const HEAD_BYTES: usize = 32 << 10;
/// Longest time for which a client may read nothing of an answer.
const STALL: Duration = Duration::from_secs(30);
/// Pause before the next connection is accepted, after the system had no room for one.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Accepts connections and answers their requests; never ends.
pub(super) async fn answer_all(listener: TcpListener, site: SiteState) {
    let candidates = UnauthenticatedConnections::new(BOUNDS);
    loop {
        let ends = match listener.accept().await {
            Ok((stream, from)) => stream.local_addr().map(|local| (stream, from, local)),
            Err(error) => Err(error),
        };
        let (stream, from, local) = match ends {
            Ok(came) => came,
            Err(error) => {
                tracing::warn!(%error, "a connection to the page can't be taken");
                sleep(NO_ROOM).await;
                continue;
            }
        };
        // Without it answers are slower, nothing worse.
        let _ = stream.set_nodelay(true);
        let socket = candidates.add_connection(Box::new(stream), from);
        let peer = PagePeer::at(from, local).with_candidate(socket.candidate());
        tokio::spawn(answer(PatientStream::new(socket), peer, site.clone()));
    }
}

/// Answers the requests of one connection until it ends.
pub(super) async fn answer<S>(stream: S, peer: PagePeer, site: SiteState)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let router = router(site);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let answering = router.clone().call(request);
        async move { Ok::<_, Infallible>(answering.await.unwrap_or_else(|never| match never {})) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE).max_buf_size(HEAD_BYTES);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection to the page has ended");
    }
}

/// A connection that breaks if its peer reads nothing for [`STALL`].
struct PatientStream {
    socket: GuardedSocket,
    /// Time limit of the present stall; `None` while the peer reads.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl PatientStream {
    const fn new(socket: GuardedSocket) -> Self {
        Self { socket, stalled: None }
    }

    /// Limits the time of a write: returns its result, or an error if the peer has read nothing for too long.
    fn limit_stall<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let until = || Box::pin(sleep_until(Instant::now() + STALL));
        let stalled = self.stalled.get_or_insert_with(until);
        stalled.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for PatientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(context, buffer)
    }
}

impl AsyncWrite for PatientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.limit_stall(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(context);
        self.limit_stall(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.socket).poll_shutdown(context);
        self.limit_stall(context, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.limit_stall(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::process::CommandExt as _;
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    use crate::server::{PageConfig, PageTokens, ServedRun, serve};

    fn page(folder: &Path) -> ServedRun {
        let listen = "127.0.0.1:0".parse().expect("an address");
        let (folder, tokens) = (folder.to_owned(), PageTokens::Given(Vec::new()));
        serve(PageConfig { listen, folder, tokens, vitals: None, playback: None }).expect("a page")
    }

    fn asks(page: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(page).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream
    }

    fn answered(mut stream: TcpStream, page: SocketAddr) -> String {
        let request = format!("GET /api/run HTTP/1.1\r\nHost: {page}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// The number of file descriptors that this process has open.
    fn descriptors() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("proc(5)").count()
    }

    /// An attack with 1,100 half requests, which once used all 1,024 file descriptors of a coordinator: an honest
    /// client is answered meanwhile, and the half requests are soon closed.
    #[test]
    fn half_requests_keep_nobody_out_and_leave() {
        let limit = dormouse_coordinator::raise_descriptor_limit().expect("no right is needed");
        assert!(limit >= 4_096, "the test itself needs 1,100 and more, and may have {limit}");
        let folder = tempfile::tempdir().expect("a folder");
        let (serving, before) = (page(folder.path()), descriptors());
        let at = serving.address();
        let half = |n: usize| {
            let mut stream = asks(at);
            let text = if n.is_multiple_of(2) { "GET / HTTP/1.1\r\nHost: x\r\nX-" } else { "" };
            // One that had to go already is no less of an attack.
            let _ = stream.write_all(text.as_bytes());
            stream
        };
        let attack: Vec<_> = (0..1_100).map(half).collect();
        let answer = answered(asks(at), at);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // Of the page's ends 128 are left at most, and what was just closed may be among them for a moment.
        let until = std::time::Instant::now() + Duration::from_secs(20);
        while descriptors() > before + attack.len() + 140 {
            assert!(std::time::Instant::now() < until, "{} of {before}", descriptors());
            std::thread::sleep(Duration::from_millis(20));
        }
        // After their patience none is.
        while descriptors() > before + attack.len() + 4 {
            assert!(std::time::Instant::now() < until, "{} of {before}", descriptors());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A script for user nobody: it leaves a closed connection (TIME_WAIT), so that the kernel's table has a row of
    /// user 0 for its port, and requests the page from the same port.
    const ATTACK: &str = "
import socket, sys
page = ('127.0.0.1', int(sys.argv[1]))
def bound(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(('127.0.0.1', port))
    return s
for n in range(20):
    other = socket.socket(); other.bind(('127.0.0.1', 0)); other.listen(1)
    first = bound(0); port = first.getsockname()[1]
    first.connect(other.getsockname())
    taken, _ = other.accept()
    first.close(); taken.recv(1); taken.close(); other.close()
    call = bound(port); call.connect(page)
    call.sendall(b'GET /api/run HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
    print(call.recv(64).split(b' ')[1].decode())
    call.close()
";

    /// The test needs root, to become another user.
    #[expect(clippy::disallowed_macros, reason = "a test says that it is skipped")]
    #[test]
    fn nobody_is_no_operator_by_a_connection_that_is_over() {
        if !nix::unistd::geteuid().is_root() {
            assert!(std::env::var("CI").is_err(), "in CI nothing is skipped");
            return println!("skipped: to be another user needs root");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let serving = page(folder.path());
        let mut attack = Command::new("python3");
        let port = serving.address().port().to_string();
        attack.args(["-c", ATTACK, &port]).uid(65_534).gid(65_534);
        let said = attack.output().expect("python3");
        let (said, wrong) = (String::from_utf8_lossy(&said.stdout), said.stderr);
        assert_eq!(said, "401\n".repeat(20), "{}", String::from_utf8_lossy(&wrong));
        // The same from the page's own user.
        let at = serving.address();
        assert!(answered(asks(at), at).starts_with("HTTP/1.1 200"));
    }
}
