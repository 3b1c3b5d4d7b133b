//! The disk under a simulated coordinator: real files, of which it is known what is synced.
//!
//! What a process has written is in the file, whatever becomes of the process; what was synced is there
//! after a power cut, too. What a dead coordinator still writes is written nowhere.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_coordinator::LogDisk;
use dormouse_log::{LogFile, SEAL};

use crate::draw::Draw;
use crate::log_change::LogChange;
use crate::stage::{Stage, Write as Verdict};

/// Seals of which a power cut may leave one in place of the last.
const SEALS: usize = 4;

/// The disk of one run. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    stage: Stage,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: BTreeMap<PathBuf, FileState>,
    /// Simulated microseconds until which there is no room for the log, and for checkpoints.
    log_full_until: u64,
    store_full_until: u64,
    /// Writes that still go well before the disk refuses every one; `None`: it refuses none.
    writes_before_error: Option<u32>,
    /// The generation of the last coordinator to which the disk has refused something of its log.
    refused: Option<u64>,
}

/// What is known of the file of a log.
#[derive(Debug, Default)]
struct FileState {
    /// The file as it is after a power cut.
    durable: Vec<u8>,
    /// What was written since the last sync, in order.
    pending: Vec<LogChange>,
    /// Whether anything was ever written to it: no garbage comes to stand in a file that is empty since it was made.
    is_written: bool,
    /// The generation of the coordinator that holds its lock.
    lock: Option<u64>,
    /// The seal beside it, which is in its file only where somebody may read that.
    seal: Option<String>,
    /// The seals at the last syncs, since the log was emptied: they are written without a sync.
    seals: VecDeque<String>,
}

impl FileState {
    /// The file as it is once these changes are durable, too.
    fn with(&self, changes: &[LogChange]) -> Vec<u8> {
        let mut durable = self.durable.clone();
        persist(&mut durable, changes);
        durable
    }
}

/// Makes these changes of a file.
fn persist(file: &mut Vec<u8>, changes: &[LogChange]) {
    for change in changes {
        match change {
            LogChange::Cut(length) => {
                file.resize(usize::try_from(*length).unwrap_or(usize::MAX), 0);
            }
            LogChange::Written { at, bytes, .. } => {
                let at = usize::try_from(*at).unwrap_or(usize::MAX);
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[at..end].copy_from_slice(bytes);
            }
        }
    }
}

