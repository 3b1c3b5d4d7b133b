//! Tables that are written during a run.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dormouse_log::{FileHash, HashedFile};

/// Creates the tables of a run in its folder and keeps their hashes.
#[derive(Debug)]
pub(crate) struct TableFiles {
    folder: PathBuf,
    hashes: BTreeMap<&'static str, FileHash>,
}

impl TableFiles {
    /// Starts with no tables; they will be created in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), hashes: BTreeMap::new() }
    }

    /// Creates a table in place of any former file.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn create(&mut self, name: &'static str) -> io::Result<HashedFile> {
        let (file, hash) = HashedFile::create(&self.folder.join(name))?;
        self.hashes.insert(name, hash);
        Ok(file)
    }

    /// BLAKE3 hash of the content written to each table so far, by file name.
    pub(crate) fn hashes(&self) -> BTreeMap<&'static str, String> {
        self.hashes.iter().map(|(name, hash)| (*name, hash.hex())).collect()
    }
}
