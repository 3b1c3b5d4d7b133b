//! The network that carries connections to the coordinator: TCP, or a network that a test simulates.

use std::{fmt, io, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// A connection: bytes in both directions, in order.
pub trait DialledLink: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> DialledLink for S {}

/// Future of a connection that is being made.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn DialledLink>>> + Send>>;

/// A way to connect to hosts.
pub trait HostDialler: fmt::Debug + Send + Sync {
    /// Connects to a port of a host, given by name or address.
    fn dial_host(&self, host: &str, port: u16) -> Dialling;
}

/// Connects by the host's own TCP.
#[derive(Debug)]
pub(super) struct TcpDialler;

impl HostDialler for TcpDialler {
    fn dial_host(&self, host: &str, port: u16) -> Dialling {
        let host = host.to_owned();
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn DialledLink>)
        })
    }
}
