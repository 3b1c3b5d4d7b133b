//! Writing a log.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::LogError;
use crate::chain::{Chain, Head};
use crate::file::{LogFile, OpenLog, open_file};
use crate::seal::{Sealing, check_seal};

/// The bytes that wait in memory at most before they are given to the system.
const BUFFER: usize = 1 << 18;

/// Longest time for which a lock is waited for: a process that was just killed, or that only asks
/// whether the log is being written, holds a lock for a moment.
const LOCKED_FOR: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Appends lines to a log. They are in the file after [`Self::finish`], durable after
/// [`Self::sync`], and bound by the seal after [`Self::seal`].
///
/// While the writer lives, the log is locked: nobody else writes it.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: Box<dyn LogFile>,
    /// Bytes that the system has not been given yet.
    waiting: Vec<u8>,
    chain: Chain,
    sealing: Sealing,
    /// The bytes that the seal says are whole; `None` before it says anything.
    sealed: Option<u64>,
}

impl LogWriter {
    /// Creates a log in place of whatever was there.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the file can't be made. [`LogError::UnderWay`]: somebody writes it.
    pub fn create(path: &Path) -> Result<Self, LogError> {
        let mut log = Self::empty(path, &open_file)?;
        log.seal()?;
        Ok(log)
    }

    /// Creates a log in place of whatever was there, in a file that is opened so, and makes it durable that
    /// nothing of it is: what a power cut leaves of its first lines is told by that.
    ///
    /// # Errors
    ///
    /// The same as of [`Self::create`].
    pub fn create_on(path: &Path, open: OpenLog<'_>) -> Result<Self, LogError> {
        let mut log = Self::empty(path, open)?;
        let head = log.chain.head();
        log.sealing.keep(&mut *log.file, head).map_err(|source| log.refused(source))?;
        log.sealed = Some(log.chain.bytes());
        Ok(log)
    }

    fn empty(path: &Path, open: OpenLog<'_>) -> Result<Self, LogError> {
        // The file is emptied once its lock is held.
        let mut log =
            Self::open(path, OpenOptions::new().write(true).create(true).truncate(false), open)?;
        log.cut(0)?;
        Ok(log)
    }

    /// Opens the log of a former run, cut to its first `length` bytes: what follows is a torn tail.
    ///
    /// # Errors
    ///
    /// [`LogError::NotAsSealed`]: what the folder's seal covers is not as it was, or would be cut.
    /// [`LogError::Write`]: the file can't be opened or cut. [`LogError::UnderWay`]: somebody
    /// writes it.
    pub fn reopen(path: &Path, length: u64) -> Result<Self, LogError> {
        Self::reopen_on(path, length, &open_file)
    }

    /// Opens the log of a former run, cut to its first `length` bytes, in a file that is opened so.
    ///
    /// # Errors
    ///
    /// The same as of [`Self::reopen`].
    pub fn reopen_on(path: &Path, length: u64, open: OpenLog<'_>) -> Result<Self, LogError> {
        let mut log = Self::open(path, OpenOptions::new().write(true), open)?;
        // Before anything is added: whatever is sealed next counts as it is.
        let former = check_seal(path)?;
        if let Some(seal) = former.as_ref().filter(|seal| seal.log.bytes > length) {
            let lines = seal.log.lines;
            let why = format!("not all of the {lines} lines that were sealed can be read");
            return Err(LogError::NotAsSealed { path: path.to_owned(), why });
        }
        log.cut(length)?;
        if let Some(former) = former {
            log.sealing.go_on(former, &log.chain.head());
        }
        log.sync()?;
        log.seal()?;
        Ok(log)
    }

