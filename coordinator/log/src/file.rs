//! The file that a log is written to: a file of the system, or a simulated one.

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::seal;

/// The file operations that a log needs.
pub trait LogFile: Write + Seek + fmt::Debug + Send + Sync {
    /// Makes all that was written durable.
    ///
    /// # Errors
    ///
    /// The system refuses: what was written since the last time may be lost.
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

    /// Gives the draft the name of the seal, in place of the former one.
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
