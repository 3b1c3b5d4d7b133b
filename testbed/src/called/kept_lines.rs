//! The file in a run's folder in which the services beside EC2 keep their records, one per line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use dormouse_report::output::OutputError;

/// Name of the file with the records of calls of the emulated services other than EC2.
const FILE: &str = "services.jsonl";

/// Records of calls of the emulated services other than EC2; each record is on the disk before its call is answered.
#[derive(Debug)]
pub(crate) struct KeptLines {
    /// Records that a resumed run already has, oldest first; empty for a new run.
    pub(crate) before: Vec<String>,
    path: PathBuf,
    /// The file of the calls' records; `None` until there is a record.
    file: Option<File>,
}

impl KeptLines {
    /// Begins a file of records, which is made with the first record.
    ///
    /// # Errors
    ///
    /// A former run's file can't be removed.
    pub(crate) fn begin(folder: &Path) -> Result<Self, OutputError> {
        let path = folder.join(FILE);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(OutputError::Io { doing: "remove", path, source })
            }
            _ => Ok(Self { before: Vec::new(), path, file: None }),
        }
    }

    /// Continues the records of a run that was killed. A last line without its end is cut off: its call was not
    /// answered.
    ///
    /// # Errors
    ///
    /// The file can't be read or cut.
    pub(crate) fn go_on(folder: &Path) -> Result<Self, OutputError> {
        let path = folder.join(FILE);
        let refused = |doing, source| OutputError::Io { doing, path: path.clone(), source };
        let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { before: Vec::new(), path, file: None });
            }
            opened => opened.map_err(|source| refused("open", source))?,
        };
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|source| refused("read", source))?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let length = u64::try_from(whole).unwrap_or(u64::MAX);
        file.set_len(length).map_err(|source| refused("cut", source))?;
        let lines = text.get(..whole).unwrap_or_default().lines();
        Ok(Self { before: lines.map(str::to_owned).collect(), path, file: Some(file) })
    }

    /// Writes the record of a call of an emulated service durably; returns whether that succeeded.
    pub(crate) fn keep(&mut self, line: &str) -> bool {
        let written = self.opened().and_then(|file| {
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        });
        if let Err(error) = &written {
            tracing::error!(path = %self.path.display(), %error, "a record can't be kept");
        }
        written.is_ok()
    }

    fn opened(&mut self) -> io::Result<&mut File> {
        if self.file.is_none() {
            self.file = Some(OpenOptions::new().create(true).append(true).open(&self.path)?);
        }
        self.file.as_mut().ok_or_else(|| io::Error::other("the file of records is not open"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_again_but_for_a_torn_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = KeptLines::begin(folder.path()).expect("it can");
        assert!(kept.keep("one") && kept.keep("two"));
        let path = folder.path().join(FILE);
        let mut file = OpenOptions::new().append(true).open(&path).expect("it is there");
        file.write_all(b"tor").expect("it is written");
        let mut again = KeptLines::go_on(folder.path()).expect("it can");
        assert_eq!(again.before, ["one", "two"]);
        assert!(again.keep("three"));
        assert_eq!(std::fs::read_to_string(&path).expect("a text"), "one\ntwo\nthree\n");
        assert!(KeptLines::begin(folder.path()).expect("it can").before.is_empty());
        assert!(!path.exists());
    }
}
