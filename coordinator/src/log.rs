//! The event log, `events.jsonl`: a header line, then one step per line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dormouse_engine::Step;
use serde_json::Value;

use crate::error::full;

/// Why a log can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file can't be opened or read.
    #[error("can't read the event log {}{}", .path.display(), full(.source))]
    Read {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line can't be made durable.
    #[error(
        "can't write the event log {}{}; nothing more could be recorded, so the run was ended. \
         Make room or choose another folder with --out",
        .path.display(),
        full(.source)
    )]
    Write {
        /// The log.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line in the middle is no step.
    #[error("{}, line {line}: this is not a step of an event log; the file is damaged", .path.display())]
    Damaged {
        /// The log.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// There is no complete first line.
    #[error("{}, line 1: the header is missing; is this the events.jsonl of a run?", .path.display())]
    NoHeader {
        /// The log.
        path: PathBuf,
    },
}

/// Appends lines and makes them durable.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: File,
}

impl LogWriter {
    /// A new log in place of whatever was there.
    ///
    /// # Errors
    ///
    /// The file can't be made.
    pub fn create(path: &Path) -> Result<Self, LogError> {
        Self::open(path, OpenOptions::new().write(true).create(true).truncate(true))
    }

    /// The log of a former run, cut to its first `length` bytes: what follows is a torn tail.
    ///
    /// # Errors
    ///
    /// The file can't be opened or cut.
    pub fn reopen(path: &Path, length: u64) -> Result<Self, LogError> {
        let mut log = Self::open(path, OpenOptions::new().write(true))?;
        log.file
            .set_len(length)
            .and_then(|()| log.file.seek(SeekFrom::End(0)))
            .and_then(|_| log.file.sync_all())
            .map_err(|source| LogError::Write { path: path.to_owned(), source })?;
        Ok(log)
    }

    fn open(path: &Path, options: &OpenOptions) -> Result<Self, LogError> {
        let path = path.to_owned();
        match options.open(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(LogError::Write { path, source }),
        }
    }

    /// Appends whole lines; they are durable when this returns.
    ///
    /// # Errors
    ///
    /// They are not: the disk is full, for example. What was written of them is a torn tail.
    pub fn append(&mut self, lines: &[u8]) -> Result<(), LogError> {
        self.file
            .write_all(lines)
            .and_then(|()| self.file.sync_data())
            .map_err(|source| LogError::Write { path: self.path.clone(), source })
    }
}

/// A step as it stands in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Its line, from 1; the header is line 1.
    pub line: u64,
    /// Its text, without the line's end.
    pub text: String,
    /// The step.
    pub step: Step,
}

/// Reads a log line by line. A torn last line, left by a crash, is dropped and remembered.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    lines: BufReader<File>,
    header: Value,
    line: u64,
    good_bytes: u64,
    torn: bool,
}

impl LogReader {
    /// Opens a log and reads its header.
    ///
    /// # Errors
    ///
    /// It can't be read, or does not begin with a complete header.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let no_header = || LogError::NoHeader { path: path.to_owned() };
        let read = |source| LogError::Read { path: path.to_owned(), source };
        let mut lines = BufReader::new(File::open(path).map_err(read)?);
        let mut text = Vec::new();
        lines.read_until(b'\n', &mut text).map_err(read)?;
        let body = text.strip_suffix(b"\n").ok_or_else(no_header)?;
        let header: Value = serde_json::from_slice(body).map_err(|_| no_header())?;
        if !header.is_object() {
            return Err(no_header());
        }
        let good_bytes = text.len() as u64;
        Ok(Self { path: path.to_owned(), lines, header, line: 1, good_bytes, torn: false })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Value {
        &self.header
    }

    /// Bytes up to the end of the last whole line read.
    #[must_use]
    pub const fn good_bytes(&self) -> u64 {
        self.good_bytes
    }

    /// Whether the last line was torn. Known once [`Self::next_line`] has given `None`.
    #[must_use]
    pub const fn torn(&self) -> bool {
        self.torn
    }

