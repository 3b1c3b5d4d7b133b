//! The network that carries connections to the coordinator: TCP, or a network that a test simulates.

use std::{fmt, io, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// Bytes in both directions, in order.
pub trait DialledLink: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> DialledLink for S {}

/// A link that is being made.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn DialledLink>>> + Send>>;

/// A way to reach hosts.
pub trait HostDialler: fmt::Debug + Send + Sync {
    /// Makes a link to a port of a host, which is a name or an address.
    fn dial_host(&self, host: &str, port: u16) -> Dialling;
}

/// The host's own TCP.
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
