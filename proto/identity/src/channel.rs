//! Channels of gRPC over TLS.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::authority::COORDINATOR;

/// A connection to a coordinator that has proved its identity.
pub type Dialled<S> = tokio_rustls::client::TlsStream<S>;

/// Does the TLS handshake on a stream, in which the other end must prove that it is the coordinator.
///
/// # Errors
///
/// The other end is not the coordinator, or the stream breaks.
pub async fn dial<S: AsyncRead + AsyncWrite + Unpin>(
    config: Arc<ClientConfig>,
    stream: S,
) -> io::Result<Dialled<S>> {
    // The name does not depend on the address: only the authority identifies the server.
    let name = ServerName::try_from(COORDINATOR).map_err(io::Error::other)?;
    TlsConnector::from(config).connect(name, stream).await
}

/// Connects to a coordinator by TCP and verifies its identity.
///
/// # Errors
///
/// The coordinator can't be reached, or its identity is wrong.
pub async fn channel(
    to: &Endpoint,
    config: Arc<ClientConfig>,
) -> Result<Channel, tonic::transport::Error> {
    let connect = move |uri: Uri| {
        let config = Arc::clone(&config);
        async move {
            let host = uri.host().unwrap_or_default();
            let host = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
            let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(80))).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(TokioIo::new(dial(config, stream).await?))
        }
    };
    to.connect_with_connector(tower::service_fn(connect)).await
}
