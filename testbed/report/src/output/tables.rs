//! The tables that are written of a run while it goes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use dormouse_log::{FileHash, HashedFile};

/// The tables that are written of a run while it goes, in its folder, with their hashes.
#[derive(Debug)]
pub(crate) struct TableFiles {
    folder: PathBuf,
    hashes: BTreeMap<&'static str, FileHash>,
}

impl TableFiles {
    /// No table yet, in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), hashes: BTreeMap::new() }
    }

    /// Creates one in place of whatever was there.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(crate) fn create(&mut self, name: &'static str) -> io::Result<HashedFile> {
        let (file, hash) = HashedFile::create(&self.folder.join(name))?;
        self.hashes.insert(name, hash);
        Ok(file)
    }

    /// The BLAKE3 of what each has been given, by its name.
    pub(crate) fn hashes(&self) -> BTreeMap<&'static str, String> {
        self.hashes.iter().map(|(name, hash)| (*name, hash.hex())).collect()
    }
}
