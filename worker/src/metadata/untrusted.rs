//! A connection to the metadata service of a VM, without the VM.
//!
//! The module exists so that fuzz targets reach all code that reads a request before the service gets it.

use dormouse_metadata::MetadataService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{endpoint::State, http};

/// Answers the one request of a connection, as the endpoint of a VM does.
pub async fn metadata_connection<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    service: MetadataService,
) {
    http::answer_one(stream, &State::new(service, None)).await;
}
