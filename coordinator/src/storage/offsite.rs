//! The checkpoints of a run in an object store, where they outlive the coordinator's host.
//!
//! ```text
//! <run>/about                             a text that explains these objects
//! <run>/checkpoints/<task>/<n>.<attempt>  a checkpoint, as the coordinator has it
//! <run>/refers/<task>/<n>.<attempt>       the digests of the contents that it refers to, 32 bytes each
//! <run>/contents/<hex>                    a content
//! ```
//!
//! The coordinator's own folder has a copy: a checkpoint counts as stored once it is complete in the object store, and
//! one that is missing in the folder is fetched from there. A checkpoint's contents and the list of them are stored
//! before the checkpoint. The same rule decides in both places which checkpoints may be removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blake3::Hash;
use bytes::{Bytes, BytesMut};
use tonic::Status;

use crate::contents::{ContentPool, ContentRefusal, Which};
use crate::storage::retention::find_superfluous;
use crate::storage::transfers::store_status;
use crate::system::objects::{ObjectDownload, ObjectError, ObjectStorage, ObjectUpload};
use crate::system::world::BlockingThreads;

/// Bytes written to the disk at once.
const CHUNK: usize = 1 << 20;
/// Bytes of a content read at once.
const READ: usize = 256 << 10;
/// Largest list of a checkpoint's contents, in bytes.
const LONGEST_LIST: usize = 2 << 20;

/// A run's checkpoints in an object store.
#[derive(Debug)]
pub(crate) struct OffsiteStore {
    objects: Arc<dyn ObjectStorage>,
    run: String,
    threads: BlockingThreads,
    held: Mutex<OffsiteObjects>,
    /// Locked while contents are sent for a checkpoint or removed with one, so that no content is removed that is
    /// being referred to.
    referring: tokio::sync::Mutex<()>,
}

/// The objects of a run that the object store has.
#[derive(Debug, Default)]
struct OffsiteObjects {
    /// Checkpoints of each task, with the contents to which each checkpoint refers.
    checkpoints: BTreeMap<u32, BTreeMap<Which, BTreeSet<[u8; 32]>>>,
    /// Digests of the stored contents, with the contents' lengths in bytes.
    contents: BTreeMap<[u8; 32], u64>,
    /// Contents that stay until the run is over.
    inputs: BTreeSet<[u8; 32]>,
}

/// Reasons why a checkpoint wasn't stored or fetched.
#[derive(Clone, Debug)]
pub(crate) enum OffsiteError {
    Object(ObjectError),
    Disk(Arc<io::Error>),
}

impl From<ObjectError> for OffsiteError {
    fn from(error: ObjectError) -> Self {
        Self::Object(error)
    }
}

impl From<io::Error> for OffsiteError {
    fn from(error: io::Error) -> Self {
        Self::Disk(Arc::new(error))
    }
}

impl OffsiteError {
    /// Converts the error for a worker that sends a checkpoint: it isn't stored.
    pub(crate) fn of_put(self) -> Status {
        match self {
            Self::Object(error) => Status::internal(format!("the object store: {error}")),
            Self::Disk(error) => store_status(&error),
        }
    }

    /// Converts the error for a worker that fetches a checkpoint. Only if the checkpoint is known to be absent may
    /// its task continue from an earlier one; otherwise the worker tries again.
    pub(crate) fn of_get(self) -> Status {
        match self {
            Self::Object(ObjectError::Absent(why)) => Status::not_found(why),
            Self::Object(error) => Status::unavailable(format!("the object store: {error}")),
            Self::Disk(error) => store_status(&error),
        }
    }
}

/// A checkpoint that is uploaded to the object store while it arrives from its worker. Dropped before
/// [`OffsiteUpload::finish_upload`], it leaves nothing in the store.
#[derive(Debug)]
pub(crate) struct OffsiteUpload {
    offsite: Arc<OffsiteStore>,
    upload: Box<dyn ObjectUpload>,
    task: u32,
    which: Which,
}

impl OffsiteUpload {
    /// Sends the next bytes of the object.
    pub(crate) async fn write(&mut self, data: Bytes) -> Result<(), OffsiteError> {
        Ok(self.upload.write(data).await?)
    }

