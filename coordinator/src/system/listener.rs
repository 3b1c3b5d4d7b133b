//! The source of connections: TCP, or a network that a test simulates.

use std::{fmt, io, net::SocketAddr, pin::Pin};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// A connection: bytes in both directions, in order.
pub trait ByteLink: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteLink for S {}

/// Future of the next connection, with its address.
pub type Accepting<'a> =
    Pin<Box<dyn Future<Output = io::Result<(Box<dyn ByteLink>, SocketAddr)>> + Send + 'a>>;

/// A source of connections.
pub trait ConnectionListener: fmt::Debug + Send {
    /// Waits for the next connection. Dropping the future loses none.
    fn accept_connection(&mut self) -> Accepting<'_>;

    /// Returns the address that is listened on.
    ///
    /// # Errors
    ///
    /// The system doesn't tell.
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
