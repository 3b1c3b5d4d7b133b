//! The network that carries connections to the coordinator: TCP, or a network that a test simulates.

use std::{fmt, io, pin::Pin};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// Bytes in both directions, in order.
pub trait Link: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Link for S {}

/// A link that is being made.
pub type Dialling = Pin<Box<dyn Future<Output = io::Result<Box<dyn Link>>> + Send>>;

/// A way to reach hosts.
pub trait Dialler: fmt::Debug + Send + Sync {
    /// Makes a link to a port of a host, which is a name or an address.
    fn dial(&self, host: &str, port: u16) -> Dialling;
}

/// The host's own TCP.
#[derive(Debug)]
pub(super) struct Tcp;

impl Dialler for Tcp {
    fn dial(&self, host: &str, port: u16) -> Dialling {
        let host = host.to_owned();
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Link>)
        })
    }
}
