//! The source of connections: TCP, or a network that a test simulates.

use std::{fmt, io, net::SocketAddr, pin::Pin};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Bytes in both directions, in order.
pub trait Link: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Link for S {}

/// A connection that is waited for, and whom it is from.
pub type Accepting<'a> =
    Pin<Box<dyn Future<Output = io::Result<(Box<dyn Link>, SocketAddr)>> + Send + 'a>>;

/// A source of connections.
pub trait Listener: fmt::Debug + Send {
    /// Waits for the next connection. Nothing is lost where nobody waits to the end.
    fn accept(&mut self) -> Accepting<'_>;

    /// The address that is listened on.
    ///
    /// # Errors
    ///
    /// The system does not say.
    fn address(&self) -> io::Result<SocketAddr>;
}

impl Listener for TcpListener {
    fn accept(&mut self) -> Accepting<'_> {
        Box::pin(async {
            let (stream, from) = Self::accept(self).await?;
            // It is slower without, and nothing worse.
            let _ = stream.set_nodelay(true);
            Ok((Box::new(stream) as Box<dyn Link>, from))
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}