    /// Completes the checkpoint, after all contents that it refers to.
    pub(crate) async fn finish_upload(
        mut self,
        contents: &Arc<ContentPool>,
        refers: &[Hash],
    ) -> Result<(), OffsiteError> {
        let Self { offsite, upload, task, which } = &mut self;
        let _referring = match refers {
            [] => None,
            _ => Some(offsite.referring.lock().await),
        };
        for digest in refers {
            offsite.send_content(contents, *digest).await?;
        }
        let refers: BTreeSet<[u8; 32]> = refers.iter().map(|digest| *digest.as_bytes()).collect();
        if !refers.is_empty() {
            let list: Vec<u8> = refers.iter().flatten().copied().collect();
            offsite.send_object(offsite.object_key("refers", *task, *which), list.into()).await?;
        }
        upload.finish_upload().await?;
        offsite.held_objects().checkpoints.entry(*task).or_default().insert(*which, refers);
        Ok(())
    }
}

impl OffsiteStore {
    /// Opens the object store of a run, lists what it has, and leaves a note there that explains the objects.
    ///
    /// # Errors
    ///
    /// The store can't be reached, or refuses.
    pub(crate) async fn open(
        objects: Arc<dyn ObjectStorage>,
        run: &str,
        threads: BlockingThreads,
    ) -> Result<Arc<Self>, ObjectError> {
        let (held, referring) = (Mutex::default(), tokio::sync::Mutex::default());
        let offsite = Self { objects, run: run.to_owned(), threads, held, referring };
        let mut found = OffsiteObjects::default();
        let mut objects = offsite.objects.list_objects(offsite.run.clone()).await?;
        // By their names, so that a list is noted after its checkpoint.
        objects.sort();
        for (key, bytes) in objects {
            offsite.note_object(&mut found, &key, bytes).await?;
        }
        let about = format!(
            "The checkpoints of the Dormouse run {run}, by which it can be resumed; they are removed when it is over.\n"
        );
        offsite.send_object(format!("{run}/about"), about.into()).await?;
        *offsite.held_objects() = found;
        Ok(Arc::new(offsite))
    }

