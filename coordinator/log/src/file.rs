//! The file that a log is written to, of the system or simulated, and a file that computes its hash while it is written.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use crate::seal;

/// The file operations that a log needs.
pub trait LogFile: Write + Seek + fmt::Debug + Send + Sync {
    /// Makes all written bytes durable.
    ///
    /// # Errors
    ///
    /// The system refuses: bytes written since the last call may be lost.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Truncates the file to `length` bytes.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn set_len(&mut self, length: u64) -> io::Result<()>;

    /// Locks the file for this process without waiting.
    ///
    /// # Errors
    ///
    /// Another process holds the lock, or the file system has no locks.
    fn try_lock(&self) -> Result<(), TryLockError>;

    /// Writes the draft of the log's seal, the file at `draft`.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn write_seal_draft(&mut self, draft: &Path, text: &str) -> io::Result<()> {
        seal::write_draft(draft, text)
    }

    /// Makes the draft of the log's seal durable.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn sync_seal_draft(&mut self, draft: &Path) -> io::Result<()> {
        seal::sync_draft(draft)
    }

    /// Renames the draft to the name of the seal, which replaces the previous seal.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn rename_seal_draft(&mut self, draft: &Path, seal: &Path) -> io::Result<()> {
        std::fs::rename(draft, seal)
    }

    /// Makes the name of the seal durable where the file system can.
    ///
    /// # Errors
    ///
    /// The system refuses.
    fn sync_seal_folder(&mut self, seal: &Path) -> io::Result<()> {
        seal::sync_folder_of(seal)
    }
}

impl LogFile for File {
    fn sync_data(&mut self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        Self::try_lock(self)
    }
}

/// Function that opens the file of a log for writing, and creates it if the options say so.
pub type OpenLog<'a> = &'a dyn Fn(&Path, &OpenOptions) -> io::Result<Box<dyn LogFile>>;

/// Opens a file of the system, readable by its owner only.
///
/// # Errors
///
/// The system refuses.
pub fn open_file(path: &Path, options: &OpenOptions) -> io::Result<Box<dyn LogFile>> {
    // Whoever can open the file could hold its lock, so only the owner may, while the run is
    // written.
    Ok(Box::new(options.clone().mode(0o600).open(path)?))
}

/// A file under construction, with the hash of the bytes written so far.
#[derive(Debug)]
pub struct HashedFile {
    file: File,
    hash: FileHash,
}

/// Hash of the bytes written to a [`HashedFile`] so far.
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
