//! A worker's own store of checkpoints, and transfers to and from the coordinator's store.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_proto::v1::{CheckpointChunk, CheckpointRef, Kept, Welcome};
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};
use dormouse_worker::agent::in_process::{
    FetchError, LaunchPass, StuckTransfer, compare_stored, fetch_until_answered,
    send_until_answered,
};
use tokio::time::timeout;

use super::{
    chance::Chance,
    image::{decode, encode},
    line::Line,
    shared::Shared,
    uplink::Uplink,
};
use crate::witness::Image;

/// Number of checkpoints kept of each task.
const KEPT: usize = 3;
/// Time for which a transfer may make no progress.
const STILL: Duration = Duration::from_secs(60);
/// Bytes in one chunk of a transfer, few enough that an image has several chunks.
const CHUNK: usize = 256;

/// The store of checkpoints of a worker's tasks.
#[derive(Debug)]
pub(super) struct Images<U> {
    line: Line<U>,
    run: String,
    key: [u8; 32],
    store: Mutex<Store>,
}

#[derive(Debug)]
struct Store {
    /// The bytes of each checkpoint, by task and number.
    images: BTreeMap<TaskId, BTreeMap<u32, Vec<u8>>>,
    /// The newest attempt at each task on this worker; the task's directory belongs to it.
    places: BTreeMap<TaskId, Attempt>,
    full: bool,
    chance: Chance,
    rot: Ppm,
}

impl<U: Uplink> Images<U> {
    pub(super) fn new(line: &Line<U>, welcome: &Welcome, chance: Chance, rot: Ppm) -> Self {
        let store =
            Store { images: BTreeMap::new(), places: BTreeMap::new(), full: false, chance, rot };
        Self {
            line: line.clone(),
            run: welcome.run.clone(),
            key: welcome.image_key[..].try_into().unwrap_or_default(),
            store: Mutex::new(store),
        }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.line.shared
    }

    /// Sets whether the store is full.
    pub(super) fn fill(&self, full: bool) {
        self.store().full = full;
    }

    /// Gives the task's directory to this attempt.
    pub(super) fn claim(&self, (task, attempt): (TaskId, Attempt)) {
        self.store().places.insert(task, attempt);
    }

    /// Ends an attempt: its checkpoints are removed unless `keeps` says that the next attempt needs them.
    pub(super) fn release(&self, (task, attempt): (TaskId, Attempt), keeps: bool) {
        let mut store = self.store();
        if store.places.get(&task) != Some(&attempt) {
            return;
        }
        store.places.remove(&task);
        if !keeps {
            store.images.remove(&task);
            self.shared().has_images(task, 0);
        }
    }

    /// Removes the checkpoints of a task, as the coordinator does not want the task to continue from them.
    pub(super) fn forget(&self, task: TaskId) {
        if self.store().images.remove(&task).is_some() {
            self.shared().has_images(task, 0);
        }
    }

    pub(super) fn clear(&self) {
        let mut store = self.store();
        for task in std::mem::take(&mut store.images).into_keys() {
            self.shared().has_images(task, 0);
        }
    }

    /// Stores a new checkpoint of a task, with the next number.
    ///
    /// # Errors
    /// The store is full.
    pub(super) fn keep(
        &self,
        (task, attempt): (TaskId, Attempt),
        done: Ppm,
    ) -> Result<Image, String> {
        let mut store = self.store();
        if store.full {
            return Err("there is no room for checkpoints".to_owned());
        }
        let of_task = store.images.entry(task).or_default();
        let number = of_task.keys().next_back().map_or(1, |newest| newest + 1);
        let image = Image { task, attempt, number: CheckpointSeq::new(number), done };
        let mut bytes = encode(&image, &self.run, &self.key);
        let rot = store.rot;
        if store.chance.happens(rot) {
            // What is sent to the coordinator is read before.
            tracing::debug!(%task, number, "a checkpoint here is damaged");
            bytes.pop();
        }
        store.insert(self.shared(), task, number, bytes);
        Ok(image)
    }

