//! The seal of a run's folder: the head of its log's chain while the run goes on, and at its end the hashes
//! of its other files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{
    self,
    ErrorKind::{InvalidInput, Unsupported},
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::chain::Head;
use crate::file::LogFile;

/// The seal's name in a run's folder.
pub const SEAL: &str = "seal.json";

/// The content of a run's folder when it was written last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The head of the log's chain. While the run goes on it may be that of some lines before the last.
    pub log: Head,
    /// The BLAKE3 of each other file, in hexadecimal digits, by its name; none before the run's end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Seal {
    /// The seal in a folder; `None`: there is none.
    ///
    /// # Errors
    ///
    /// It can't be read, or is none.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        match fs::read(folder.join(SEAL)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The hash of a file as a seal has it.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn hash(path: &Path) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// The same of what a file is to hold.
    #[must_use]
    pub fn hash_of(content: &[u8]) -> String {
        blake3::hash(content).to_hex().to_string()
    }

    /// The seal as its file has it.
    #[must_use]
    pub fn text(&self) -> String {
        // Numbers and texts: this can't fail.
        format!("{}\n", serde_json::to_string_pretty(self).unwrap_or_default())
    }
}

/// The seal of a log that grows: written over in place, so that a kill leaves one or the other.
#[derive(Debug)]
pub(crate) struct Sealing {
    path: PathBuf,
}

impl Sealing {
    pub(crate) fn beside(log: &Path) -> Self {
        Self { path: log.with_file_name(SEAL) }
    }

    /// Notes that the log in this file is whole up to here, and makes that durable where the file system can.
    pub(crate) fn keep(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        self.note(log, head)?;
        log.sync_seal(&self.path)
    }

    /// Notes that the log in this file is whole up to here.
    pub(crate) fn note(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        let seal = Seal { log: head, files: BTreeMap::new() };
        log.put_seal(&self.path, &seal.text())
    }
}

/// Puts a text in the place of a seal. It is written to another file first: whoever reads the seal, or goes on
/// after a kill, finds a whole one.
pub(crate) fn put(seal: &Path, text: &str) -> io::Result<()> {
    let new = seal.with_extension("new");
    fs::write(&new, text)?;
    fs::rename(&new, seal)
}

/// Makes a seal durable where the file system can.
pub(crate) fn sync(seal: &Path) -> io::Result<()> {
    File::open(seal)?.sync_all()?;
    let folder = seal.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems have no such thing as a durable folder.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}
