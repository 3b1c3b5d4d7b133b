//! The simulated network: the coordinator's listener, and the connections that workers dial.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use dormouse_coordinator::{Accepting, ConnectionListener};
use dormouse_worker::agent::in_process::{Dialling, HostDialler};
use turmoil::net::{TcpListener, TcpStream};

/// The port that the coordinator listens on.
pub(crate) const PORT: u16 = 7380;

pub(crate) struct Listening(TcpListener);

impl Listening {
    pub(crate) async fn begin() -> io::Result<Self> {
        Ok(Self(TcpListener::bind(("0.0.0.0", PORT)).await?))
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listening({PORT})")
    }
}

impl ConnectionListener for Listening {
    fn accept_connection(&mut self) -> Accepting<'_> {
        Box::pin(async {
            let (stream, from) = self.0.accept().await?;
            Ok((Box::new(stream) as _, from))
        })
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[derive(Debug)]
pub(crate) struct Dialled;

impl HostDialler for Dialled {
    fn dial_host(&self, host: &str, port: u16) -> Dialling {
        let host = host.to_owned();
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            Ok(Box::new(stream) as _)
        })
    }
}
