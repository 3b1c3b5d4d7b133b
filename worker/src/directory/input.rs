//! A file that a task's directory holds when it begins.

use blake3::Hash;
use dormouse_proto::v1;

use super::{DirectoryError, Result, node::is_plain};

/// A file that a task's directory holds when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInput {
    /// The path relative to the directory.
    pub path: String,
    /// BLAKE3 of the content.
    pub digest: Hash,
    /// Length of the content, in bytes.
    pub bytes: u64,
    /// Whether the file is executable.
    pub executable: bool,
}

impl TaskInput {
    /// Reads an input from its message.
    ///
    /// # Errors
    ///
    /// The path leads out of the directory, or the digest is invalid.
    pub fn read(file: &v1::File) -> Result<Self> {
        let v1::File { path, digest, bytes, executable } = file;
        if !is_plain(path) {
            return Err(DirectoryError::refused_path(path, "is not a plain path inside it"));
        }
        let Ok(digest) = <[u8; 32]>::try_from(&digest[..]) else {
            return Err(DirectoryError::refused_path(
                path,
                "has a digest that is not one of BLAKE3",
            ));
        };
        let digest = Hash::from_bytes(digest);
        Ok(Self { path: path.clone(), digest, bytes: *bytes, executable: *executable })
    }
}
