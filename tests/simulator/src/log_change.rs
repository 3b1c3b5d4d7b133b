//! Changes of the log's file: the disk makes them, the stage traces them and the oracle reads them.

use std::fmt;

/// A change of the log's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// Bytes were written to the file.
    Written {
        /// Offset of the first byte in the file.
        at: u64,
        /// The bytes that were written.
        bytes: Vec<u8>,
        /// Generation of the coordinator that wrote the bytes.
        by: u64,
    },
    /// The file was truncated, or extended, to this length in bytes.
    Cut(u64),
}

impl LogChange {
    /// Generation of the coordinator that wrote the bytes; 0 for a change that wrote none.
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
