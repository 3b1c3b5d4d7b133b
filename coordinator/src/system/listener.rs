//! The source of connections: TCP, or a network that a test simulates.

use std::{fmt, io, net::SocketAddr, pin::Pin};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Bytes in both directions, in order.
pub trait ByteLink: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteLink for S {}

/// A connection that is waited for, and whom it is from.
pub type Accepting<'a> =
    Pin<Box<dyn Future<Output = io::Result<(Box<dyn ByteLink>, SocketAddr)>> + Send + 'a>>;

/// A source of connections.
pub trait ConnectionListener: fmt::Debug + Send {
    /// Waits for the next connection. Nothing is lost where nobody waits to the end.
    fn accept_connection(&mut self) -> Accepting<'_>;

    /// The address that is listened on.
    ///
    /// # Errors
    ///
    /// The system does not say.
    fn local_address(&self) -> io::Result<SocketAddr>;
}

impl ConnectionListener for TcpListener {
    fn accept_connection(&mut self) -> Accepting<'_> {
        Box::pin(async {
            let (stream, from) = Self::accept(self).await?;
            // It is slower without, and nothing worse.
            let _ = stream.set_nodelay(true);
            Ok((Box::new(stream) as Box<dyn ByteLink>, from))
        })
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}