    /// Adds an object with this key, which the object store has listed, to `found`.
    async fn note_object(
        &self,
        found: &mut OffsiteObjects,
        key: &str,
        bytes: u64,
    ) -> Result<(), ObjectError> {
        let Some(own) = key.strip_prefix(&self.run).and_then(|own| own.strip_prefix('/')) else {
            return Ok(());
        };
        let parts: Vec<&str> = own.split('/').collect();
        match *parts.as_slice() {
            ["contents", hex] => {
                if let Ok(digest) = Hash::from_hex(hex) {
                    found.contents.insert(*digest.as_bytes(), bytes);
                }
            }
            ["checkpoints", task, which] => {
                if let (Ok(task), Some(which)) = (task.parse(), which_of(which)) {
                    found.checkpoints.entry(task).or_default().entry(which).or_default();
                }
            }
            ["refers", task, which] => {
                let (Ok(task), Some(which)) = (task.parse(), which_of(which)) else {
                    return Ok(());
                };
                let of_task = found.checkpoints.get_mut(&task);
                // Its checkpoint never became whole, or has gone: the run's end removes it.
                let Some(refers) = of_task.and_then(|all| all.get_mut(&which)) else {
                    return Ok(());
                };
                *refers = self.list_at(key.to_owned()).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a list object of the store; returns the digests in it.
    async fn list_at(&self, key: String) -> Result<BTreeSet<[u8; 32]>, ObjectError> {
        let (mut download, mut list) =
            (self.objects.begin_download(key.clone()).await?, Vec::new());
        while let Some(data) = download.next().await? {
            list.extend_from_slice(&data);
            if list.len() > LONGEST_LIST {
                return Err(ObjectError::Refused(format!(
                    "the object {key} has more than {LONGEST_LIST} bytes; remove what is not this run's"
                )));
            }
        }
        Ok(list.chunks_exact(32).filter_map(|digest| digest.try_into().ok()).collect())
    }

    fn held_objects(&self) -> MutexGuard<'_, OffsiteObjects> {
        // Every change of it is whole, whoever panicked with it.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object_key(&self, kind: &str, task: u32, (number, attempt): Which) -> String {
        format!("{}/{kind}/{task}/{number}.{attempt}", self.run)
    }

    fn content_key(&self, digest: &[u8; 32]) -> String {
        format!("{}/contents/{}", self.run, Hash::from_bytes(*digest).to_hex())
    }

    /// Returns the tasks with checkpoints.
    pub(crate) fn task_numbers(&self) -> Vec<u32> {
        self.held_objects().checkpoints.keys().copied().collect()
    }

    /// Returns all checkpoints with their tasks.
    pub(crate) fn all_checkpoints(&self) -> Vec<(u32, Which)> {
        let held = self.held_objects();
        let all = held.checkpoints.iter();
        all.flat_map(|(task, of_task)| of_task.keys().map(|which| (*task, *which))).collect()
    }

    /// Begins to store a checkpoint.
    pub(crate) fn begin_upload(self: &Arc<Self>, task: u32, which: Which) -> OffsiteUpload {
        let upload = self.objects.begin_upload(self.object_key("checkpoints", task, which));
        OffsiteUpload { offsite: Arc::clone(self), upload, task, which }
    }

    async fn send_object(&self, key: String, data: Bytes) -> Result<(), ObjectError> {
        let mut upload = self.objects.begin_upload(key);
        upload.write(data).await?;
        upload.finish_upload().await
    }

    /// Copies a content from the coordinator's folder to the object store, unless the store has it.
    async fn send_content(
        &self,
        contents: &Arc<ContentPool>,
        digest: Hash,
    ) -> Result<(), OffsiteError> {
        if self.held_objects().contents.contains_key(digest.as_bytes()) {
            return Ok(());
        }
        let opened = Arc::clone(contents);
        let mut file = self.run_blocking(move || opened.open_content(&digest)).await?;
        let mut upload = self.objects.begin_upload(self.content_key(digest.as_bytes()));
        let mut bytes = 0;
        loop {
            let read = move || {
                let mut data = Vec::with_capacity(READ);
                io::Read::read_to_end(&mut io::Read::take(&mut file, READ as u64), &mut data)?;
                Ok((data, file))
            };
            let (data, back) = self.run_blocking(read).await?;
            file = back;
            if data.is_empty() {
                break;
            }
            bytes += data.len() as u64;
            upload.write(data.into()).await?;
        }
        upload.finish_upload().await?;
        self.held_objects().contents.insert(*digest.as_bytes(), bytes);
        Ok(())
    }

    /// Stores the tasks' input files both on this host and in the object store, until the run is over.
    pub(crate) async fn keep_inputs(
        &self,
        contents: &Arc<ContentPool>,
        inputs: BTreeSet<[u8; 32]>,
    ) -> Result<(), OffsiteError> {
        for digest in inputs.into_iter().map(Hash::from_bytes) {
            self.held_objects().inputs.insert(*digest.as_bytes());
            let here = Arc::clone(contents);
            if self.run_blocking(move || here.holds_content(&digest)).await? {
                self.send_content(contents, digest).await?;
            } else if self.held_objects().contents.contains_key(digest.as_bytes()) {
                self.bring_content(contents, digest).await?;
                let here = Arc::clone(contents);
                self.run_blocking(move || here.keep_as_input(&digest)).await?;
            }
        }
        Ok(())
    }

    /// Returns the checkpoint of this number of a task's latest attempt, with the contents that it refers to; `None`: the object
    /// store has none.
    pub(crate) fn find_checkpoint(&self, task: u32, number: u32) -> Option<(Which, Vec<Hash>)> {
        let held = self.held_objects();
        let of_task = held.checkpoints.get(&task)?;
        let (which, refers) = of_task.range((number, 0)..=(number, u32::MAX)).last()?;
        Some((*which, refers.iter().copied().map(Hash::from_bytes).collect()))
    }

    /// Fetches a checkpoint, and writes it to `incoming`.
    pub(crate) async fn bring_checkpoint<I: Send + 'static>(
        &self,
        (task, which): (u32, Which),
        incoming: I,
        write: fn(I, Bytes) -> io::Result<I>,
    ) -> Result<I, OffsiteError> {
        let download =
            self.objects.begin_download(self.object_key("checkpoints", task, which)).await?;
        self.receive_download(download, incoming, write).await
    }

    /// Fetches a content into the coordinator's folder, unless it is there.
    pub(crate) async fn bring_content(
        &self,
        contents: &Arc<ContentPool>,
        digest: Hash,
    ) -> Result<(), OffsiteError> {
        let here = Arc::clone(contents);
        if self.run_blocking(move || here.holds_content(&digest)).await? {
            return Ok(());
        }
        let length = self.held_objects().contents.get(digest.as_bytes()).copied();
        let absent = || ObjectError::Absent(format!("the object store has no content {digest}"));
        let length = length.ok_or_else(absent)?;
        let download = self.objects.begin_download(self.content_key(digest.as_bytes())).await?;
        let here = Arc::clone(contents);
        let incoming = self.run_blocking(move || here.receive_content(digest, length)).await?;
        let write = |mut incoming: crate::contents::IncomingContent, data: Bytes| {
            incoming.write(&data).map(|()| incoming).map_err(unlike_error)
        };
        let incoming = self.receive_download(download, incoming, write).await?;
        let here = Arc::clone(contents);
        self.run_blocking(move || here.finish_content(incoming).map(drop).map_err(unlike_error))
            .await
    }

    /// Writes a download to its receiver.
    async fn receive_download<I: Send + 'static>(
        &self,
        mut download: Box<dyn ObjectDownload>,
        mut incoming: I,
        write: fn(I, Bytes) -> io::Result<I>,
    ) -> Result<I, OffsiteError> {
        let mut gathered = BytesMut::new();
        loop {
            let data = download.next().await?;
            let is_last = data.is_none();
            gathered.extend_from_slice(&data.unwrap_or_default());
            if gathered.len() >= CHUNK || is_last {
                let chunk = gathered.split().freeze();
                incoming = self.run_blocking(move || write(incoming, chunk)).await?;
            }
            if is_last {
                return Ok(incoming);
            }
        }
    }

