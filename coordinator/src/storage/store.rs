//! The checkpoint store: one file per checkpoint, complete or absent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blake3::Hash;

use crate::contents::{ContentPool, Which};
use crate::log::journal::OnceDurable;
use crate::storage::offsite::OffsiteStore;
use crate::storage::receipts::{CheckpointReceipts, StoredLength};
use crate::storage::retention::{find_superfluous, first_unlogged, given_up};
use crate::system::world::{LogDisk, StoreFile};

/// Number of bytes of a checkpoint after which the free disk space is checked again.
const LOOK_AFTER: u64 = 16 << 20;
/// Number of a task's checkpoints that may be newer than the log; more are refused.
const UNLOGGED: usize = 6;

/// A folder of checkpoints, `<task>/<number>.<attempt>`. Its methods block, except [`CheckpointFolder::may_hold`].
///
/// An attempt that was given up may still be sending when the next one has begun from an earlier checkpoint, and both
/// use the same numbers. Checkpoints that an attempt took at or after the point from which a later attempt continued
/// are therefore dropped, whichever arrive last: the stored numbers belong to one history.
///
/// A checkpoint is stored before the log has it. Until the log is durable, the task continues from the checkpoint
/// before if its worker or the coordinator is lost: a checkpoint newer than the log replaces none of those in the log.
#[derive(Debug)]
pub(crate) struct CheckpointFolder {
    root: PathBuf,
    /// Contents that the checkpoints refer to.
    contents: Arc<ContentPool>,
    /// Copy in an object store, if the run has one: checkpoints that aren't in the folder are fetched from there.
    offsite: Option<Arc<OffsiteStore>>,
    /// Tasks that may have checkpoints in the folder.
    tasks: Mutex<BTreeSet<u32>>,
    /// Newest checkpoint of each task in the durable log.
    logged: Mutex<BTreeMap<u32, u32>>,
    receipts: CheckpointReceipts,
}

/// Tells the store that the durable log has a newer checkpoint of a task, or went back to an older one.
#[derive(Debug)]
pub(crate) struct LoggedCheckpoint {
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) task: u32,
    pub(crate) newest: Option<u32>,
}

impl OnceDurable for LoggedCheckpoint {
    fn on_durable(self: Box<Self>) {
        self.store.has_logged(self.task, self.newest);
    }
}

/// Tells the store that a task has finished, so that its checkpoints are no longer needed.
#[derive(Debug)]
pub(crate) struct ForgetTask {
    pub(crate) store: Arc<CheckpointFolder>,
    pub(crate) task: u32,
}

impl OnceDurable for ForgetTask {
    fn on_durable(self: Box<Self>) {
        let Self { store, task } = *self;
        if let Some(offsite) = store.offsite.clone() {
            tokio::spawn(async move { offsite.forget_task(task).await });
        }
        let threads = store.contents.world().threads.clone();
        threads.begin_work(move || {
            if let Err(error) = store.forget_task(task) {
                tracing::warn!(task, %error, "the checkpoints of a task can't be removed");
            }
        });
    }
}

/// A checkpoint that is being received. Dropped before [`CheckpointFolder::finish_checkpoint`], it leaves nothing.
#[derive(Debug)]
pub(crate) struct IncomingCheckpoint {
    folder: PathBuf,
    which: Which,
    part: PathBuf,
    file: Box<dyn StoreFile>,
    disk: Arc<dyn LogDisk>,
    bytes: u64,
    /// Number of bytes at which the free disk space is checked next.
    look_at: u64,
    finished: bool,
}

