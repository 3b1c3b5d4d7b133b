//! The store: a directory of checkpoints.

use std::{
    fs, io,
    path::{Path, PathBuf},
    thread,
};

use blake3::Hash;

use super::{
    Checkpoint, Draft, Error, HeldFull, ImageKey, Manifest, Result,
    draft::{FILES, IMAGES, MANIFEST, SEAL},
    full::Full,
    seal::draw_key,
    sound::Sound,
};
use crate::workspace::TaskName;

/// How many complete checkpoints a task keeps.
const KEPT: usize = 3;

/// A directory of checkpoints. One process uses it at a time; calls for different
/// tasks may run at the same time.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
    full: Full,
    key: ImageKey,
    sound: Sound,
}

/// A checkpoint that cannot be used.
#[derive(Debug)]
pub struct Damaged {
    /// The checkpoint's number.
    pub sequence: u64,
    /// What is wrong with it.
    pub error: Error,
}

/// The newest checkpoint that can be used, and the newer ones that cannot.
#[derive(Debug, Default)]
pub struct Latest {
    /// The newest undamaged one.
    pub checkpoint: Option<Checkpoint>,
    /// Newer ones that are damaged, newest first.
    pub damaged: Vec<Damaged>,
}

impl Store {
    /// The store in the directory `root`, which is made if need be. Its checkpoints are sealed by a key
    /// that nobody else has, until [`Store::with_key`].
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        fs::create_dir_all(&root).map_err(Error::file("create", &root))?;
        let key = draw_key().map_err(Error::file("draw a key for", &root))?;
        Ok(Self { root, full: Full::default(), key, sound: Sound::default() })
    }

    /// The same store, whose checkpoints are sealed by this key, here and wherever they come from.
    #[must_use]
    pub fn with_key(&self, key: ImageKey) -> Self {
        Self { key, ..self.clone() }
    }

    pub(super) fn key(&self) -> &ImageKey {
        &self.key
    }

    /// Leaves no room for new checkpoints until what this returns is dropped, as a full disk would; those
    /// that are there stay.
    pub fn fill(&self) -> HeldFull {
        self.full.hold()
    }

    fn task(&self, task: &TaskName) -> PathBuf {
        self.root.join(task.path())
    }

    fn place(&self, task: &TaskName, sequence: u64) -> PathBuf {
        self.task(task).join(format!("{sequence:08}"))
    }

    /// Begins the next checkpoint of a task.
    ///
    /// # Errors
    /// Where its directory cannot be made.
    pub fn begin(&self, task: &TaskName) -> Result<Draft> {
        let sequence = self.sequences(task)?.last().map_or(1, |last| last + 1);
        self.draft(task, sequence)
    }

    /// Makes room for a checkpoint that comes from elsewhere and keeps its number.
    pub(crate) fn begin_as(&self, task: &TaskName, sequence: u64) -> Result<Draft> {
        self.remove(&self.place(task, sequence))?;
        self.draft(task, sequence)
    }

    fn draft(&self, task: &TaskName, sequence: u64) -> Result<Draft> {
        let place = self.place(task, sequence);
        let complete = self.complete(task)?.into_iter().rev();
        let earlier = complete.map(|number| self.place(task, number)).collect();
        let shared = (self.full.is_held(), self.key.clone(), self.sound.clone());
        Draft::create(place, task.clone(), sequence, shared, earlier)
    }

    /// Removes all complete checkpoints of a task but the three newest.
    ///
    /// # Errors
    /// Where one cannot be removed.
    pub fn prune(&self, task: &TaskName) -> Result<()> {
        self.surplus(task)?.iter().try_for_each(|place| self.remove(place))
    }

    /// Does [`Store::prune`] aside, which takes long where there is much to remove. What can't be removed stays
    /// until the next time.
    ///
    /// # Errors
    /// Where the task's directory cannot be listed, or there is no thread to be had.
    pub(crate) fn prune_aside(&self, task: &TaskName) -> Result<()> {
        if self.surplus(task)?.is_empty() {
            return Ok(());
        }
        let (store, name) = (self.clone(), task.clone());
        let prune = move || {
            if let Err(error) = store.prune(&name) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, task = %name, "older checkpoints can't be removed");
            }
        };
        let thread = thread::Builder::new().name("prune".to_owned()).spawn(prune);
        thread.map(drop).map_err(Error::file("remove old checkpoints of", self.task(task)))
    }

    /// The directories of all complete checkpoints of a task but the three newest.
    fn surplus(&self, task: &TaskName) -> Result<Vec<PathBuf>> {
        let complete = self.complete(task)?;
        let surplus = complete.len().saturating_sub(KEPT);
        Ok(complete.into_iter().take(surplus).map(|number| self.place(task, number)).collect())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.sound.forget(path);
        match fs::remove_dir_all(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::file("remove", path)(e)),
            _ => Ok(()),
        }
    }

    /// The newest checkpoint whose checksums are all right, having read all of it.
    ///
    /// # Errors
    /// Where the task's directory cannot be listed; damage is no error.
    pub fn latest_valid(&self, task: &TaskName) -> Result<Latest> {
        self.latest(task, |checkpoint| checkpoint.verify())
    }

    /// The newest checkpoint that `accept` accepts.
    pub(crate) fn latest(
        &self,
        task: &TaskName,
        mut accept: impl FnMut(&Checkpoint) -> Result<()>,
    ) -> Result<Latest> {
        let mut latest = Latest::default();
        for sequence in self.complete(task)?.into_iter().rev() {
            let found = self.load(task, sequence).and_then(|checkpoint| {
                accept(&checkpoint)?;
                Ok(checkpoint)
            });
            match found {
                Ok(checkpoint) => {
                    latest.checkpoint = Some(checkpoint);
                    break;
                }
                Err(error) => latest.damaged.push(Damaged { sequence, error }),
            }
        }
        Ok(latest)
    }

    /// The numbers of a task's complete checkpoints, oldest first.
    ///
    /// # Errors
    /// Where the task's directory cannot be listed.
    pub fn complete(&self, task: &TaskName) -> Result<Vec<u64>> {
        let mut sequences = self.sequences(task)?;
        sequences.retain(|sequence| self.place(task, *sequence).join(MANIFEST).exists());
        Ok(sequences)
    }

    /// How many bytes there are of checkpoints of a task that are not complete: what has been written of the one that
    /// is just being taken.
    #[must_use]
    pub fn unfinished_bytes(&self, task: &TaskName) -> u64 {
        let sequences = self.sequences(task).unwrap_or_default().into_iter();
        let places = sequences.map(|sequence| self.place(task, sequence));
        let unfinished = places.filter(|place| !place.join(MANIFEST).exists());
        let folders = unfinished.flat_map(|place| [place.join(IMAGES), place.join(FILES)]);
        let files = folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    }

    /// One complete checkpoint, its files unread.
    ///
    /// # Errors
    /// Where there is none with that number or its manifest is damaged.
    pub fn load(&self, task: &TaskName, sequence: u64) -> Result<Checkpoint> {
        let directory = self.place(task, sequence);
        let path = directory.join(MANIFEST);
        let json = fs::read(&path).map_err(Error::file("read", &path))?;
        let sealed = directory.join(SEAL);
        let seal = fs::read_to_string(&sealed).map_err(Error::file("read", &sealed))?;
        let seal = Hash::from_hex(seal.trim()).map_err(|_| Error::Seal { path: path.clone() })?;
        if !self.key.fits(&json, seal.as_bytes()) {
            return Err(Error::Seal { path });
        }
        let manifest = Manifest::parse(&json, &path)?;
        if manifest.task != *task || manifest.sequence != sequence {
            return Err(Error::Damaged {
                path,
                what: format!("is of {}, number {}", manifest.task, manifest.sequence),
            });
        }
        Ok(Checkpoint::new(directory, manifest, (json, seal), self.sound.clone()))
    }

    /// Removes all checkpoints of a task, which is done or will never be continued here.
    ///
    /// # Errors
    /// Where something cannot be removed.
    pub fn remove_task(&self, task: &TaskName) -> Result<()> {
        self.remove(&self.task(task))?;
        // The run's directory goes with its last task.
        if let Some(run) = self.task(task).parent() {
            let _ = fs::remove_dir(run);
        }
        Ok(())
    }

    /// Removes the checkpoints of a task whose number is above `newest`.
    ///
    /// # Errors
    /// Where one cannot be removed.
    pub fn remove_newer(&self, task: &TaskName, newest: u64) -> Result<()> {
        let mut newer = self.sequences(task)?.into_iter().filter(|sequence| *sequence > newest);
        newer.try_for_each(|sequence| self.remove(&self.place(task, sequence)))
    }

    /// Removes all checkpoints of all runs, half-made ones too. Only while nobody uses them.
    ///
    /// Returns the directories of the runs.
    ///
    /// # Errors
    /// Where the store cannot be listed or something cannot be removed.
    pub fn remove_all(&self) -> Result<Vec<PathBuf>> {
        let runs = directories(&self.root)?;
        runs.iter().try_for_each(|run| self.remove(run))?;
        Ok(runs)
    }

    fn sequences(&self, task: &TaskName) -> Result<Vec<u64>> {
        let mut sequences: Vec<u64> = directories(&self.task(task))?
            .iter()
            .filter_map(|path| path.file_name()?.to_str()?.parse().ok())
            .collect();
        sequences.sort_unstable();
        Ok(sequences)
    }
}

fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::file("list", path)(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::file("list", path))?;
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
    use crate::store::Progress;
    use std::collections::BTreeMap;

    fn name() -> TaskName {
        TaskName::new("run", "t1").unwrap()
    }

    fn take(store: &Store, content: &str) -> Checkpoint {
        let draft = store.begin(&name()).unwrap();
        fs::write(draft.images().join("pages-1.img"), content).unwrap();
        fs::write(draft.images().join("core-1.img"), "core").unwrap();
        let checkpoint = draft
            .commit(
                String::new(),
                Progress::default(),
                (vec![], vec![]),
                "4.1.1".to_owned(),
                &BTreeMap::new(),
            )
            .unwrap();
        store.prune(&name()).unwrap();
        checkpoint
    }

    #[test]
    fn what_is_pruned_aside_is_gone_soon() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        for n in 1..=4 {
            std::mem::forget(store.begin(&name()).unwrap());
            fs::write(store.place(&name(), n).join(MANIFEST), "{}").unwrap();
        }
        store.prune_aside(&name()).unwrap();
        let began = std::time::Instant::now();
        while store.complete(&name()).unwrap() != [2, 3, 4] {
            assert!(began.elapsed().as_secs() < 10, "{:?}", store.complete(&name()));
            thread::yield_now();
        }
    }

    #[test]
    fn the_three_newest_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert!(store.latest_valid(&name()).unwrap().checkpoint.is_none());
        for n in 1..=5 {
            assert_eq!(take(&store, "x").manifest().sequence, n);
        }
        assert_eq!(store.complete(&name()).unwrap(), [3, 4, 5]);
        store.remove_task(&name()).unwrap();
        assert!(!dir.path().join("run").exists());
    }

    #[test]
    fn a_damaged_one_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        for content in ["one", "two", "three"] {
            take(&store, content);
        }
        let at = |n: u64, file: &str| store.place(&name(), n).join(file);
        fs::write(at(3, "images/pages-1.img"), "thrEe").unwrap();
        fs::write(at(2, MANIFEST), "{").unwrap();
        let latest = store.latest_valid(&name()).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest().sequence, 1);
        let damaged: Vec<u64> = latest.damaged.iter().map(|d| d.sequence).collect();
        assert_eq!(damaged, [3, 2]);
        assert!(matches!(latest.damaged[0].error, Error::Damaged { .. }));
        assert!(matches!(latest.damaged[1].error, Error::Seal { .. }));
    }

    #[test]
    fn one_that_was_forged_with_all_its_checksums_right_gives_way_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        take(&store, "one");
        let forged = take(&store, "two");
        let at = |file: &str| forged.directory().join(file);
        fs::write(at("images/core-1.img"), "evil").unwrap();
        let mut manifest = forged.manifest().clone();
        let (size, blake3) = super::super::checksum::digest(&at("images/core-1.img")).unwrap();
        let entry = manifest.images.iter_mut().find(|entry| entry.name == "core-1.img").unwrap();
        (entry.size, entry.blake3) = (size, blake3);
        fs::write(at(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
        // Sealed by somebody who has another key.
        let seal = ImageKey::new(&[1; 32]).unwrap().seal(&fs::read(at(MANIFEST)).unwrap());
        fs::write(at(SEAL), seal.to_hex().as_str()).unwrap();
        let latest = store.latest_valid(&name()).unwrap();
        assert_eq!(latest.checkpoint.unwrap().manifest().sequence, 1);
        assert!(matches!(latest.damaged[0].error, Error::Seal { .. }));
    }

    #[test]
    fn drafts_vanish_unless_committed_and_what_a_crash_leaves_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        take(&store, "x");
        let draft = store.begin(&name()).unwrap();
        let place = draft.directory().to_owned();
        drop(draft);
        assert!(!place.exists());
        // A crash runs no destructors.
        std::mem::forget(store.begin(&name()).unwrap());
        assert!(place.exists());
        assert_eq!(store.complete(&name()).unwrap(), [1]);
        assert_eq!(store.remove_all().unwrap(), [dir.path().join("run")]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
