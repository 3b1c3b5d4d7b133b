//! Writer of logs.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::LogError;
use crate::chain::{Chain, Head};
use crate::file::{LogFile, OpenLog, open_file};
use crate::seal::{GrowingSeal, check_seal};

/// Greatest number of bytes that are buffered in memory.
const BUFFER: usize = 1 << 18;

/// Longest time to wait for a lock: a process that was just killed, or that only asks if the log is
/// being written, holds a lock for a moment.
const LOCKED_FOR: Duration = Duration::from_secs(1);
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// Appends lines to a log. They are in the file after [`Self::finish`], durable after
/// [`Self::sync`], and covered by the seal after [`Self::seal`].
///
/// The writer holds a lock on the log as long as it lives, so that nobody else writes it.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: Box<dyn LogFile>,
    /// Bytes that were not written to the system yet.
    waiting: Vec<u8>,
    chain: Chain,
    sealing: GrowingSeal,
    /// Number of bytes that the seal covers; `None` before the first seal.
    sealed: Option<u64>,
}

impl LogWriter {
    /// Creates a log, replacing an existing file.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the file can't be created. [`LogError::UnderWay`]: another process
    /// writes it.
    pub fn create(path: &Path) -> Result<Self, LogError> {
        let mut log = Self::open_new(path, &open_file)?;
        log.update_seal().map_err(|source| log.write_error(source))?;
        log.empty()?;
        Ok(log)
    }

    /// Creates a log in a file that `open` opens, replacing an existing one, and makes its seal
    /// durable, so that leftovers of a power cut can be told from lines.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::create`].
    pub fn create_on(path: &Path, open: OpenLog<'_>) -> Result<Self, LogError> {
        let mut log = Self::open_new(path, open)?;
        log.seal()?;
        log.empty()?;
        Ok(log)
    }

    fn open_new(path: &Path, open: OpenLog<'_>) -> Result<Self, LogError> {
        // The file is emptied once its lock is held.
        Self::open_locked(path, OpenOptions::new().write(true).create(true).truncate(false), open)
    }

    /// Removes all lines of an earlier log after its seal no longer covers any: a kill between the two steps must not
    /// leave a seal of lost lines.
    fn empty(&mut self) -> Result<(), LogError> {
        self.cut(0)?;
        self.sealed = Some(0);
        Ok(())
    }

    /// Opens the log of an earlier run and truncates it to `length` bytes, which removes a torn
    /// tail.
    ///
    /// # Errors
    ///
    /// [`LogError::NotAsSealed`]: sealed content was changed or would be removed.
    /// [`LogError::Write`]: the file can't be opened or truncated. [`LogError::UnderWay`]: another
    /// process writes it.
    pub fn reopen(path: &Path, length: u64) -> Result<Self, LogError> {
        Self::reopen_on(path, length, &open_file)
    }

