//! The disk of a simulated coordinator: real files, and a record of which writes are synced.
//!
//! What a process has written stays in the file if the process dies; after a power cut only what was synced is sure to
//! be there. Writes of a coordinator that is already dead are dropped: those to its log, its seal and its store of
//! checkpoints.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_coordinator::{LogDisk, StoreFile};
use dormouse_log::{LogFile, SEAL};

use crate::death::PowerLoss;
use crate::draw::Draw;
use crate::stage::{Stage, Write as Verdict};

mod damage;
mod log_file;
mod log_state;
mod seal_state;
mod store;
#[cfg(test)]
mod tests;

use log_file::SimulatedFile;
use log_state::LogState;
pub use store::{DamagedCheckpoint, rot_checkpoint};
use store::{SimulatedStoreFile, StoreState};

/// The disk of one run. Clones share the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stage: Stage,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    logs: BTreeMap<PathBuf, LogState>,
    store: StoreState,
    /// Simulated time, in microseconds, until which there is no room for the log; the second field is for checkpoints.
    log_full_until: u64,
    store_full_until: u64,
    /// Number of writes that still succeed before the disk refuses all; `None`: it refuses none.
    writes_before_error: Option<u32>,
    /// Generation of the last coordinator that the disk has refused a write or sync of the log.
    refused: Option<u64>,
}

impl SimulatedDisk {
    /// A new disk for a run on this stage.
    #[must_use]
    pub fn new(stage: Stage) -> Self {
        Self(Arc::new(Shared { stage, inner: Mutex::default() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stage(&self) -> &Stage {
        &self.0.stage
    }

    /// The disk for the coordinator of this generation.
    #[must_use]
    pub fn mounted(&self, generation: u64) -> MountedDisk {
        MountedDisk { disk: self.clone(), generation }
    }

    /// Leaves no room for the log or for checkpoints until so many microseconds after the run's start.
    pub fn log_is_full_until(&self, at_us: u64) {
        let mut inner = self.inner();
        inner.log_full_until = inner.log_full_until.max(at_us);
        inner.store_full_until = inner.store_full_until.max(at_us);
    }

    /// Leaves no room for checkpoints until so many microseconds after the run's start.
    pub fn store_is_full_until(&self, at_us: u64) {
        let mut inner = self.inner();
        inner.store_full_until = inner.store_full_until.max(at_us);
    }

    /// Has the disk refuse everything after so many more writes, until it is mended.
    pub fn fails_after(&self, writes: u32) {
        self.inner().writes_before_error = Some(writes);
    }

    /// Mends the disk: it refuses nothing any more.
    pub fn is_mended(&self) {
        self.inner().writes_before_error = None;
    }

    /// Whether the disk refuses writes because it is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner().writes_before_error == Some(0)
    }

    /// Whether the disk has ever refused a coordinator a write or sync of the log.
    #[must_use]
    pub fn has_ever_refused(&self) -> bool {
        self.inner().refused.is_some()
    }

    /// Whether the disk has refused the coordinator of this generation a write or sync of the log.
    #[must_use]
    pub fn has_refused(&self, generation: u64) -> bool {
        self.inner().refused == Some(generation)
    }

    /// Writes the seals to their files, for programs that read them there.
    ///
    /// # Errors
    ///
    /// The real disk below refuses.
    pub fn write_seals(&self) -> io::Result<()> {
        for (path, log) in &self.inner().logs {
            let seal = path.with_file_name(SEAL);
            match log.seal.content() {
                Some(content) => fs::write(seal, content)?,
                None => match fs::remove_file(seal) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                },
            }
        }
        Ok(())
    }

    /// Whether the disk has damaged a durable seal, so that its log can't be compared with it.
    #[must_use]
    pub fn has_damaged_seal(&self) -> bool {
        self.inner().logs.values().any(|log| log.seal.is_damaged())
    }

    /// Whether the disk has damaged a sealed part of a log, so that the run can't be resumed.
    #[must_use]
    pub fn has_damaged_log(&self) -> bool {
        self.inner().logs.values().any(|log| log.is_damaged)
    }

    /// Reads the seals back from their files, after the run's user had them made again.
    ///
    /// # Errors
    ///
    /// The real disk below refuses.
    pub fn read_seals(&self) -> io::Result<()> {
        for (path, log) in &mut self.inner().logs {
            log.seal.is_made_anew(fs::read(path.with_file_name(SEAL))?);
        }
        Ok(())
    }

    /// Cuts the power as [`PowerLoss`] says; returns the checkpoints that this damaged.
    ///
    /// # Errors
    ///
    /// The real disk below refuses.
    pub fn power_cut(
        &self,
        loss: &PowerLoss,
        chance: &mut Draw,
    ) -> io::Result<Vec<DamagedCheckpoint>> {
        let mut inner = self.inner();
        for (path, log) in &mut inner.logs {
            log.power_cut(path, loss, chance, self.stage())?;
        }
        inner.store.power_cut(loss.tears_checkpoints, chance)
    }
}

/// The disk as one coordinator sees it: it refuses everything once that coordinator is dead.
#[derive(Clone, Debug)]
pub struct MountedDisk {
    disk: SimulatedDisk,
    generation: u64,
}

fn dead() -> io::Error {
    io::Error::other("its process was killed")
}

impl MountedDisk {
    fn check_alive(&self) -> io::Result<()> {
        if self.disk.stage().lives(self.generation) { Ok(()) } else { Err(dead()) }
    }

    /// Changes a file by a step that is made as a whole or not at all, at which the coordinator may be planned to die.
    fn change(
        &self,
        what: std::fmt::Arguments<'_>,
        make: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        match self.disk.stage().changes_file(self.generation, what) {
            Verdict::Whole => make(),
            Verdict::ThenDie => make().and_then(|()| Err(dead())),
            Verdict::PartThenDie(_) | Verdict::Dead => Err(dead()),
        }
    }
}

/// The last two parts of a path, which do not depend on where the run is played.
fn named(path: &Path) -> String {
    let last = |path: Option<&Path>| {
        let name = path.and_then(Path::file_name);
        name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    format!("{}/{}", last(path.parent()), last(Some(path)))
}

impl LogDisk for MountedDisk {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Box<dyn LogFile>> {
        self.check_alive()?;
        let file = options.open(path)?;
        self.disk.inner().logs.entry(path.to_owned()).or_default();
        Ok(Box::new(SimulatedFile::new(file, path, self.clone())))
    }

    fn has_room(&self, _: &Path) -> io::Result<()> {
        self.check_alive()?;
        match self.disk.inner().store_full_until > self.disk.stage().now_us() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn StoreFile>> {
        self.check_alive()?;
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        self.disk.inner().store.is_created(path);
        Ok(Box::new(SimulatedStoreFile::new(file, path, self.clone())))
    }

    fn rename_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(format_args!("{} is renamed {}", named(from), named(to)), || {
            let replaced = fs::read(to).ok();
            fs::rename(from, to)?;
            self.disk.inner().store.is_renamed(from, to, replaced);
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.check_alive()?;
        let Ok(content) = fs::read(path) else { return Ok(()) };
        self.change(format_args!("{} is removed", named(path)), || {
            fs::remove_file(path)?;
            self.disk.inner().store.is_removed(path, content);
            Ok(())
        })
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.check_alive()?;
        fs::create_dir_all(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.check_alive()?;
        if !path.exists() {
            return Ok(());
        }
        self.change(format_args!("{} is removed with all in it", named(path)), || {
            fs::remove_dir_all(path)
        })
    }
}
