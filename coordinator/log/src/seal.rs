//! The seal of a run's folder: the head of its log's chain while the run goes on, and at its end the hashes
//! of its other files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{
    self, BufRead as _, BufReader,
    ErrorKind::{InvalidInput, Unsupported},
};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::LogError;
use crate::chain::{Chain, Head};
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
    /// What else was in the folder at the run's end, such as what its programs said, an entry's name each; `None` before
    /// that, and of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Vec<String>>,
    /// Each time that the run was gone on with and its seal did not reach to the end of its log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resealed: Vec<Resealed>,
}

/// Lines of a log that were sealed only when the run was gone on with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resealed {
    /// The first of these lines, from 1, which is the header.
    pub from: u64,
    /// The last of these lines.
    pub through: u64,
    /// The seal before was another one, or was missing, and somebody wanted the run to go on all the same: the lines
    /// may have been changed. Otherwise a kill had left them behind the last seal.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_forced: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands a reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
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

/// Compares a log with the seal beside it, which covers its beginning; that seal, `None` where the log is of a
/// version that made none.
///
/// # Errors
///
/// [`LogError::NotAsSealed`]: the lines that the seal covers are not those that were sealed, or are not all there, or
/// the seal is missing or can't be read. [`LogError::Read`].
pub fn check_seal(log: &Path) -> Result<Option<Seal>, LogError> {
    let unreadable = |source| LogError::Read { path: log.to_owned(), source };
    let refuse = |why: String| LogError::NotAsSealed { path: log.to_owned(), why };
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let seal = match Seal::read(folder.unwrap_or(Path::new("."))) {
        Ok(Some(seal)) => seal,
        Ok(None) if has_chain(log).map_err(unreadable)? => {
            return Err(refuse(format!("its seal, {SEAL}, is missing")));
        }
        Ok(None) => return Ok(None),
        Err(error) => return Err(refuse(format!("its seal, {SEAL}, can't be read ({error})"))),
    };
    let sealed = &seal.log;
    let now = Chain::of_file(log, sealed.bytes).map_err(unreadable)?.head();
    if now == *sealed {
        return Ok(Some(seal));
    }
    let lines = sealed.lines;
    Err(refuse(match now.bytes < sealed.bytes {
        true => format!("it ends before the {lines} lines that {SEAL} has of it"),
        false => format!("its first {lines} lines are not those that {SEAL} has of it"),
    }))
}

/// Whether the header of a log says that its lines have a chain.
fn has_chain(log: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    BufReader::new(File::open(log)?).read_until(b'\n', &mut header)?;
    let header = serde_json::from_slice::<serde_json::Value>(&header).unwrap_or_default();
    Ok(header.get("chain").is_some_and(serde_json::Value::is_string))
}

/// Seals a log anew whose content differs from what its seal says, and notes in the new seal that it did. `None`: the log
/// is as it was sealed, and nothing is written.
///
/// # Errors
///
/// [`LogError::UnderWay`]: a run writes it. [`LogError::Read`], [`LogError::Write`].
pub fn reseal(log: &Path) -> Result<Option<Resealed>, LogError> {
    if crate::is_under_way(log) {
        return Err(LogError::UnderWay { path: log.to_owned() });
    }
    match check_seal(log) {
        Ok(_) => return Ok(None),
        Err(LogError::NotAsSealed { .. }) => {}
        Err(error) => return Err(error),
    }
    // Up to its last line break: a torn tail is no line.
    let whole = Chain::of_lines(log);
    let head = whole.map_err(|source| LogError::Read { path: log.to_owned(), source })?.head();
    let path = log.with_file_name(SEAL);
    let before = Seal::read(path.parent().unwrap_or(Path::new("."))).ok().flatten();
    let mut resealed = before.map(|seal| seal.resealed).unwrap_or_default();
    let forced = Resealed { from: 1, through: head.lines, is_forced: true };
    resealed.push(forced.clone());
    let text = Seal { log: head, files: BTreeMap::new(), beside: None, resealed }.text();
    let put = put(&path, &text).and_then(|()| sync(&path));
    put.map_err(|source| LogError::Write { path, source })?;
    Ok(Some(forced))
}

/// The seal of a log that grows: written over in place, so that a kill leaves one or the other.
#[derive(Debug)]
pub(crate) struct Sealing {
    path: PathBuf,
    resealed: Vec<Resealed>,
}

impl Sealing {
    pub(crate) fn beside(log: &Path) -> Self {
        Self { path: log.with_file_name(SEAL), resealed: Vec::new() }
    }

    /// Goes on from the seal of a log that is reopened up to here, and notes what that did not cover.
    pub(crate) fn go_on(&mut self, former: Seal, now: &Head) {
        self.resealed = former.resealed;
        if former.log.lines < now.lines {
            let (from, through) = (former.log.lines + 1, now.lines);
            self.resealed.push(Resealed { from, through, is_forced: false });
        }
    }

    /// Notes that the log in this file is whole up to here, and makes that durable where the file system can.
    pub(crate) fn keep(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        self.note(log, head)?;
        log.sync_seal(&self.path)
    }

    /// Notes that the log in this file is whole up to here.
    pub(crate) fn note(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        let (files, beside) = (BTreeMap::new(), None);
        let seal = Seal { log: head, files, beside, resealed: self.resealed.clone() };
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
