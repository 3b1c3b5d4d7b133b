//! The store: a directory of checkpoints.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use blake3::Hash;
use dormouse_folders::remove_tree;

use super::{
    CheckpointDraft, CheckpointManifest, HeldFull, ImageKey, Result, StoreError, StoredCheckpoint,
    draft::{FILES, IMAGES, MANIFEST, SEAL},
    full::FullStore,
    seal::draw_key,
    shelf::{self, CheckpointShelf},
    sound::SoundFiles,
};
use crate::workspace::TaskName;

/// Directory of checkpoints. One process uses it at a time; calls for different tasks may run at the same time.
#[derive(Debug, Clone)]
pub struct LocalCheckpoints {
    root: PathBuf,
    full: FullStore,
    key: ImageKey,
    sound: SoundFiles,
}

/// Checkpoint of a task that can't be used, as it is damaged.
#[derive(Debug)]
pub struct DamagedCheckpoint {
    /// Number of the checkpoint.
    pub sequence: u64,
    /// Fault of the checkpoint.
    pub error: StoreError,
}

/// Newest usable checkpoint of a task, and the newer ones that aren't usable.
#[derive(Debug, Default)]
pub struct LatestCheckpoint {
    /// Newest undamaged checkpoint of the task; `None`: there is none.
    pub checkpoint: Option<StoredCheckpoint>,
    /// Newer, damaged checkpoints, the newest first.
    pub damaged: Vec<DamagedCheckpoint>,
}

