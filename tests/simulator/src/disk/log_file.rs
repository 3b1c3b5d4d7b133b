//! The open file of a log that a coordinator writes.

use std::fs::{File, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dormouse_log::LogFile;

use super::log_state::LogState;
use super::{MountedDisk, dead};
use crate::log_change::LogChange;
use crate::stage::Write as Verdict;

/// The open file of a log.
#[derive(Debug)]
pub(super) struct SimulatedFile {
    file: File,
    path: PathBuf,
    place: u64,
    mounted: MountedDisk,
}

impl SimulatedFile {
    pub(super) fn new(file: File, path: &Path, mounted: MountedDisk) -> Self {
        Self { file, path: path.to_owned(), place: 0, mounted }
    }

    fn with_state<T>(&self, with: impl FnOnce(&mut LogState) -> T) -> T {
        with(self.mounted.disk.inner().logs.entry(self.path.clone()).or_default())
    }

    /// Writes all bytes at the file's current position.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        let (at, by) = (self.place, self.mounted.generation);
        let change = LogChange::Written { at, bytes: bytes.to_vec(), by };
        self.with_state(|state| state.is_changed(change));
        self.place += bytes.len() as u64;
        Ok(())
    }

    /// The error of a disk that is full or broken; `None` if the disk is neither.
    fn refusal(&self, is_write: bool) -> Option<io::Error> {
        let now = self.mounted.disk.stage().now_us();
        let mut inner = self.mounted.disk.inner();
        let refusal = match &mut inner.writes_before_error {
            Some(0) => Some(io::Error::from_raw_os_error(libc::EIO)),
            before_error => {
                if let Some(more) = before_error.as_mut().filter(|_| is_write) {
                    *more -= 1;
                }
                let is_full = is_write && inner.log_full_until > now;
                is_full.then(|| io::ErrorKind::StorageFull.into())
            }
        };
        if refusal.is_some() {
            inner.refused = Some(self.mounted.generation);
        }
        refusal
    }

    /// Changes the state of the seal that belongs to the log.
    fn change_seal(&self, what: &str, make: impl FnOnce(&mut LogState)) -> io::Result<()> {
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        self.mounted.change(format_args!("the seal's {what}"), || {
            self.with_state(make);
            Ok(())
        })
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (many, stage) = (bytes.len(), self.mounted.disk.stage());
        let verdict = stage.writes(self.mounted.generation, format_args!("{many} bytes"));
        if verdict == Verdict::Dead {
            return Err(dead());
        }
        if let Some(refusal) = self.refusal(true) {
            return Err(refusal);
        }
        match verdict {
            Verdict::PartThenDie(part) => {
                let part = bytes.len() * part as usize / 1_000_000;
                self.put(&bytes[..part])?;
                Err(dead())
            }
            _ => self.put(bytes).map(|()| bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SimulatedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.place = self.file.seek(to)?;
        Ok(self.place)
    }
}

impl LogFile for SimulatedFile {
    fn sync_data(&mut self) -> io::Result<()> {
        self.mounted.check_alive()?;
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        let synced = self.with_state(LogState::is_synced);
        match self.mounted.disk.stage().synced(self.mounted.generation, &synced) {
            true => Ok(()),
            false => Err(dead()),
        }
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        let stage = self.mounted.disk.stage();
        let verdict = stage.writes(self.mounted.generation, format_args!("up to byte {length}"));
        // A file is cut whole or not at all.
        if matches!(verdict, Verdict::Dead | Verdict::PartThenDie(_)) {
            return Err(dead());
        }
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        self.file.set_len(length)?;
        self.with_state(|state| state.is_changed(LogChange::Cut(length)));
        Ok(())
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let (generation, stage) = (self.mounted.generation, self.mounted.disk.stage());
        self.with_state(|state| match state.lock {
            Some(holder) if holder != generation && stage.lives(holder) => {
                Err(TryLockError::WouldBlock)
            }
            _ => {
                state.lock = Some(generation);
                Ok(())
            }
        })
    }

    fn write_seal_draft(&mut self, _: &Path, text: &str) -> io::Result<()> {
        self.change_seal("draft is written", |state| state.seal.draft_is_written(text))
    }

    fn sync_seal_draft(&mut self, _: &Path) -> io::Result<()> {
        self.change_seal("draft is synced", |state| state.seal.draft_is_synced())
    }

    fn rename_seal_draft(&mut self, _: &Path, _: &Path) -> io::Result<()> {
        self.change_seal("draft is renamed", |state| state.seal.is_renamed())
    }

    fn sync_seal_folder(&mut self, _: &Path) -> io::Result<()> {
        self.change_seal("folder is synced", |state| state.seal.folder_is_synced())
    }
}
