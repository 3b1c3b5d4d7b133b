//! Seal of a run's folder: the head of the log's chain during the run, and at its end also the
//! hashes of the other files.

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

/// File name of the seal in a run's folder.
pub const SEAL: &str = "seal.json";

/// Content of the seal of a run's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// The head of the log's hash chain; during the run it may lag some lines behind the log.
    pub log: Head,
    /// BLAKE3 of each other file in hexadecimal digits, by name; empty before the run's end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Names of the other entries in the folder at the run's end, such as output of its programs;
    /// `None` before the end, and in older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Vec<String>>,
    /// One entry for each time that the run was continued while the seal did not reach the end of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resealed: Vec<Resealed>,
}

/// Lines of a log that were sealed only when the run was continued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resealed {
    /// Number of the first line that was sealed late; the log's lines are counted from 1, the header.
    pub from: u64,
    /// Number of the last line that was sealed late; the log's lines are counted from 1, the header.
    pub through: u64,
    /// True if the previous seal did not match or was missing and the user forced the run to
    /// continue: the lines may have been changed. Else a kill had left them behind the last seal.
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
    /// Reads the seal of a folder; `None` if the folder has none.
    ///
    /// # Errors
    ///
    /// The file can't be read or is not a seal.
    pub fn read(folder: &Path) -> io::Result<Option<Self>> {
        match fs::read(folder.join(SEAL)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hash of a file in the format of a seal.
    ///
    /// # Errors
    ///
    /// The file can't be read.
    pub fn hash(path: &Path) -> io::Result<String> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(path)?)?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Hash of a future file's content, in the format of a seal.
    #[must_use]
    pub fn hash_of(content: &[u8]) -> String {
        blake3::hash(content).to_hex().to_string()
    }

    /// Text of the seal's file.
    #[must_use]
    pub fn text(&self) -> String {
        // Numbers and texts: this can't fail.
        format!("{}\n", serde_json::to_string_pretty(self).unwrap_or_default())
    }
}

/// Compares a log with the seal beside it, which covers its beginning, and returns the seal; `None`
/// if the log is of a version without seals.
///
/// # Errors
///
/// [`LogError::NotAsSealed`]: sealed lines were changed or are missing, or the seal is missing or
/// can't be read. [`LogError::Read`].
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
        true => format!("it has fewer than the {lines} lines that {SEAL} counts"),
        false => format!("its first {lines} lines are not those that {SEAL} was made of"),
    }))
}

/// True if the log's header says that its lines have a hash chain, or if the header can't be read.
fn has_chain(log: &Path) -> io::Result<bool> {
    let mut header = Vec::new();
    BufReader::new(File::open(log)?).read_until(b'\n', &mut header)?;
    Ok(match serde_json::from_slice::<serde_json::Value>(&header) {
        Ok(header) => header.get("chain").is_some_and(serde_json::Value::is_string),
        Err(_) => !header.is_empty(),
    })
}

/// A log that was sealed although its content differed from its seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedSeal {
    /// The lines that were sealed late, as the new seal records them.
    pub lines: Resealed,
    /// Number of bytes after the sealed lines that are not lines of a run, such as a hole that a power cut left. A run
    /// that continues cuts them off.
    pub left_out: u64,
}

/// Seals again a log whose content differs from its seal, up to the first line that can't be a line of a run, and
/// records that in the new seal. `None`: the log matches its seal, and nothing is written.
///
/// # Errors
///
/// [`LogError::UnderWay`]: a run is writing the log. [`LogError::Read`], [`LogError::Write`].
pub fn reseal(log: &Path) -> Result<Option<ForcedSeal>, LogError> {
    if crate::is_under_way(log) {
        return Err(LogError::UnderWay { path: log.to_owned() });
    }
    match check_seal(log) {
        Ok(_) => return Ok(None),
        Err(LogError::NotAsSealed { .. }) => {}
        Err(error) => return Err(error),
    }
    let unreadable = |source| LogError::Read { path: log.to_owned(), source };
    let head = Chain::of_readable_lines(log).map_err(unreadable)?.head();
    let length = fs::metadata(log).map_err(unreadable)?.len();
    let left_out = length.saturating_sub(head.bytes);
    let path = log.with_file_name(SEAL);
    let before = Seal::read(path.parent().unwrap_or(Path::new("."))).ok().flatten();
    let mut resealed = before.map(|seal| seal.resealed).unwrap_or_default();
    let lines = Resealed { from: 1, through: head.lines, is_forced: true };
    resealed.push(lines.clone());
    let text = Seal { log: head, files: BTreeMap::new(), beside: None, resealed }.text();
    let draft = draft_of(&path);
    let put = write_draft(&draft, &text)
        .and_then(|()| sync_draft(&draft))
        .and_then(|()| fs::rename(&draft, &path))
        .and_then(|()| sync_folder_of(&path));
    put.map_err(|source| LogError::Write { path, source })?;
    Ok(Some(ForcedSeal { lines, left_out }))
}

/// Seal of a growing log. A rename replaces the seal's file, so that a reader, or a run that continues after a kill,
/// finds the whole old seal or the whole new one.
#[derive(Debug)]
pub(crate) struct GrowingSeal {
    path: PathBuf,
    resealed: Vec<Resealed>,
}

impl GrowingSeal {
    pub(crate) fn beside_log(log: &Path) -> Self {
        Self { path: log.with_file_name(SEAL), resealed: Vec::new() }
    }

    /// Continues from the seal `former` of a reopened log whose hash chain has the head `now`, and records which lines that seal
    /// did not cover.
    pub(crate) fn go_on(&mut self, former: Seal, now: &Head) {
        self.resealed = former.resealed;
        if former.log.lines < now.lines {
            let (from, through) = (former.log.lines + 1, now.lines);
            self.resealed.push(Resealed { from, through, is_forced: false });
        }
    }

    /// Seals the log up to this head durably: the draft is on the disk before it takes the name of the seal, and the
    /// name is on the disk before this function returns. A power cut leaves the previous seal or this one.
    pub(crate) fn keep_durably(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        let draft = draft_of(&self.path);
        log.write_seal_draft(&draft, &self.text(head))?;
        log.sync_seal_draft(&draft)?;
        log.rename_seal_draft(&draft, &self.path)?;
        log.sync_seal_folder(&self.path)
    }

    /// Seals the log up to this head. The seal survives this process, but not necessarily a power cut.
    pub(crate) fn update_head(&self, log: &mut dyn LogFile, head: Head) -> io::Result<()> {
        let draft = draft_of(&self.path);
        log.write_seal_draft(&draft, &self.text(head))?;
        log.rename_seal_draft(&draft, &self.path)
    }

    fn text(&self, head: Head) -> String {
        let (files, beside) = (BTreeMap::new(), None);
        Seal { log: head, files, beside, resealed: self.resealed.clone() }.text()
    }
}

/// The file in which a seal is written before it takes the seal's name.
fn draft_of(seal: &Path) -> PathBuf {
    seal.with_extension("new")
}

/// Writes the draft of a seal.
pub(crate) fn write_draft(draft: &Path, text: &str) -> io::Result<()> {
    fs::write(draft, text)
}

/// Makes the draft of a seal durable.
pub(crate) fn sync_draft(draft: &Path) -> io::Result<()> {
    File::open(draft)?.sync_all()
}

/// Makes the names in the seal's folder durable where the file system can.
pub(crate) fn sync_folder_of(seal: &Path) -> io::Result<()> {
    let folder = seal.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems have no such thing as a durable folder.
        Err(error) if matches!(error.kind(), InvalidInput | Unsupported) => Ok(()),
        synced => synced,
    }
}
