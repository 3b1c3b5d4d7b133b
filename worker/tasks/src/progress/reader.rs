//! Reader of progress pages, for the agent.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::value::{
    AT_CPU_NS, AT_HEARTBEAT, AT_HOLD, AT_MAGIC, AT_OWN, AT_PIDS, AT_PPM, AT_RANKS, AT_STATE,
    AT_UNITS, AT_VERSION, AT_WORK, MAGIC, MAX_RANKS, PAGE_BYTES, VERSION, WORK_UNIT,
};
use super::{Clock, Progress, ProgressError, State};
use crate::left;

/// Reads the page of a running task.
///
/// It reads the file instead of mapping it, so that a task that truncates its file causes an error
/// here and not a SIGBUS.
#[derive(Debug)]
pub struct ProgressReader {
    path: PathBuf,
    file: File,
}

impl ProgressReader {
    /// Opens the progress page at `path`, which must exist, even if the task hasn't set it up yet.
    ///
    /// A reader follows the file, not the path: open again after replacing the file.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file cannot be opened.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ProgressError> {
        let path = path.as_ref().to_path_buf();
        let opened = left::open(&path, OpenOptions::new().read(true));
        let file = opened.map_err(|source| ProgressError::Io {
            path: path.clone(),
            what: "opened",
            source,
        })?;
        Ok(Self { path, file })
    }

    /// Returns the present content of the page; all zero and [`State::Starting`] until the task has set up the page.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotAPage`] when the file holds something else.
    pub fn read(&self) -> Result<Progress, ProgressError> {
        let mut bytes = [0; AT_HOLD * 8];
        match self.file.read_exact_at(&mut bytes, 0) {
            // Created, not yet sized.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Progress::default()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (chunks, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(chunks[at]);
        match (word(AT_MAGIC), word(AT_VERSION)) {
            (0, _) => return Ok(Progress::default()),
            (MAGIC, VERSION) => {}
            (MAGIC, other) => {
                return Err(self.not_a_page(format!("has layout version {other}, not {VERSION}")));
            }
            _ => return Err(self.not_a_page("is not a progress page".to_owned())),
        }
        let state = State::from_word(word(AT_STATE))
            .ok_or_else(|| self.not_a_page(format!("has the unknown state {}", word(AT_STATE))))?;
        Ok(Progress {
            state,
            ppm: word(AT_PPM).min(Progress::COMPLETE),
            cpu: Duration::from_nanos(word(AT_CPU_NS)),
            units: word(AT_UNITS),
            heartbeat: word(AT_HEARTBEAT),
        })
    }

    /// Returns the task's CPU clock as kept on the page.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file cannot be read.
    pub fn clock(&self) -> Result<Clock, ProgressError> {
        let mut words = [0; 16];
        match self.file.read_exact_at(&mut words, (AT_OWN * 8) as u64) {
            // Created, not yet sized.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Clock::default()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (words, _) = words.as_chunks::<8>();
        Ok(Clock { own: i64::from_le_bytes(words[0]), foreign: i64::from_le_bytes(words[1]) })
    }

    /// Returns the PIDs of a parallel job's ranks in the task's own PID namespace, by rank; empty until the PIDs of all ranks are
    /// written, and for a program of one process.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotAPage`] when the file holds something else.
    pub fn ranks(&self) -> Result<Vec<i32>, ProgressError> {
        let mut bytes = [0; PAGE_BYTES];
        match self.file.read_exact_at(&mut bytes, 0) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(source) => {
                return Err(ProgressError::Io { path: self.path.clone(), what: "read", source });
            }
            Ok(()) => {}
        }
        let (words, _) = bytes.as_chunks::<8>();
        let count = u64::from_le_bytes(words[AT_RANKS]);
        if count > MAX_RANKS as u64 {
            return Err(self.not_a_page(format!("names {count} ranks, more than it can hold")));
        }
        let pids = words[AT_PIDS..].iter().take(count as usize).map(|w| u64::from_le_bytes(*w));
        pids.map(|pid| {
            i32::try_from(pid).map_err(|_| self.not_a_page(format!("names a rank with PID {pid}")))
        })
        .collect()
    }

    /// Returns the CPU time for which each of `ranks` ranks has computed, before and after restores together. Clock steps that the
    /// work can't explain, such as while a host was stopped, don't count.
    ///
    /// # Errors
    ///
    /// [`ProgressError::Io`] when the file can't be read or is too short.
    pub fn work(&self, ranks: usize) -> Result<Vec<Duration>, ProgressError> {
        let mut bytes = [0; MAX_RANKS * 4];
        let at = (AT_WORK * 8) as u64;
        self.file.read_exact_at(&mut bytes, at).map_err(|source| ProgressError::Io {
            path: self.path.clone(),
            what: "read",
            source,
        })?;
        let (counts, _) = bytes.as_chunks::<4>();
        let work = counts.iter().take(ranks).map(|count| WORK_UNIT * u32::from_le_bytes(*count));
        Ok(work.collect())
    }

    fn not_a_page(&self, what: String) -> ProgressError {
        ProgressError::NotAPage { path: self.path.clone(), what }
    }
}