impl SimulatedDisk {
    /// The disk of a run on this stage.
    #[must_use]
    pub fn new(stage: Stage) -> Self {
        Self(Arc::new(Shared { stage, inner: Mutex::default() }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk as the coordinator of this generation has it.
    #[must_use]
    pub fn mounted(&self, generation: u64) -> MountedDisk {
        MountedDisk { disk: self.clone(), generation }
    }

    /// There is no room for the log, nor for checkpoints, until that many microseconds after the start.
    pub fn log_is_full_until(&self, at_us: u64) {
        let mut inner = self.inner();
        inner.log_full_until = inner.log_full_until.max(at_us);
        inner.store_full_until = inner.store_full_until.max(at_us);
    }

    /// There is no room for checkpoints until that many microseconds after the start.
    pub fn store_is_full_until(&self, at_us: u64) {
        let mut inner = self.inner();
        inner.store_full_until = inner.store_full_until.max(at_us);
    }

    /// After so many more writes the disk refuses all, until it is mended.
    pub fn fails_after(&self, writes: u32) {
        self.inner().writes_before_error = Some(writes);
    }

    /// The disk refuses nothing any more.
    pub fn is_mended(&self) {
        self.inner().writes_before_error = None;
    }

    /// Whether the disk refuses what it should not.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner().writes_before_error == Some(0)
    }

    /// Whether the disk has refused something of its log to any coordinator.
    #[must_use]
    pub fn has_ever_refused(&self) -> bool {
        self.inner().refused.is_some()
    }

    /// Whether the disk has refused something of its log to the coordinator of this generation.
    #[must_use]
    pub fn has_refused(&self, generation: u64) -> bool {
        self.inner().refused == Some(generation)
    }

    /// Writes the seals to their files, for whoever reads them there.
    ///
    /// # Errors
    ///
    /// The real disk below refuses.
    pub fn write_seals(&self) -> io::Result<()> {
        let inner = self.inner();
        let seals = inner.files.iter().filter_map(|(path, file)| Some((path, file.seal.as_ref()?)));
        seals.into_iter().try_for_each(|(path, seal)| fs::write(path.with_file_name(SEAL), seal))
    }

    /// The power is gone: a part of what was not synced is kept, in parts per million of its bytes; of what
    /// follows that, the end may be there and its beginning not. So many bytes of garbage stand behind it.
    /// The seal may be an earlier one.
    ///
    /// # Errors
    ///
    /// The real disk below refuses.
    pub fn power_cut(&self, kept: u32, garbage: u32, chance: &mut Draw) -> io::Result<()> {
        let mut inner = self.inner();
        for (path, file) in &mut inner.files {
            let pending = std::mem::take(&mut file.pending);
            let whole = file.with(&pending);
            let survived = survivors(pending, kept);
            file.durable = file.with(&survived);
            self.0.stage.survived(&survived);
            let mut content = file.durable.clone();
            if let Some(rest) = whole.strip_prefix(&content[..])
                && let 1.. = rest.len()
                && chance.one_in(2)
            {
                let lost = 1 + chance.below(u32::try_from(rest.len()).unwrap_or(u32::MAX)) as usize;
                content.resize(content.len() + lost, 0);
                content.extend(&rest[lost..]);
            }
            if !file.seals.is_empty() && chance.one_in(2) {
                let seal = chance.below(u32::try_from(file.seals.len()).unwrap_or(1)) as usize;
                file.seal = file.seals.get(seal).cloned();
            }
            let garbage = if file.is_written { garbage } else { 0 };
            content.extend((0..garbage).map(|_| chance.below(256) as u8));
            file.lock = None;
            file.seals.clear();
            fs::write(path, &content)?;
            // What stands there now is what the next one finds.
            file.durable = content;
        }
        Ok(())
    }
}

/// What of these changes is there after a power cut that keeps this part of their bytes: the first of them.
fn survivors(pending: Vec<LogChange>, kept: u32) -> Vec<LogChange> {
    let size = |change: &LogChange| match change {
        LogChange::Written { bytes, .. } => bytes.len(),
        LogChange::Cut(_) => 1,
    };
    let all: usize = pending.iter().map(size).sum();
    let mut left = all * kept as usize / 1_000_000;
    let mut survived = Vec::new();
    for change in pending {
        if left == 0 {
            break;
        }
        match change {
            LogChange::Written { at, mut bytes, by } => {
                bytes.truncate(left);
                left -= bytes.len();
                survived.push(LogChange::Written { at, bytes, by });
            }
            LogChange::Cut(length) => {
                left -= 1;
                survived.push(LogChange::Cut(length));
            }
        }
    }
    survived
}

/// The disk as one coordinator has it: it refuses everything once that is dead.
#[derive(Clone, Debug)]
pub struct MountedDisk {
    disk: SimulatedDisk,
    generation: u64,
}

fn dead() -> io::Error {
    io::Error::other("its process was killed")
}

impl LogDisk for MountedDisk {
    fn open(&self, path: &Path, options: &OpenOptions) -> io::Result<Box<dyn LogFile>> {
        if !self.disk.0.stage.lives(self.generation) {
            return Err(dead());
        }
        let file = options.open(path)?;
        self.disk.inner().files.entry(path.to_owned()).or_default();
        let (disk, generation) = (self.disk.clone(), self.generation);
        Ok(Box::new(SimulatedFile { file, path: path.to_owned(), place: 0, disk, generation }))
    }

    fn has_room(&self, _: &Path) -> io::Result<()> {
        if !self.disk.0.stage.lives(self.generation) {
            return Err(dead());
        }
        match self.disk.inner().store_full_until > self.disk.0.stage.now_us() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

/// The open file of a log.
#[derive(Debug)]
struct SimulatedFile {
    file: File,
    path: PathBuf,
    place: u64,
    disk: SimulatedDisk,
    generation: u64,
}

impl SimulatedFile {
    /// Writes all of this where the file stands.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(state) = self.disk.inner().files.get_mut(&self.path) {
            state.is_written = true;
            let (at, by) = (self.place, self.generation);
            state.pending.push(LogChange::Written { at, bytes: bytes.to_vec(), by });
        }
        self.place += bytes.len() as u64;
        Ok(())
    }

    /// Whether the disk refuses this, as it is full or broken.
    fn refusal(&self, is_write: bool) -> Option<io::Error> {
        let now = self.disk.0.stage.now_us();
        let mut inner = self.disk.inner();
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
            inner.refused = Some(self.generation);
        }
        refusal
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let many = bytes.len();
        let verdict = self.disk.0.stage.writes(self.generation, format_args!("{many} bytes"));
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
        if !self.disk.0.stage.lives(self.generation) {
            return Err(dead());
        }
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        let synced = {
            let mut inner = self.disk.inner();
            let Some(state) = inner.files.get_mut(&self.path) else { return Ok(()) };
            let synced = std::mem::take(&mut state.pending);
            persist(&mut state.durable, &synced);
            // A log has a durable seal before its first sync.
            if let Some(seal) = &state.seal
                && state.seals.back() != Some(seal)
            {
                state.seals.push_back(seal.clone());
                while state.seals.len() > SEALS {
                    state.seals.pop_front();
                }
            }
            synced
        };
        match self.disk.0.stage.synced(self.generation, &synced) {
            true => Ok(()),
            false => Err(dead()),
        }
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        let verdict =
            self.disk.0.stage.writes(self.generation, format_args!("up to byte {length}"));
        // A file is cut whole or not at all.
        if matches!(verdict, Verdict::Dead | Verdict::PartThenDie(_)) {
            return Err(dead());
        }
        if let Some(refusal) = self.refusal(false) {
            return Err(refusal);
        }
        self.file.set_len(length)?;
        if let Some(state) = self.disk.inner().files.get_mut(&self.path) {
            state.pending.push(LogChange::Cut(length));
            if length == 0 {
                state.seals.clear();
            }
        }
        Ok(())
    }

    fn put_seal(&mut self, _: &Path, text: &str) -> io::Result<()> {
        if !self.disk.0.stage.lives(self.generation) {
            return Err(dead());
        }
        if let Some(state) = self.disk.inner().files.get_mut(&self.path) {
            state.seal = Some(text.to_owned());
        }
        Ok(())
    }

    fn sync_seal(&mut self, _: &Path) -> io::Result<()> {
        // It is as durable as it is ever taken for.
        Ok(())
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        let mut inner = self.disk.inner();
        let Some(state) = inner.files.get_mut(&self.path) else { return Ok(()) };
        match state.lock {
            Some(holder) if holder != self.generation && self.disk.0.stage.lives(holder) => {
                Err(TryLockError::WouldBlock)
            }
            _ => {
                state.lock = Some(self.generation);
                Ok(())
            }
        }
    }
}
