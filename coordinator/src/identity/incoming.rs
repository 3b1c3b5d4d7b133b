//! Connections that come in, each once its peer has shaken hands.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dormouse_identity::{TokenId, WorkerLife, certificate_end};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::TokenGuard;
use crate::identity::candidates::{
    ConnectionBounds, ConnectionCaller, GuardedSocket, UnauthenticatedConnections,
};
use crate::system::descriptors::descriptor_limit;
use crate::system::listener::ConnectionListener;

/// Number of connections that may wait to be served after their handshake.
const READY: usize = 16;
/// Time for which no connection is accepted after the system couldn't give one, having no room.
const NO_ROOM: Duration = Duration::from_millis(50);

/// A connection over TLS.
pub(crate) struct TlsConnection {
    stream: TlsStream<GuardedSocket>,
    caller: ConnectionCaller,
}

impl TlsConnection {
    /// Wraps a connection whose handshake ended at this time, in seconds since 1970.
    fn new(stream: TlsStream<GuardedSocket>, now: u64) -> Self {
        let (socket, session) = stream.get_ref();
        let certificates = session.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first);
        let life = certificate.and_then(WorkerLife::of_certificate).map(Arc::new);
        let token = certificate.and_then(TokenId::of_certificate);
        let until = certificate.and_then(certificate_end).unwrap_or(0);
        let caller =
            ConnectionCaller { life, token, until, came_in_time: now < until, ..socket.caller() };
        Self { stream, caller }
    }
}

/// Accepts connections until the receiver is dropped. Handshakes run side by side; a stalled one ends with its
/// unauthenticated connection.
pub(crate) fn accept_connections(
    mut listener: Box<dyn ConnectionListener>,
    guard: &TokenGuard,
    acceptor: TlsAcceptor,
) -> ReceiverStream<io::Result<TlsConnection>> {
    let (ready, stream) = mpsc::channel(READY);
    // The run itself, its log and its checkpoints need descriptors, too.
    let in_all = usize::try_from(descriptor_limit() / 2).unwrap_or(usize::MAX);
    let bounds = ConnectionBounds { in_all, of_one_address: in_all / 2 };
    let (candidates, sources) = (UnauthenticatedConnections::new(bounds), guard.sources.clone());
    let guard = guard.clone();
    tokio::spawn(async move {
        loop {
            let came = tokio::select! {
                () = ready.closed() => return,
                came = listener.accept_connection() => came,
            };
            let socket = match came {
                Ok((stream, from)) => candidates.add_connection(stream, from),
                Err(error) => {
                    tracing::warn!(%error, "a connection can't be accepted");
                    tokio::time::sleep(NO_ROOM).await;
                    continue;
                }
            };
            let (acceptor, ready, sources) = (acceptor.clone(), ready.clone(), sources.clone());
            let guard = guard.clone();
            let from = socket.caller().address.map(|address| address.ip());
            tokio::spawn(async move {
                let wait = from.map(|from| sources.handshake_delay(from, Instant::now()));
                tokio::time::sleep(wait.unwrap_or_default()).await;
                let shaken = tokio::select! {
                    () = ready.closed() => return,
                    shaken = acceptor.accept(socket) => shaken,
                };
                match shaken {
                    Ok(stream) => {
                        let _ = ready.send(Ok(TlsConnection::new(stream, guard.now_s()))).await;
                    }
                    // Whoever only looks whether somebody listens ends it without a word.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection does not use this run's TLS");
                        if let Some(from) = from {
                            sources.count_refusal(from, Instant::now());
                        }
                    }
                }
            });
        }
    });
    ReceiverStream::new(stream)
}

impl Connected for TlsConnection {
    type ConnectInfo = ConnectionCaller;

    fn connect_info(&self) -> ConnectionCaller {
        self.caller.clone()
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TlsConnection {
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