impl CheckpointFolder {
    /// Opens the store in this folder, which is created if need be; its checkpoints refer to these contents. Partial
    /// files left by a crash are removed.
    pub(crate) fn open(root: &Path, contents: Arc<ContentPool>) -> io::Result<Self> {
        let disk = Arc::clone(&contents.world().disk);
        // Memory of tasks is nobody else's to read.
        disk.make_folder(root)?;
        fs::set_permissions(root, Permissions::from_mode(0o700))?;
        let (mut tasks, receipts) = (BTreeSet::new(), CheckpointReceipts::default());
        for task in fs::read_dir(root)? {
            let task = task?.path();
            if let Some(number) = number_of(&task).filter(|_| task.is_dir()) {
                tasks.insert(number);
                for file in fs::read_dir(&task)? {
                    let file = file?.path();
                    if parse_name(&file).is_none() {
                        disk.remove_file(&file)?;
                    }
                }
                let mut stored = list_stored(&task)?;
                let given_up = given_up(&stored.keys().copied().collect());
                for (_, path) in stored.extract_if(.., |which, _| given_up.contains(which)) {
                    disk.remove_file(&path)?;
                }
                for (which, file) in stored {
                    // Nobody has kept what it refers to by its length.
                    let length = StoredLength::AtLeast(fs::metadata(&file)?.len());
                    receipts.note_receipt(number, which, length);
                }
            }
        }
        let (tasks, logged) = (Mutex::new(tasks), Mutex::default());
        Ok(Self { root: root.to_owned(), contents, offsite: None, tasks, logged, receipts })
    }

    /// Sets the object store in which the checkpoints have a copy; `None`: there is no copy.
    pub(crate) fn with_offsite(self, offsite: Option<Arc<OffsiteStore>>) -> Self {
        self.known_tasks().extend(offsite.iter().flat_map(|offsite| offsite.task_numbers()));
        for (task, which) in offsite.iter().flat_map(|offsite| offsite.all_checkpoints()) {
            self.receipts.note_unmeasured(task, which);
        }
        Self { offsite, ..self }
    }

    /// Returns the object store in which the checkpoints have a copy; `None`: there is no copy.
    pub(crate) const fn offsite(&self) -> Option<&Arc<OffsiteStore>> {
        self.offsite.as_ref()
    }

    /// Returns the newest checkpoint of a task in the durable log; `None`: the log has none.
    pub(crate) fn newest_logged(&self, task: u32) -> Option<u32> {
        self.logged_numbers().get(&task).copied()
    }

