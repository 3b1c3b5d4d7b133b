//! The disk of a simulated worker, with the checkpoints of its tasks: bytes that may be damaged, and that may have no
//! room.
//!
//! A checkpoint is the bytes that a real worker would send: a sealed manifest, and one byte for each of CRIU's files.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use dormouse_identity::{CheckpointHead, ImageKey};
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};
use dormouse_worker::{
    store::{
        CheckpointFile, CheckpointManifest, CheckpointShelf, ExpectedCheckpoint, SavedProgress,
        next_number, prune_task,
    },
    workspace::TaskName,
};

use crate::{
    witness::Image,
    worker::{chance::Chance, shared::Shared},
};

/// Names of files that CRIU writes for every task.
const FILES: [&str; 7] = [
    "inventory.img",
    "pstree.img",
    "files.img",
    "core-1.img",
    "mm-1.img",
    "pagemap-1.img",
    "pages-1.img",
];

/// The disk of a worker, with the checkpoints of its tasks.
#[derive(Debug)]
pub(in crate::worker) struct CheckpointDisk {
    shared: Arc<Shared>,
    /// The key of the run, with which checkpoints are sealed.
    key: [u8; 32],
    /// The number of faults that leave no room for checkpoints.
    pub(in crate::worker) full: Arc<AtomicU64>,
    /// The bytes of each checkpoint, by task and number.
    images: Mutex<BTreeMap<TaskName, BTreeMap<u64, Vec<u8>>>>,
    /// The chance of damage, and its rate.
    rot: Mutex<(Chance, Ppm)>,
}

/// The witness's record of a checkpoint; `None` if its numbers are no task's.
pub(in crate::worker) fn image_of(manifest: &CheckpointManifest) -> Option<Image> {
    Some(Image {
        task: TaskId::new(manifest.task.task().parse().ok()?),
        attempt: Attempt::new(manifest.progress.attempt),
        number: CheckpointSeq::new(u32::try_from(manifest.sequence).ok()?),
        done: Ppm::new(manifest.progress.progress_ppm),
    })
}

/// The bytes of a checkpoint, sealed with the key that the host received.
fn encode(manifest: &CheckpointManifest, key: &[u8]) -> Vec<u8> {
    let (Ok(json), Some(key)) = (serde_json::to_vec(manifest), ImageKey::new(key)) else {
        return Vec::new();
    };
    let mut bytes = CheckpointHead::sealed(json, &key).to_bytes();
    bytes.extend([0; FILES.len()]);
    bytes
}

