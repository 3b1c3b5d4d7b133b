//! File that computes its hash while it is written, so that sealing need not read it again.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A file under construction, with the hash of what was written.
#[derive(Debug)]
pub struct HashedFile {
    file: File,
    hash: FileHash,
}

/// Hash of what was written to a [`HashedFile`] so far.
#[derive(Clone, Debug, Default)]
pub struct FileHash(Arc<Mutex<blake3::Hasher>>);

impl HashedFile {
    /// Creates a file, replacing an existing one, and its hash. Writing in large pieces makes
    /// hashing fastest.
    ///
    /// # Errors
    ///
    /// The file can't be created.
    pub fn create(path: &Path) -> io::Result<(Self, FileHash)> {
        let (file, hash) = (File::create(path)?, FileHash::default());
        Ok((Self { file, hash: hash.clone() }, hash))
    }
}

impl FileHash {
    fn add(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).update(bytes);
    }

    /// BLAKE3 of the file in the format of a [`Seal`](crate::Seal).
    #[must_use]
    pub fn hex(&self) -> String {
        let hasher = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hasher.finalize().to_hex().to_string()
    }
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.add(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seal;

    #[test]
    fn the_hash_of_what_was_written_is_that_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("jobs.csv");
        std::fs::write(&path, "what was there before, and is longer").expect("room");
        let (mut file, hash) = HashedFile::create(&path).expect("room");
        for piece in ["1,2", "\n", "", "3,4\n"] {
            file.write_all(piece.as_bytes()).expect("room");
        }
        assert_eq!(hash.hex(), Seal::hash_of(b"1,2\n3,4\n"));
        assert_eq!(hash.hex(), Seal::hash(&path).expect("it is there"));
    }
}