    fn known_tasks(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        // A set of numbers is whole whoever panicked with it.
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logged_numbers(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the newest checkpoint of a task in the durable log; `None`: it has none.
    pub(crate) fn has_logged(&self, task: u32, newest: Option<u32>) {
        match newest {
            Some(newest) => drop(self.logged_numbers().insert(task, newest)),
            None => drop(self.logged_numbers().remove(&task)),
        }
    }

    /// Returns the tasks that may have checkpoints.
    pub(crate) fn held_tasks(&self) -> Vec<u32> {
        self.known_tasks().iter().copied().collect()
    }

    /// Returns whether a task may have a checkpoint.
    pub(crate) fn may_hold(&self, task: u32) -> bool {
        self.known_tasks().contains(&task)
    }

    /// Returns the contents that checkpoints refer to.
    pub(crate) fn contents(&self) -> &Arc<ContentPool> {
        &self.contents
    }

    /// Returns the receipts, which say which checkpoints are stored whole.
    pub(crate) const fn receipts(&self) -> &CheckpointReceipts {
        &self.receipts
    }

    /// Accepts a received checkpoint with the contents that it refers to; returns its length in bytes.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if one of the contents isn't stored; [`io::ErrorKind::QuotaExceeded`] if too many
    /// checkpoints are newer than the log; or the system refuses.
    pub(crate) fn finish_checkpoint(
        &self,
        task: u32,
        incoming: IncomingCheckpoint,
        refers: &[Hash],
    ) -> io::Result<u64> {
        let which = incoming.which;
        let _alive = self.contents.keep_alive()?;
        self.contents.keep_for(task, which, refers)?;
        let logged = self.logged_numbers().get(&task).copied();
        let bytes = incoming.finish_file(logged)?;
        self.receipts.note_receipt(task, which, StoredLength::new(bytes, refers.len()));
        let stored = list_stored(&self.task_folder(task))?.into_keys().collect();
        self.contents.retain_only(task, &stored)?;
        Ok(bytes)
    }

    /// Accepts a checkpoint that was stored before, with the contents that it refers to.
    pub(crate) fn take_back(
        &self,
        task: u32,
        incoming: IncomingCheckpoint,
        refers: &[Hash],
    ) -> io::Result<()> {
        let _alive = self.contents.keep_alive()?;
        self.contents.keep_for(task, incoming.which, refers)?;
        incoming.place_file()
    }

    /// Returns whether a checkpoint of a task is in the folder.
    pub(crate) fn has_checkpoint(&self, task: u32, number: u32) -> io::Result<bool> {
        match self.open_checkpoint(task, number) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn task_folder(&self, task: u32) -> PathBuf {
        self.root.join(task.to_string())
    }

    /// Begins to receive a checkpoint. `nonce` keeps two that are received at once apart.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::StorageFull`] if the free disk space is reserved for the log; or the system refuses.
    pub(crate) fn receive_checkpoint(
        &self,
        task: u32,
        which: Which,
        nonce: u64,
    ) -> io::Result<IncomingCheckpoint> {
        let _alive = self.contents.keep_alive()?;
        let disk = Arc::clone(&self.contents.world().disk);
        disk.has_room(&self.root)?;
        self.known_tasks().insert(task);
        let folder = self.task_folder(task);
        disk.make_folder(&folder)?;
        let (number, attempt) = which;
        let part = folder.join(format!("{number}.{attempt}.{nonce}.part"));
        let file = disk.create_file(&part)?;
        let (bytes, look_at) = (0, LOOK_AFTER);
        Ok(IncomingCheckpoint { folder, which, part, file, disk, bytes, look_at, finished: false })
    }

    /// Opens a stored checkpoint.
    pub(crate) fn open_checkpoint(&self, task: u32, number: u32) -> io::Result<File> {
        let stored = list_stored(&self.task_folder(task))?;
        // Of two, one is about to be dropped.
        let latest = stored.range((number, 0)..=(number, u32::MAX)).next_back();
        File::open(latest.ok_or(io::ErrorKind::NotFound)?.1)
    }

    /// Removes all checkpoints of a task.
    pub(crate) fn forget_task(&self, task: u32) -> io::Result<()> {
        let _alive = self.contents.keep_alive()?;
        self.known_tasks().remove(&task);
        self.logged_numbers().remove(&task);
        self.receipts.forget_task(task);
        self.contents.forget_task(task)?;
        self.disk().remove_folder(&self.task_folder(task))
    }

    /// Removes all checkpoints and the folder.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.known_tasks().clear();
        self.contents.close()?;
        self.disk().remove_folder(&self.root)
    }

    fn disk(&self) -> &dyn LogDisk {
        &*self.contents.world().disk
    }
}

impl IncomingCheckpoint {
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.bytes += data.len() as u64;
        if self.bytes >= self.look_at {
            self.look_at = self.bytes + LOOK_AFTER;
            self.disk.has_room(&self.folder)?;
        }
        self.file.write_all(data)
    }

    /// Makes the checkpoint exist, even if this process is killed; removes older ones in the log beyond those that
    /// are kept, and those of attempts that were given up, which may include this one.
    ///
    /// It isn't synced: on the disk of the event log, megabytes of images would delay the log's own syncs, and with them every
    /// command, by seconds. A checkpoint that a power cut damaged is recognised by its checksums, and an older one is used.
    fn finish_file(self, logged: Option<u32>) -> io::Result<u64> {
        let (which, folder, bytes) = (self.which, self.folder.clone(), self.bytes);
        let disk = Arc::clone(&self.disk);
        self.place_file()?;
        let mut stored = list_stored(&folder)?;
        let surplus = find_superfluous(&stored.keys().copied().collect(), logged);
        for (_, path) in stored.extract_if(.., |which, _| surplus.contains(which)) {
            disk.remove_file(&path)?;
        }
        let unlogged = stored.split_off(&first_unlogged(logged));
        if unlogged.len() > UNLOGGED
            && let Some(path) = unlogged.get(&which)
        {
            disk.remove_file(path)?;
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        Ok(bytes)
    }

    /// Renames the file to its final name.
    fn place_file(mut self) -> io::Result<()> {
        let (number, attempt) = self.which;
        self.disk.rename_file(&self.part, &self.folder.join(format!("{number}.{attempt}")))?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for IncomingCheckpoint {
    fn drop(&mut self) {
        if !self.finished {
            // What can't be removed now is when the store is opened again.
            let _ = self.disk.remove_file(&self.part);
        }
    }
}

/// Lists the checkpoints in a task's folder, with their paths.
fn list_stored(folder: &Path) -> io::Result<BTreeMap<Which, PathBuf>> {
    let mut stored = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if let Some(which) = parse_name(&path) {
            stored.insert(which, path);
        }
    }
    Ok(stored)
}

fn parse_name(path: &Path) -> Option<Which> {
    let (number, attempt) = path.file_name()?.to_str()?.split_once('.')?;
    Some((number.parse().ok()?, attempt.parse().ok()?))
}

fn number_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn open(root: &Path) -> CheckpointFolder {
        let contents = ContentPool::open(&root.join("contents")).expect("room");
        CheckpointFolder::open(&root.join("checkpoints"), Arc::new(contents)).expect("a store")
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .expect("the folder is there")
            .map(|f| f.expect("an entry").file_name().into_string().expect("plain"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_three_newest_are_kept_and_parts_leave_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        for number in 8..13 {
            let mut incoming = store.receive_checkpoint(7, (number, 1), 1).expect("room");
            incoming.write(&[1, 2]).expect("room");
            incoming.write(&[u8::try_from(number).expect("small")]).expect("room");
            assert_eq!(incoming.finish_file(Some(number)).expect("room"), 3);
        }
        let torn = store.receive_checkpoint(7, (13, 1), 1).expect("room");
        drop(torn);
        assert_eq!(names(&dir.path().join("checkpoints/7")), ["10.1", "11.1", "12.1"]);
        let mut bytes = Vec::new();
        let mut file = store.open_checkpoint(7, 12).expect("it is stored");
        file.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes, [1, 2, 12]);
        assert!(store.open_checkpoint(7, 9).is_err());
        assert!(store.may_hold(7) && !store.may_hold(8));
        store.forget_task(7).expect("it goes");
        store.forget_task(7).expect("it is gone");
        assert!(!store.may_hold(7));
        assert_eq!(names(&dir.path().join("checkpoints")), [""; 0]);
        store.close().expect("it goes");
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn what_an_attempt_that_was_given_up_sends_late_replaces_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        let put = |number, attempt| {
            let mut incoming = store.receive_checkpoint(7, (number, attempt), 1).expect("room");
            incoming.write(&[u8::try_from(attempt).expect("small")]).expect("room");
            incoming.finish_file(Some(number)).expect("room");
        };
        let names = || names(&dir.path().join("checkpoints/7"));
        for number in 1..4 {
            put(number, 1);
        }
        let mut late = store.receive_checkpoint(7, (3, 1), 2).expect("room");
        late.write(&[1]).expect("room");
        // The second attempt went on from checkpoint 2.
        put(3, 2);
        assert_eq!(names(), ["1.1", "2.1", "3.1.2.part", "3.2"]);
        late.finish_file(Some(3)).expect("room");
        put(4, 1);
        assert_eq!(names(), ["1.1", "2.1", "3.2"]);
        let mut bytes = Vec::new();
        let mut file = store.open_checkpoint(7, 3).expect("it is stored");
        file.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes, [2]);
        assert!(store.open_checkpoint(7, 4).is_err());
        // The third begins anew.
        put(1, 3);
        assert_eq!(names(), ["1.3"]);
    }

    /// A coordinator that is killed before newer checkpoints are in its log continues with those that the log has.
    #[test]
    fn what_the_log_does_not_have_yet_takes_no_place_of_what_it_has() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        let put = |number| {
            let incoming = store.receive_checkpoint(7, (number, 1), 1).expect("room");
            store.finish_checkpoint(7, incoming, &[])
        };
        let names = || {
            let mut names = names(&dir.path().join("checkpoints/7"));
            names.sort_by_key(|name| name.len());
            names.join(" ")
        };
        put(1).expect("room");
        store.has_logged(7, Some(1));
        for number in 2..8 {
            assert_eq!(put(number).expect("room"), 0);
        }
        let refused = put(8).expect_err("nobody says that they are in the log");
        assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        assert_eq!(names(), "1.1 2.1 3.1 4.1 5.1 6.1 7.1");
        store.has_logged(7, Some(7));
        put(8).expect("room");
        assert_eq!(names(), "5.1 6.1 7.1 8.1");
        // The log went back to an older one: those after it are none of its.
        store.has_logged(7, Some(5));
        put(9).expect("room");
        assert_eq!(names(), "5.1 6.1 7.1 8.1 9.1");
        store.forget_task(7).expect("it goes");
        for number in 1..4 {
            assert_eq!(put(number).expect("room"), 0);
        }
        assert_eq!(names(), "1.1 2.1 3.1");
    }

    /// The receipt of the first upload was lost with the coordinator, so that the worker sends the checkpoint again.
    #[test]
    fn a_checkpoint_that_is_sent_again_is_the_same_one() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for _ in 0..2 {
            let store = open(dir.path());
            let mut incoming = store.receive_checkpoint(7, (2, 1), 1).expect("room");
            incoming.write(&[7; 9]).expect("room");
            assert_eq!(incoming.finish_file(None).expect("room"), 9);
            assert_eq!(names(&dir.path().join("checkpoints/7")), ["2.1"]);
        }
    }