    /// The next step; `None` at the end, or at a torn last line.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is damaged before its last line.
    pub fn next_line(&mut self) -> Result<Option<LogLine>, LogError> {
        if self.torn {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        self.lines.read_until(b'\n', &mut bytes).map_err(|source| self.unreadable(source))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let length = bytes.len() as u64;
        let Some(body) = bytes.strip_suffix(b"\n") else {
            self.torn = true;
            return Ok(None);
        };
        self.line += 1;
        let line = self.line;
        match serde_json::from_slice::<Step>(body) {
            Ok(step) => {
                self.good_bytes += length;
                let text = String::from_utf8_lossy(body).into_owned();
                Ok(Some(LogLine { line, text, step }))
            }
            Err(source) => {
                // After a power loss the tail may be blocks of anything: torn, if it is the last.
                let rest = self
                    .lines
                    .fill_buf()
                    .map_err(|source| LogError::Read { path: self.path.clone(), source })?;
                if rest.is_empty() {
                    self.torn = true;
                    return Ok(None);
                }
                Err(LogError::Damaged { path: self.path.clone(), line, source })
            }
        }
    }

    fn unreadable(&self, source: std::io::Error) -> LogError {
        LogError::Read { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_engine::Event;
    use dormouse_units::Time;

    use super::*;

    fn step(seq: u64) -> Step {
        let (notices, decisions, effects) = Default::default();
        let at = Time::from_micros(seq);
        Step { seq, at, event: Event::Tick, notices, decisions, effects }
    }

    fn log_of(tail: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("events.jsonl");
        let mut log = LogWriter::create(&path).expect("a new log");
        let mut lines = b"{\"version\":1}\n".to_vec();
        for seq in 0..3 {
            serde_json::to_writer(&mut lines, &step(seq)).expect("a step is JSON");
            lines.push(b'\n');
        }
        log.append(&lines).expect("room");
        log.append(tail).expect("room");
        (dir, path)
    }

    fn read_all(path: &Path) -> Result<(Vec<Step>, LogReader), LogError> {
        let mut log = LogReader::open(path)?;
        let mut steps = Vec::new();
        while let Some(line) = log.next_line()? {
            steps.push(line.step);
        }
        Ok((steps, log))
    }

    #[test]
    fn a_torn_tail_is_dropped_and_cut_off() {
        for tail in [&b""[..], b"{\"seq\":3,\"at", b"\0\0\0\0", b"\0\0\0\n", b"{\"seq\":3}\n"] {
            let (_dir, path) = log_of(tail);
            let (steps, log) = read_all(&path).expect("a torn tail is no damage");
            assert_eq!(steps, [step(0), step(1), step(2)]);
            assert_eq!(log.torn(), !tail.is_empty(), "{tail:?}");
            let mut again = LogWriter::reopen(&path, log.good_bytes()).expect("it is there");
            let mut line = serde_json::to_vec(&step(3)).expect("a step is JSON");
            line.push(b'\n');
            again.append(&line).expect("room");
            let (steps, log) = read_all(&path).expect("whole again");
            assert_eq!((steps.len(), log.torn()), (4, false));
        }
    }

    #[test]
    fn damage_in_the_middle_is_said_with_its_line() {
        let (_dir, path) = log_of(b"nonsense\n{\"seq\":4,\"at\":4,\"event\":\"tick\"}\n");
        let no = read_all(&path).expect_err("line 5 is nonsense");
        assert!(matches!(no, LogError::Damaged { line: 5, .. }), "{no}");
    }

    #[test]
    fn what_has_no_header_is_no_log() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for text in ["", "{}", "[]\n", "what\n"] {
            let path = dir.path().join("events.jsonl");
            std::fs::write(&path, text).expect("room");
            let no = LogReader::open(&path).expect_err("no header");
            assert!(matches!(no, LogError::NoHeader { .. }), "{text:?}: {no}");
        }
    }
}