    /// Like [`Self::reopen`], in a file that `open` opens.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::reopen`].
    pub fn reopen_on(path: &Path, length: u64, open: OpenLog<'_>) -> Result<Self, LogError> {
        let mut log = Self::open_locked(path, OpenOptions::new().write(true), open)?;
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

    fn open_locked(
        path: &Path,
        options: &OpenOptions,
        open: OpenLog<'_>,
    ) -> Result<Self, LogError> {
        let path = path.to_owned();
        let file = match open(&path, options) {
            Ok(file) => file,
            Err(source) => return Err(LogError::Write { path, source }),
        };
        match wait_for_lock(|| file.try_lock()) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::UnderWay { path }),
            // Some file systems have no locks: assume there that no other process writes the log.
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(source)) => return Err(LogError::Write { path, source }),
        }
        let (sealing, chain) = (GrowingSeal::beside_log(&path), Chain::default());
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
            return Err(self.write_error(error.into()));
        }
        self.waiting.push(b'\n');
        self.chain.add(&self.waiting[start..]);
        if self.waiting.len() >= BUFFER {
            self.write_waiting().map_err(|source| self.write_error(source))?;
        }
        Ok(())
    }

    /// Writes the buffer to the system; bytes that the system did not take stay in the buffer.
    fn write_waiting(&mut self) -> io::Result<()> {
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

    /// Updates the seal to the log's present length, if the seal is behind; the update survives this process but not a
    /// power cut.
    fn update_seal(&mut self) -> io::Result<()> {
        if !self.is_sealed() {
            self.sealing.update_head(&mut *self.file, self.chain.head())?;
            self.sealed = Some(self.chain.bytes());
        }
        Ok(())
    }

    /// True if the seal covers all lines.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed == Some(self.chain.bytes())
    }

    /// Writes the head of the hash chain over all lines, which must be durable, to the seal beside the log, durably. This creates
    /// another file and takes two syncs, so it is not done with each sync of the log.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the earlier seal stays.
    pub fn seal(&mut self) -> Result<(), LogError> {
        if self.is_sealed() {
            return Ok(());
        }
        let head = self.chain.head();
        let kept = self.sealing.keep_durably(&mut *self.file, head);
        kept.map_err(|source| self.write_error(source))?;
        self.sealed = Some(self.chain.bytes());
        Ok(())
    }

    /// The head of the hash chain over all lines.
    #[must_use]
    pub fn head(&self) -> Head {
        self.chain.head()
    }

    /// Writes all lines to the system: they survive this process, but not necessarily its host.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the disk is full, for example.
    pub fn flush(&mut self) -> Result<(), LogError> {
        let flushed = self.write_waiting().and_then(|()| self.update_seal());
        flushed.map_err(|source| self.write_error(source))
    }

    /// Makes all lines durable; returns the length of the log in bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the lines are not durable.
    pub fn sync(&mut self) -> Result<u64, LogError> {
        let synced = self.write_waiting().and_then(|()| self.file.sync_data());
        synced.map_err(|source| self.write_error(source))?;
        Ok(self.chain.bytes())
    }

    /// Truncates the log to its first `length` bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn cut(&mut self, length: u64) -> Result<(), LogError> {
        let cut = self.write_waiting().and_then(|()| self.file.set_len(length));
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(length)).map(drop));
        let cut = cut.and_then(|()| Chain::of_file(&self.path, length));
        self.chain = cut.map_err(|source| self.write_error(source))?;
        self.sealed = None;
        Ok(())
    }

    /// The present end of the log, for [`Self::take_back`].
    #[must_use]
    pub fn place(&self) -> Chain {
        self.chain.clone()
    }

    /// Removes all lines after the end `to`, including buffered ones: after a full disk they can be
    /// written again.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn take_back(&mut self, to: &Chain) -> Result<(), LogError> {
        self.waiting.clear();
        let length = to.bytes();
        let cut = self.file.set_len(length);
        let cut = cut.and_then(|()| self.file.seek(SeekFrom::Start(length)).map(drop));
        cut.map_err(|source| self.write_error(source))?;
        self.chain = to.clone();
        Ok(())
    }

    /// Writes the buffered lines; returns the head of the hash chain.
    ///
    /// # Errors
    ///
    /// [`LogError::Write`]: the system refuses.
    pub fn finish(mut self) -> Result<Head, LogError> {
        self.flush()?;
        Ok(self.chain.head())
    }

    fn write_error(&self, source: io::Error) -> LogError {
        LogError::Write { path: self.path.clone(), source }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // Errors are ignored on drop: callers that need them call `finish`.
        let _ = self.write_waiting();
    }
}

/// Tries to take a lock until that succeeds or [`LOCKED_FOR`] has passed.
fn wait_for_lock(lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
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

/// True if a process is writing the log at `path`.
#[must_use]
pub fn is_under_way(path: &Path) -> bool {
    // Shared, so that two who ask do not see each other.
    let lock = |file: File| wait_for_lock(|| file.try_lock_shared());
    File::open(path).is_ok_and(|file| matches!(lock(file), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::{Seek, Write};

    use super::*;

    /// A file that can't be truncated, as if the process were killed before it truncates its log.
    #[derive(Debug)]
    struct UncutFile(File);

    impl Write for UncutFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    impl Seek for UncutFile {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    impl LogFile for UncutFile {
        fn sync_data(&mut self) -> io::Result<()> {
            self.0.sync_data()
        }

        fn set_len(&mut self, _: u64) -> io::Result<()> {
            Err(io::Error::other("it was killed"))
        }

        fn try_lock(&self) -> Result<(), TryLockError> {
            self.0.try_lock()
        }
    }

    #[test]
    fn a_log_that_is_about_to_be_replaced_has_no_seal_of_lost_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = LogWriter::create(&path).expect("room");
        log.line(&"a line").and_then(|()| log.finish().map(drop)).expect("room");
        let open = |path: &Path, options: &OpenOptions| -> io::Result<Box<dyn LogFile>> {
            Ok(Box::new(UncutFile(options.open(path)?)))
        };
        LogWriter::create_on(&path, &open).expect_err("it was killed");
        let seal = check_seal(&path).expect("it fits").expect("it is there");
        assert_eq!((seal.log.lines, std::fs::read(&path).expect("there").len()), (0, 9));
    }

    /// A log may stay locked for a moment: its writer was just killed, for example.
    #[test]
    fn a_log_that_is_free_in_a_moment_is_waited_for() {
        let asked = Cell::new(0);
        let free_at_the_third = || {
            asked.set(asked.get() + 1);
            if asked.get() < 3 { Err(TryLockError::WouldBlock) } else { Ok(()) }
        };
        assert!(wait_for_lock(free_at_the_third).is_ok());
        let never = || Err(TryLockError::WouldBlock);
        assert!(matches!(wait_for_lock(never), Err(TryLockError::WouldBlock)));
        asked.set(0);
        let broken = || {
            asked.set(asked.get() + 1);
            Err(TryLockError::Error(io::ErrorKind::Unsupported.into()))
        };
        assert!(wait_for_lock(broken).is_err());
        assert_eq!(asked.get(), 1, "another error is no lock");
    }
}