/// The checkpoint in these bytes, if they are not damaged and sealed with the key.
fn decode(mut bytes: &[u8], key: &[u8]) -> Result<CheckpointManifest, String> {
    let head = CheckpointHead::read(&mut bytes).map_err(|e| e.to_string())?;
    if !ImageKey::new(key).is_some_and(|key| head.is_of(&key)) || bytes != [0; FILES.len()] {
        return Err("it is damaged".to_owned());
    }
    CheckpointManifest::parse(&head.manifest, Path::new("manifest.json")).map_err(|e| e.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CheckpointDisk {
    pub(in crate::worker) fn new(shared: &Arc<Shared>, key: &[u8], rot: (Chance, Ppm)) -> Self {
        Self {
            shared: Arc::clone(shared),
            key: key.try_into().unwrap_or_default(),
            full: Arc::default(),
            images: Mutex::default(),
            rot: Mutex::new(rot),
        }
    }

    /// Changes the checkpoints of a task, and counts them.
    fn change<T>(
        &self,
        task: &TaskName,
        change: impl FnOnce(&mut BTreeMap<u64, Vec<u8>>) -> T,
    ) -> T {
        let mut images = lock(&self.images);
        let of_task = images.entry(task.clone()).or_default();
        let changed = change(of_task);
        if let Ok(task) = task.task().parse() {
            self.shared.has_images(TaskId::new(task), of_task.len());
        }
        changed
    }

    /// Removes the checkpoints of a task.
    pub(in crate::worker) fn remove_task(&self, task: &TaskName) {
        self.change(task, BTreeMap::clear);
    }

    /// Removes the checkpoints of all tasks.
    pub(in crate::worker) fn clear(&self) {
        let tasks: Vec<TaskName> = lock(&self.images).keys().cloned().collect();
        tasks.iter().for_each(|task| self.remove_task(task));
    }

    /// Stores a new checkpoint of a task; returns its manifest and its bytes.
    ///
    /// # Errors
    /// The disk is full.
    pub(in crate::worker) fn keep(
        &self,
        task: &TaskName,
        program: &str,
        progress: SavedProgress,
    ) -> Result<(CheckpointManifest, Vec<u8>), String> {
        let number = next_number(self, task)?;
        let written = self.write((task, number), program, progress)?;
        prune_task(self, task)?;
        Ok(written)
    }

    /// Writes a checkpoint under this number; returns its manifest and its bytes, which may be damaged on the disk.
    ///
    /// # Errors
    /// The disk is full.
    fn write(
        &self,
        (task, number): (&TaskName, u64),
        program: &str,
        progress: SavedProgress,
    ) -> Result<(CheckpointManifest, Vec<u8>), String> {
        if self.full.load(Ordering::Relaxed) > 0 {
            return Err("there is no room for checkpoints".to_owned());
        }
        let file =
            |name: &str| CheckpointFile { name: name.to_owned(), size: 1, blake3: String::new() };
        let manifest = CheckpointManifest {
            format: CheckpointManifest::FORMAT,
            task: task.clone(),
            sequence: number,
            program: program.to_owned(),
            progress,
            taken_unix_ms: 0,
            criu: String::new(),
            kernel: String::new(),
            open_files: Vec::new(),
            files: Vec::new(),
            images: FILES.into_iter().map(file).collect(),
            keepsakes: None,
            picture: None,
        };
        let bytes = encode(&manifest, &self.key);
        let mut stored = bytes.clone();
        let (chance, rate) = &mut *lock(&self.rot);
        if chance.happens(*rate) {
            tracing::debug!(%task, number, "a checkpoint here is damaged");
            stored.pop();
        }
        self.change(task, |of_task| of_task.insert(number, stored));
        Ok((manifest, bytes))
    }

    /// Writes a checkpoint that came over the network.
    ///
    /// # Errors
    /// The bytes are damaged, not sealed with the run's key, or not the checkpoint that is expected.
    pub(in crate::worker) fn receive(
        &self,
        expected: &ExpectedCheckpoint,
        bytes: Vec<u8>,
    ) -> Result<(), String> {
        let manifest = decode(&bytes, &self.key)?;
        expected.check_manifest(&manifest).map_err(|error| error.to_string())?;
        self.change(&expected.task, |of_task| of_task.insert(expected.sequence, bytes));
        Ok(())
    }
}

impl CheckpointShelf for CheckpointDisk {
    type Checkpoint = CheckpointManifest;
    type Error = String;

    fn all_numbers(&self, task: &TaskName) -> Result<Vec<u64>, String> {
        let images = lock(&self.images);
        Ok(images.get(task).map_or_else(Vec::new, |it| it.keys().copied().collect()))
    }

    fn complete_numbers(&self, task: &TaskName) -> Result<Vec<u64>, String> {
        self.all_numbers(task)
    }

    fn load_checkpoint(&self, task: &TaskName, number: u64) -> Result<CheckpointManifest, String> {
        let images = lock(&self.images);
        let bytes = images.get(task).and_then(|of_task| of_task.get(&number));
        decode(bytes.ok_or("it is not there")?, &self.key)
    }

    fn attempt_of(checkpoint: &CheckpointManifest) -> u32 {
        checkpoint.progress.attempt
    }

    fn verify_checkpoint(&self, _: &CheckpointManifest) -> Result<(), String> {
        // All of its bytes have been looked at.
        Ok(())
    }

    fn remove_checkpoint(&self, task: &TaskName, number: u64) -> Result<(), String> {
        self.change(task, |of_task| of_task.remove(&number));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_back_and_no_other_bytes_are_one() {
        let manifest = CheckpointManifest {
            format: CheckpointManifest::FORMAT,
            task: TaskName::new("r", "7").expect("a name"),
            sequence: 3,
            program: "vector".to_owned(),
            progress: SavedProgress { attempt: 2, progress_ppm: 123_456, cpu_ns: 5 },
            taken_unix_ms: 0,
            criu: String::new(),
            kernel: String::new(),
            open_files: Vec::new(),
            files: Vec::new(),
            images: Vec::new(),
            keepsakes: None,
            picture: None,
        };
        let bytes = encode(&manifest, &[1; 32]);
        assert_eq!(decode(&bytes, &[1; 32]).as_ref(), Ok(&manifest));
        let image = image_of(&manifest).expect("a task's");
        assert_eq!((image.task.get(), image.attempt.get(), image.number.get()), (7, 2, 3));
        assert!(decode(&bytes, &[2; 32]).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(decode(&damaged, &[1; 32]).is_err(), "byte {at}");
            assert!(decode(&bytes[..at], &[1; 32]).is_err(), "{at} bytes");
        }
    }
}
