//! Changes of the log's file, as the disk makes them, the stage traces them and the oracle reads them.

use std::fmt;

/// A change of the log's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// Bytes were written.
    Written {
        /// The place of the first of them.
        at: u64,
        /// The bytes that the log got.
        bytes: Vec<u8>,
        /// The generation of the coordinator that wrote them.
        by: u64,
    },
    /// The file was cut, or grown, to this length.
    Cut(u64),
}

impl LogChange {
    /// The generation of the coordinator that wrote what is new; zero where nothing is.
    #[must_use]
    pub const fn by(&self) -> u64 {
        match self {
            Self::Written { by, .. } => *by,
            Self::Cut(_) => 0,
        }
    }
}

impl fmt::Display for LogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written { at, bytes, .. } => {
                write!(f, "{} bytes from {at}: {}", bytes.len(), blake3::hash(bytes).to_hex())
            }
            Self::Cut(length) => write!(f, "cut to {length} bytes"),
        }
    }
}