    /// The newest undamaged checkpoint of a task in this store.
    pub(super) fn newest(&self, task: TaskId) -> Option<Image> {
        let store = self.store();
        let of_task = store.images.get(&task)?;
        of_task.values().rev().find_map(|bytes| decode(bytes, &self.key))
    }

    /// Sends a checkpoint to the coordinator; returns how many bytes it has received in the end.
    pub(super) async fn put(&self, pass: &LaunchPass, image: &Image) -> Result<u64, String> {
        let whole = encode(image, &self.run, &self.key);
        let length = whole.len() as u64;
        let sent = self.line.liar.lock().unwrap_or_else(PoisonError::into_inner).stores(whole);
        let reference = CheckpointRef {
            run: self.run.clone(),
            task: image.task.get(),
            checkpoint: image.number.get(),
            attempt: image.attempt.get(),
        };
        send_until_answered(pass, || async {
            let mut first = Some(reference.clone());
            let chunks = sent.chunks(CHUNK).map(|data| CheckpointChunk {
                checkpoint: first.take(),
                data: data.to_vec().into(),
                contents: Vec::new(),
                unpacked: 0,
            });
            let chunks = chunks.collect();
            let life = self.shared().life().ok_or_else(|| "it has no life".to_owned())?;
            let put = self.line.uplink.put_checkpoint(&life, chunks);
            let receipt = timeout(STILL, put).await.map_err(|_| "it is stuck".to_owned())??;
            Ok(compare_stored(length, receipt.bytes)?)
        })
        .await
    }

    /// Gives a task's directory to an attempt, and removes checkpoints newer than `from`, which are not part of the
    /// task's history. Returns whether the checkpoint `from` is in this store.
    pub(super) fn claim_checkpoint(&self, key: (TaskId, Attempt), from: Kept) -> bool {
        self.claim(key);
        let task = key.0;
        let mut store = self.store();
        let Some(of_task) = store.images.get_mut(&task) else { return false };
        of_task.retain(|number, _| *number <= from.checkpoint);
        let image = of_task.get(&from.checkpoint).map(|bytes| decode(bytes, &self.key));
        let is_it = |image: &Image| image.attempt.get() == from.attempt;
        let is_here = match image {
            None => false,
            Some(image) if image.as_ref().is_some_and(is_it) => true,
            Some(_) => {
                of_task.remove(&from.checkpoint);
                false
            }
        };
        let count = of_task.len();
        self.shared().has_images(task, count);
        is_here
    }

    /// Fetches a checkpoint of a task from the coordinator; one of these attempts took it.
    pub(super) async fn fetch(
        &self,
        pass: &LaunchPass,
        task: TaskId,
        checkpoint: u32,
        attempts: RangeInclusive<u32>,
    ) -> Result<(), FetchError> {
        let (run, attempt) = (self.run.clone(), *attempts.end());
        let wanted = CheckpointRef { run, task: task.get(), checkpoint, attempt };
        fetch_until_answered(pass, || async {
            let life = self.shared().life();
            let life = life.ok_or_else(|| FetchError::Transport("it has no life".to_owned()))?;
            let get = self.line.uplink.get_checkpoint(&life, wanted.clone());
            let got = pass.unless_revoked(timeout(STILL, get)).await?;
            let chunks = got.map_err(|_| StuckTransfer::Still { after: STILL })??;
            let bytes: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.data).collect();
            let image = decode(&bytes, &self.key);
            let is_it = |image: &Image| {
                image.task == task
                    && image.number.get() == checkpoint
                    && attempts.contains(&image.attempt.get())
            };
            if !image.as_ref().is_some_and(is_it) {
                return Err(FetchError::Absent("it is damaged, or another".to_owned()));
            }
            self.store().insert(self.shared(), task, checkpoint, bytes);
            Ok(())
        })
        .await
    }
}

impl Store {
    fn insert(&mut self, shared: &Shared, task: TaskId, number: u32, bytes: Vec<u8>) {
        let of_task = self.images.entry(task).or_default();
        of_task.insert(number, bytes);
        while of_task.len() > KEPT {
            of_task.pop_first();
        }
        shared.has_images(task, of_task.len());
    }
}
