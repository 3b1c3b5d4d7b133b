//! Errors of identities.

use std::io;
use std::path::PathBuf;

/// Errors of making, reading or checking identities.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The system can't provide random bytes.
    #[error("the system gives no random bytes")]
    Chance {
        /// The error of the system.
        source: io::Error,
    },
    /// A certificate can't be made.
    #[error("a certificate can't be made")]
    Certificate(#[from] rcgen::Error),
    /// A key, or a certificate, does not suit TLS.
    #[error("TLS can't be set up")]
    Tls(#[from] rustls::Error),
    /// The clients' certificates can't be checked.
    #[error("TLS can't be set up")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A public key that a peer sent is invalid.
    #[error("the public key has {bytes} bytes, where one of Ed25519 has 32")]
    Key {
        /// Number of bytes of the invalid key.
        bytes: usize,
    },
    /// A file can't be read or written.
    #[error("can't read or write {}: {source}", path.display())]
    File {
        /// The path that was read or written.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("{}: {why}", path.display())]
    Content {
        /// The file with invalid content, or the folder that such a file is in.
        path: PathBuf,
        /// What is wrong with the content, in words.
        why: String,
    },
}

impl IdentityError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    pub(crate) fn content(path: impl Into<PathBuf>, why: impl ToString) -> Self {
        Self::Content { path: path.into(), why: why.to_string() }
    }
}
