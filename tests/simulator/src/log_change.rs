//! Changes of the log's file, as the disk makes them, the stage traces them and the oracle reads them.

use std::fmt;

/// A change of the log's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// These bytes were written from this place on.
    Written(u64, Vec<u8>),
    /// The file was cut, or grown, to this length.
    Cut(u64),
}

impl fmt::Display for LogChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written(at, bytes) => {
                write!(f, "{} bytes from {at}: {}", bytes.len(), blake3::hash(bytes).to_hex())
            }
            Self::Cut(length) => write!(f, "cut to {length} bytes"),
        }
    }
}