    /// Runs blocking work on a thread.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, OffsiteError> {
        let done = self.threads.run(work).await;
        done.map_err(|panic| io::Error::other(panic.to_string()))?.map_err(OffsiteError::from)
    }

    /// Removes checkpoints of a task that are no longer needed, after one has arrived: the arrived one, if the coordinator's folder
    /// has not stored it, and in the background those that it replaces. `logged` is the newest checkpoint in the durable log.
    pub(crate) async fn settle_checkpoint(
        self: &Arc<Self>,
        (task, which): (u32, Which),
        is_stored: bool,
        logged: Option<u32>,
    ) {
        if !is_stored {
            return self.remove(task, BTreeSet::from([which])).await;
        }
        let offsite = Arc::clone(self);
        tokio::spawn(async move { offsite.prune_task(task, logged).await });
    }

    /// Removes checkpoints of a task that are no longer needed, the newest one in the durable log being `logged`.
    async fn prune_task(&self, task: u32, logged: Option<u32>) {
        let all =
            self.held_objects().checkpoints.get(&task).map(|all| all.keys().copied().collect());
        let surplus = find_superfluous(&all.unwrap_or_default(), logged);
        self.remove(task, surplus).await;
    }

    /// Removes all checkpoints of a task.
    pub(crate) async fn forget_task(&self, task: u32) {
        let all =
            self.held_objects().checkpoints.get(&task).map(|all| all.keys().copied().collect());
        self.remove(task, all.unwrap_or_default()).await;
    }

    /// Removes checkpoints, and the contents that no other refers to. Those that can't be removed stay until the run
    /// is over.
    async fn remove(&self, task: u32, which: BTreeSet<Which>) {
        let _referring = self.referring.lock().await;
        let mut keys = Vec::new();
        {
            let held = &mut *self.held_objects();
            let Some(of_task) = held.checkpoints.get_mut(&task) else { return };
            let mut referred = BTreeSet::new();
            for which in which {
                let Some(refers) = of_task.remove(&which) else { continue };
                keys.push(self.object_key("checkpoints", task, which));
                if !refers.is_empty() {
                    keys.push(self.object_key("refers", task, which));
                }
                referred.extend(refers);
            }
            if of_task.is_empty() {
                held.checkpoints.remove(&task);
            }
            let all = held.checkpoints.values().flat_map(BTreeMap::values);
            let needed: BTreeSet<_> = all.flatten().chain(&held.inputs).copied().collect();
            for digest in referred.difference(&needed) {
                held.contents.remove(digest);
                keys.push(self.content_key(digest));
            }
        }
        for key in keys {
            if let Err(error) = self.objects.remove(key.clone()).await {
                tracing::warn!(key, %error, "an object that is no longer needed is left for the moment");
            }
        }
    }

    /// Removes all objects of the run.
    ///
    /// # Errors
    ///
    /// The store can't be reached or refuses: what is left begins with the run's name.
    pub(crate) async fn close(&self) -> Result<(), ObjectError> {
        *self.held_objects() = OffsiteObjects::default();
        for (key, _) in self.objects.list_objects(self.run.clone()).await? {
            self.objects.remove(key).await?;
        }
        Ok(())
    }
}

fn unlike_error(refused: ContentRefusal) -> io::Error {
    match refused {
        ContentRefusal::Io(error) => error,
        another @ ContentRefusal::Another { .. } => io::Error::other(another.to_string()),
    }
}

fn which_of(name: &str) -> Option<Which> {
    let (number, attempt) = name.split_once('.')?;
    Some((number.parse().ok()?, attempt.parse().ok()?))
}

#[cfg(test)]
mod tests;