    fn open(path: &Path, options: &OpenOptions, open: OpenLog<'_>) -> Result<Self, LogError> {
        let path = path.to_owned();
        let file = match open(&path, options) {
            Ok(file) => file,
            Err(source) => return Err(LogError::Write { path, source }),
        };
        match patiently(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::UnderWay { path }),
            // Some file systems have no locks: there the log is taken as written by nobody else.
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => return Err(LogError::Write { path, source }),
        }
        let (sealing, chain) = (Sealing::beside(&path), Chain::default());
        Ok(Self { path, file, waiting: Vec::new(), chain, sealing, sealed: None })
    }

    /// Appends a line with this value as JSON.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the disk is full, for example. A line written in part is a torn tail.
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), LogError> {
        let start = self.waiting.len();
        if let Err(error) = serde_json::to_writer(&mut self.waiting, value) {
            self.waiting.truncate(start);
            return Err(self.refused(error.into()));
        }
        self.waiting.push(b'\n');
        self.chain.add(&self.waiting[start..]);
        if self.waiting.len() >= BUFFER {
            self.give().map_err(|source| self.refused(source))?;
        }
        Ok(())
    }

    /// Gives the system what waits; what it has not taken waits still.
    fn give(&mut self) -> io::Result<()> {
        let mut given = 0;
        let outcome = loop {
            if given == self.waiting.len() {
                break Ok(());
            }
            match self.file.write(&self.waiting[given..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => given += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.waiting.drain(..given);
        outcome
    }

    /// Notes in the seal that the log is whole up to here, unless it says so already.
    fn note(&mut self) -> io::Result<()> {
        if !self.is_sealed() {
            self.sealing.note(&mut *self.file, self.chain.head())?;
            self.sealed = Some(self.chain.bytes());
        }
        Ok(())
    }

    /// Whether the seal says of all lines that they are whole.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed == Some(self.chain.bytes())
    }

    /// Puts the head of the chain over all lines, which are durable, into the seal beside the log. That makes
    /// another file and takes about as long as a sync, so that it is not done with each.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the seal is an earlier one.
    pub fn seal(&mut self) -> Result<(), LogError> {
        self.note().map_err(|source| self.refused(source))
    }

    /// The head of the chain over all lines.
    #[must_use]
    pub fn head(&self) -> Head {
        self.chain.head()
    }

    /// Gives all lines to the system: they are not lost with this process, though maybe with its host.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the disk is full, for example.
    pub fn flush(&mut self) -> Result<(), LogError> {
        let flushed = self.give().and_then(|()| self.note());
        flushed.map_err(|source| self.refused(source))
    }

    /// Makes all lines durable; returns the length of the log in bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the lines are not durable.
    pub fn sync(&mut self) -> Result<u64, LogError> {
        let synced = self.give().and_then(|()| self.file.sync_data());
        synced.map_err(|source| self.refused(source))?;
        Ok(self.chain.bytes())
    }

    /// Takes back all but the first `length` bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn cut(&mut self, length: u64) -> Result<(), LogError> {
        let cut = self.give().and_then(|()| self.file.set_len(length));
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(length)).map(drop));
        let cut = cut.and_then(|()| Chain::of_file(&self.path, length));
        self.chain = cut.map_err(|source| self.refused(source))?;
        self.sealed = None;
        Ok(())
    }

    /// A place in the log to which [`Self::take_back`] can go back: what it holds by now.
    #[must_use]
    pub fn place(&self) -> Chain {
        self.chain.clone()
    }

    /// Takes back all lines after a place, those that were never written among them: where the disk was full
    /// they can be written again once it is not.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn take_back(&mut self, to: &Chain) -> Result<(), LogError> {
        self.waiting.clear();
        let length = to.bytes();
        let cut = self.file.set_len(length);
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(length)).map(drop));
        cut.map_err(|source| self.refused(source))?;
        self.chain = to.clone();
        Ok(())
    }

    /// Writes out the lines that are still in memory; the head of their chain.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn finish(mut self) -> Result<Head, LogError> {
        self.flush()?;
        Ok(self.chain.head())
    }

    fn refused(&self, source: io::Error) -> LogError {
        LogError::Write { path: self.path.clone(), source }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // Whoever wants to know whether it is written calls `finish`.
        let _ = self.give();
    }
}

/// Asks for a lock until it is free, or too long has passed.
fn patiently(lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    let until = Instant::now() + LOCKED_FOR;
    loop {
        match lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(ASK_AGAIN);
            }
            outcome => return outcome,
        }
    }
}

/// Whether somebody writes the log at `path`.
#[must_use]
pub fn is_under_way(path: &Path) -> bool {
    // Shared, so that two who ask do not see each other.
    let lock = |file: File| patiently(|| file.try_lock_shared());
    File::open(path).is_ok_and(|file| matches!(lock(file), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A log can be locked for a moment longer: its writer was just killed, for example.
    #[test]
    fn a_log_that_is_free_in_a_moment_is_waited_for() {
        let asked = Cell::new(0);
        let free_at_the_third = || {
            asked.set(asked.get() + 1);
            if asked.get() < 3 { Err(TryLockError::WouldBlock) } else { Ok(()) }
        };
        assert!(patiently(free_at_the_third).is_ok());
        let never = || Err(TryLockError::WouldBlock);
        assert!(matches!(patiently(never), Err(TryLockError::WouldBlock)));
        asked.set(0);
        let broken = || {
            asked.set(asked.get() + 1);
            Err(TryLockError::Error(io::ErrorKind::Unsupported.into()))
        };
        assert!(patiently(broken).is_err());
        assert_eq!(asked.get(), 1, "another error is no lock");
    }
}