impl LocalCheckpoints {
    /// Opens the store in the directory `root`, and makes the directory if it doesn't exist. Seals checkpoints by a
    /// key of its own, until [`LocalCheckpoints::with_key`] gives another.
    ///
    /// # Errors
    ///
    /// The directory can't be made.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        fs::create_dir_all(&root).map_err(StoreError::file_error("create", &root))?;
        let key = draw_key().map_err(StoreError::file_error("draw a key for", &root))?;
        Ok(Self { root, full: FullStore::default(), key, sound: SoundFiles::default() })
    }

    /// Returns the same store with the key `key`, by which all its checkpoints are sealed, those from other workers too.
    #[must_use]
    pub fn with_key(&self, key: ImageKey) -> Self {
        Self { key, ..self.clone() }
    }

    pub(super) fn key(&self) -> &ImageKey {
        &self.key
    }

    /// Makes the store behave like a full disk until the returned value is dropped: new checkpoints have no room, and
    /// older ones stay.
    pub fn fill_disk(&self) -> HeldFull {
        self.full.hold_full()
    }

    fn task_directory(&self, task: &TaskName) -> PathBuf {
        self.root.join(task.relative_path())
    }

    fn checkpoint_place(&self, task: &TaskName, sequence: u64) -> PathBuf {
        self.task_directory(task).join(format!("{sequence:08}"))
    }

    /// Begins the next checkpoint of a task.
    ///
    /// # Errors
    ///
    /// The checkpoint's directory can't be made.
    pub fn begin_checkpoint(&self, task: &TaskName) -> Result<CheckpointDraft> {
        let sequence = shelf::next_number(self, task)?;
        self.begin_draft(task, sequence)
    }

    /// Begins a checkpoint that comes from another worker and keeps its number.
    pub(crate) fn begin_as(&self, task: &TaskName, sequence: u64) -> Result<CheckpointDraft> {
        self.remove(&self.checkpoint_place(task, sequence))?;
        self.begin_draft(task, sequence)
    }

    fn begin_draft(&self, task: &TaskName, sequence: u64) -> Result<CheckpointDraft> {
        let place = self.checkpoint_place(task, sequence);
        let complete = self.complete_numbers(task)?.into_iter().rev();
        let earlier = complete.map(|number| self.checkpoint_place(task, number)).collect();
        let shared = (self.full.is_held(), self.key.clone(), self.sound.clone());
        CheckpointDraft::create_draft(place, task.clone(), sequence, shared, earlier)
    }

    /// Removes all complete checkpoints of a task except the three newest.
    ///
    /// # Errors
    ///
    /// A checkpoint can't be removed.
    pub fn prune_task(&self, task: &TaskName) -> Result<()> {
        shelf::prune_task(self, task)
    }

    /// Does [`LocalCheckpoints::prune_task`] in a thread of its own, as it takes long if there is much to remove. Checkpoints that
    /// can't be removed stay until the next call.
    ///
    /// # Errors
    ///
    /// The directory of the task can't be listed, or no thread can be started.
    pub(crate) fn prune_aside(&self, task: &TaskName) -> Result<()> {
        if shelf::surplus_numbers(self, task)?.is_empty() {
            return Ok(());
        }
        let (store, name) = (self.clone(), task.clone());
        let prune = move || {
            if let Err(error) = store.prune_task(&name) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, task = %name, "older checkpoints can't be removed");
            }
        };
        let thread = thread::Builder::new().name("prune".to_owned()).spawn(prune);
        thread
            .map(drop)
            .map_err(StoreError::file_error("remove old checkpoints of", self.task_directory(task)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.sound.forget_directory(path);
        remove_tree(path).map_err(StoreError::file_error("remove", path))
    }

    /// Returns the newest checkpoint found whole: a checkpoint is whole if all its files are read and have their checksums.
    ///
    /// # Errors
    ///
    /// The directory of the task can't be listed. Damage is not an error.
    pub fn latest_undamaged(&self, task: &TaskName) -> Result<LatestCheckpoint> {
        let verify = |checkpoint: &StoredCheckpoint| checkpoint.verify_files();
        let (checkpoint, refused) = shelf::newest_accepted(self, task, verify)?;
        let damaged = |(sequence, error)| DamagedCheckpoint { sequence, error };
        Ok(LatestCheckpoint { checkpoint, damaged: refused.into_iter().map(damaged).collect() })
    }

    /// Returns the numbers of a task's complete checkpoints, the oldest first.
    ///
    /// # Errors
    ///
    /// The directory of the task can't be listed.
    pub fn complete_numbers(&self, task: &TaskName) -> Result<Vec<u64>> {
        let mut sequences = self.list_sequences(task)?;
        sequences.retain(|sequence| self.checkpoint_place(task, *sequence).join(MANIFEST).exists());
        Ok(sequences)
    }

    /// Returns the size in bytes of a task's incomplete checkpoints: of the part already written of a checkpoint that
    /// is being taken.
    #[must_use]
    pub fn unfinished_bytes(&self, task: &TaskName) -> u64 {
        let sequences = self.list_sequences(task).unwrap_or_default().into_iter();
        let places = sequences.map(|sequence| self.checkpoint_place(task, sequence));
        let unfinished = places.filter(|place| !place.join(MANIFEST).exists());
        let folders = unfinished.flat_map(|place| [place.join(IMAGES), place.join(FILES)]);
        let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// Returns one complete checkpoint, without reading its files.
    ///
    /// # Errors
    ///
    /// No checkpoint has that number, or its manifest is damaged.
    pub fn load_checkpoint(&self, task: &TaskName, sequence: u64) -> Result<StoredCheckpoint> {
        let directory = self.checkpoint_place(task, sequence);
        let path = directory.join(MANIFEST);
        let json = fs::read(&path).map_err(StoreError::file_error("read", &path))?;
        let sealed = directory.join(SEAL);
        let seal = fs::read_to_string(&sealed).map_err(StoreError::file_error("read", &sealed))?;
        let seal =
            Hash::from_hex(seal.trim()).map_err(|_| StoreError::Seal { path: path.clone() })?;
        if !self.key.fits(&json, seal.as_bytes()) {
            return Err(StoreError::Seal { path });
        }
        let manifest = CheckpointManifest::parse(&json, &path)?;
        if manifest.task != *task || manifest.sequence != sequence {
            return Err(StoreError::Damaged {
                path,
                what: format!("is of {}, number {}", manifest.task, manifest.sequence),
            });
        }
        Ok(StoredCheckpoint::new(directory, manifest, (json, seal), self.sound.clone()))
    }

    /// Removes all checkpoints of a task that is done, or will never continue on this worker.
    ///
    /// # Errors
    ///
    /// A file can't be removed.
    pub fn remove_task(&self, task: &TaskName) -> Result<()> {
        self.remove(&self.task_directory(task))?;
        // The run's directory goes with its last task.
        if let Some(run) = self.task_directory(task).parent() {
            let _ = fs::remove_dir(run);
        }
        Ok(())
    }

    /// Removes all checkpoints of all runs, incomplete ones too. No checkpoint may be in use.
    ///
    /// Returns the directories of the runs.
    ///
    /// # Errors
    ///
    /// The store can't be listed, or a file can't be removed.
    pub fn remove_all(&self) -> Result<Vec<PathBuf>> {
        let runs = list_directories(&self.root)?;
        runs.iter().try_for_each(|run| self.remove(run))?;
        Ok(runs)
    }

    fn list_sequences(&self, task: &TaskName) -> Result<Vec<u64>> {
        let mut sequences: Vec<u64> = list_directories(&self.task_directory(task))?
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .collect();
        sequences.sort_unstable();
        Ok(sequences)
    }
}

impl CheckpointShelf for LocalCheckpoints {
    type Checkpoint = StoredCheckpoint;
    type Error = StoreError;

    fn all_numbers(&self, task: &TaskName) -> Result<Vec<u64>> {
        self.list_sequences(task)
    }

    fn complete_numbers(&self, task: &TaskName) -> Result<Vec<u64>> {
        Self::complete_numbers(self, task)
    }

    fn load_checkpoint(&self, task: &TaskName, number: u64) -> Result<StoredCheckpoint> {
        Self::load_checkpoint(self, task, number)
    }

    fn attempt_of(checkpoint: &StoredCheckpoint) -> u32 {
        checkpoint.manifest().progress.attempt
    }

    fn verify_checkpoint(&self, checkpoint: &StoredCheckpoint) -> Result<()> {
        checkpoint.verify_files()
    }

    fn remove_checkpoint(&self, task: &TaskName, number: u64) -> Result<()> {
        self.remove(&self.checkpoint_place(task, number))
    }
}

fn list_directories(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::file_error("list", path)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::file_error("list", path))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::store::SavedProgress;
    use std::collections::BTreeMap;

    fn name() -> TaskName {
        TaskName::new("run", "t1").unwrap()
    }

    fn take(store: &LocalCheckpoints, content: &str) -> StoredCheckpoint {
        let draft = store.begin_checkpoint(&name()).unwrap();
        fs::write(draft.images_directory().join("pages-1.img"), content).unwrap();
        fs::write(draft.images_directory().join("core-1.img"), "core").unwrap();
        let checkpoint = draft
            .commit_checkpoint(
                String::new(),
                SavedProgress::default(),
                (vec![], vec![]),
                "4.1.1".to_owned(),
                &BTreeMap::new(),
            )
            .unwrap();
        store.prune_task(&name()).unwrap();
        checkpoint
    }

    #[test]
    fn what_is_pruned_aside_is_gone_soon() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalCheckpoints::open(dir.path()).unwrap();
        for n in 1..=4 {
            std::mem::forget(store.begin_checkpoint(&name()).unwrap());
            fs::write(store.checkpoint_place(&name(), n).join(MANIFEST), "{}").unwrap();
        }
        store.prune_aside(&name()).unwrap();
        let began = std::time::Instant::now();
        while store.complete_numbers(&name()).unwrap() != [2, 3, 4] {
            assert!(began.elapsed().as_secs() < 10, "{:?}", store.complete_numbers(&name()));
            thread::yield_now();
        }
    }

    #[test]
    fn the_three_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalCheckpoints::open(dir.path()).unwrap();
        assert!(store.latest_undamaged(&name()).unwrap().checkpoint.is_none());
        for n in 1..=5 {
            assert_eq!(take(&store, "x").manifest().sequence, n);
        }
        assert_eq!(store.complete_numbers(&name()).unwrap(), [3, 4, 5]);
        store.remove_task(&name()).unwrap();
        assert!(!dir.path().join("run").exists());
    }

    #[test]
    fn a_damaged_one_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalCheckpoints::open(dir.path()).unwrap();
        for content in ["one", "two", "three"] {
            take(&store, content);
        }
        let at = |n: u64, file: &str| store.checkpoint_place(&name(), n).join(file);
        fs::write(at(3, "images/pages-1.img"), "thrEe").unwrap();
        fs::write(at(2, MANIFEST), "{").unwrap();
        let latest = store.latest_undamaged(&name()).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest().sequence, 1);
        let damaged: Vec<u64> = latest.damaged.iter().map(|d| d.sequence).collect();
        assert_eq!(damaged, [3, 2]);
        assert!(matches!(latest.damaged[0].error, StoreError::Damaged { .. }));
        assert!(matches!(latest.damaged[1].error, StoreError::Seal { .. }));
    }

    #[test]
    fn one_that_was_forged_with_all_its_checksums_right_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalCheckpoints::open(dir.path()).unwrap();
        take(&store, "one");
        let forged = take(&store, "two");
        let at = |file: &str| forged.directory().join(file);
        fs::write(at("images/core-1.img"), "evil").unwrap();
        let mut manifest = forged.manifest().clone();
        let (size, blake3) = super::super::checksum::digest_file(&at("images/core-1.img")).unwrap();
        let entry = manifest.images.iter_mut().find(|entry| entry.name == "core-1.img").unwrap();
        (entry.size, entry.blake3) = (size, blake3);
        fs::write(at(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        // Sealed by somebody who has another key.
        let seal = ImageKey::new(&[1; 32]).unwrap().seal(&fs::read(at(MANIFEST)).unwrap());
        fs::write(at(SEAL), seal.to_hex().as_str()).unwrap();
        let latest = store.latest_undamaged(&name()).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest().sequence, 1);
        assert!(matches!(latest.damaged[0].error, StoreError::Seal { .. }));
    }

    #[test]
    fn drafts_vanish_unless_committed_and_what_a_crash_leaves_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalCheckpoints::open(dir.path()).unwrap();
        take(&store, "x");
        let draft = store.begin_checkpoint(&name()).unwrap();
        let place = draft.directory().to_owned();
        drop(draft);
        assert!(!place.exists());
        // A crash runs no destructors.
        std::mem::forget(store.begin_checkpoint(&name()).unwrap());
        assert!(place.exists());
        assert_eq!(store.complete_numbers(&name()).unwrap(), [1]);
        assert_eq!(store.remove_all().unwrap(), [dir.path().join("run")]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