    /// Another coordinator may own the store by then, and rely on its contents.
    #[test]
    fn a_coordinator_whose_life_is_over_changes_nothing() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        let put = |number| store.receive_checkpoint(7, (number, 1), 1);
        store.finish_checkpoint(7, put(1).expect("room"), &[]).expect("room");
        let (late, part) = (put(2).expect("room"), put(3).expect("room"));
        store.contents().end_life();
        store.finish_checkpoint(7, late, &[]).expect_err("it is over");
        put(4).expect_err("it is over");
        store.forget_task(7).expect_err("it is over");
        drop(part);
        assert_eq!(names(&dir.path().join("checkpoints/7")), ["1.1"]);
    }

    /// Changes to the store aren't synced, so that a power cut may undo them.
    #[test]
    fn what_a_power_cut_brings_back_of_a_given_up_attempt_goes_when_it_is_opened_again() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("checkpoints/7");
        fs::create_dir_all(&folder).expect("room");
        for name in ["1.1", "2.1", "3.1", "2.2"] {
            fs::write(folder.join(name), name).expect("room");
        }
        open(dir.path());
        assert_eq!(names(&folder), ["1.1", "2.2"]);
    }

    #[test]
    fn parts_of_a_crash_are_removed_when_it_is_opened_again() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        store.receive_checkpoint(1, (1, 1), 1).expect("room").finish_file(None).expect("room");
        fs::write(dir.path().join("checkpoints/1/2.1.77.part"), "half").expect("room");
        let store = open(dir.path());
        assert!(store.may_hold(1));
        assert_eq!(names(&dir.path().join("checkpoints/1")), ["1.1"]);
    }

    #[test]
    fn a_checkpoint_is_taken_only_with_what_it_refers_to() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let store = open(dir.path());
        let digest = blake3::hash(b"large");
        let take = |number| {
            store.has_logged(7, Some(number));
            let incoming = store.receive_checkpoint(7, (number, 1), 1).expect("room");
            store.finish_checkpoint(7, incoming, &[digest])
        };
        let absent = take(1).expect_err("it is not here");
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(store.open_checkpoint(7, 1).is_err());
        let mut incoming = store.contents().receive_content(digest, 5).expect("room");
        incoming.write(b"large").expect("room");
        store.contents().finish_content(incoming).expect("it is whole");
        (2..6).for_each(|number| assert_eq!(take(number).expect("all is here"), 0));
        let kept = dir.path().join("contents/checkpoints/7");
        assert_eq!(names(&kept), ["3.1", "4.1", "5.1"]);
        store.forget_task(7).expect("it goes");
        assert!(!kept.exists());
    }
}
