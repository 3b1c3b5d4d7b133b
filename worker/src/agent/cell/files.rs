//! Folders of instances' files, which outlive a stop of the instance.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_folders::remove_tree;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::{jail::empty_folders, workspace::TaskName};

/// Most folders that are kept of stopped instances, each of which has a user of the host.
const KEPT_FOLDERS: usize = 128;

/// The folders of the instances of one session, each of which belongs to one VM at a time.
#[derive(Debug)]
pub(crate) struct InstanceFolders {
    state: Mutex<FoldersState>,
    /// Notified whenever a VM has left a folder.
    changed: Notify,
    /// Most bytes of all kept folders together.
    most_bytes: u64,
}

#[derive(Debug, Default)]
struct FoldersState {
    folders: BTreeMap<TaskName, FolderStanding>,
    /// Folders whose files are not to be kept, although their VM was told to.
    unwanted: BTreeSet<TaskName>,
    /// Why folders are not here although their VM was told to keep them.
    absent: BTreeMap<TaskName, FilesAbsence>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolderStanding {
    /// The VM with this number uses the folder; `has_files`: it may hold files of the instance.
    InUse { vm: u32, has_files: bool },
    /// A VM has left its files, of so many bytes, which are kept.
    Kept(u64),
    /// Its files are being removed.
    Leaving,
}

/// Reason why the files of a stopped instance were not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilesAbsence {
    /// There are none: the instance was stopped before its first process had begun.
    NeverBegun,
    /// This worker has kept the files of as many instances as it does.
    TooMany,
    /// This worker has no room for the files.
    NoRoom {
        /// Bytes of the files.
        bytes: u64,
        /// Bytes of the files of other instances that are kept.
        others: u64,
        /// Most bytes of the files of all instances.
        most: u64,
    },
}

impl fmt::Display for FilesAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: u64 = 1 << 20;
        match self {
            Self::NeverBegun => write!(f, "it was stopped before it had begun"),
            Self::TooMany => write!(
                f,
                "this worker keeps the files of {KEPT_FOLDERS} stopped instances at most: \
                 terminate some that are stopped"
            ),
            Self::NoRoom { bytes, others: 0, most } => write!(
                f,
                "they are {} MiB, and this worker keeps {} MiB of stopped instances at most: leave less in files",
                bytes.div_ceil(MIB),
                most / MIB
            ),
            Self::NoRoom { bytes, others, most } => write!(
                f,
                "they are {} MiB, and this worker keeps {} MiB of stopped instances at most, {} MiB of them for \
                 others: terminate some that are stopped, or leave less in files",
                bytes.div_ceil(MIB),
                most / MIB,
                others.div_ceil(MIB)
            ),
        }
    }
}

/// What a VM finds in the folder of its instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundFiles {
    /// The files from before the last stop.
    Kept,
    /// No files, for the reason that is known here.
    Absent(Option<FilesAbsence>),
}

impl InstanceFolders {
    /// Makes the record of no folders, of which so many bytes may be kept.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), most_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, FoldersState> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a folder to a VM, once an earlier VM has left it, for which `patience` is waited at most.
    ///
    /// # Errors
    ///
    /// In words: another VM still has the folder.
    pub(crate) async fn claim(
        &self,
        name: &TaskName,
        vm: u32,
        patience: Duration,
    ) -> Result<FoundFiles, String> {
        let until = Instant::now() + patience;
        loop {
            // Before the look, so that no change after it is missed.
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let by = match self.try_claim(name, vm) {
                Ok(found) => return Ok(found),
                Err(by) => by,
            };
            if timeout_at(until, changed).await.is_err() {
                return Err(match by {
                    Some(other) => format!("vm{other} still has the folder of its files"),
                    None => "its files are still being removed".to_owned(),
                });
            }
        }
    }

    /// Gives a folder to a VM.
    ///
    /// # Errors
    ///
    /// The number of the VM that has it; `None`: its files are being removed.
    fn try_claim(&self, name: &TaskName, vm: u32) -> Result<FoundFiles, Option<u32>> {
        let mut state = self.lock();
        let before = state.folders.get(name).copied();
        match before {
            Some(FolderStanding::InUse { vm: other, .. }) if other != vm => {
                return Err(Some(other));
            }
            Some(FolderStanding::Leaving) => return Err(None),
            _ => {}
        }
        let has_files = matches!(before, Some(FolderStanding::Kept(_)));
        state.folders.insert(name.clone(), FolderStanding::InUse { vm, has_files });
        let absence = state.absent.remove(name);
        Ok(if has_files { FoundFiles::Kept } else { FoundFiles::Absent(absence) })
    }

    /// Records that the first process of a VM's cell has begun: from now on the folder may hold files of the instance.
    pub(crate) fn note_begun(&self, name: &TaskName, vm: u32) {
        match self.lock().folders.get_mut(name) {
            Some(FolderStanding::InUse { vm: own, has_files }) if *own == vm => *has_files = true,
            _ => {}
        }
    }

    /// Handles that a VM has left its folder, with so many bytes of files: they are kept if they are to be (`keeps`) and there is
    /// room, and removed by `remove` otherwise. A folder of another VM stays as it is. Returns why files are not kept that should be.
    pub(crate) fn release(
        &self,
        name: &TaskName,
        vm: u32,
        keeps: bool,
        bytes: u64,
        remove: impl FnOnce(),
    ) -> Option<FilesAbsence> {
        let mut state = self.lock();
        let has_files = match state.folders.get(name) {
            Some(FolderStanding::InUse { vm: own, has_files }) if *own == vm => *has_files,
            _ => return None,
        };
        let is_kept = !state.unwanted.remove(name) && keeps;
        let absence = match is_kept {
            true if has_files => state.refuse_more(bytes, self.most_bytes),
            true => Some(FilesAbsence::NeverBegun),
            false => None,
        };
        if is_kept && absence.is_none() {
            state.folders.insert(name.clone(), FolderStanding::Kept(bytes));
            drop(state);
            self.changed.notify_waiters();
        } else {
            state.folders.insert(name.clone(), FolderStanding::Leaving);
            drop(state);
            self.remove_folder(name, absence.clone(), remove);
        }
        absence
    }

    /// Removes the files that are kept in a folder, by `remove`; if a VM still uses the folder, its files will not be kept.
    pub(crate) fn forget(&self, name: &TaskName, remove: impl FnOnce()) {
        let mut state = self.lock();
        state.absent.remove(name);
        match state.folders.get_mut(name) {
            Some(standing @ FolderStanding::Kept(_)) => *standing = FolderStanding::Leaving,
            Some(FolderStanding::InUse { .. }) => {
                state.unwanted.insert(name.clone());
                return;
            }
            Some(FolderStanding::Leaving) | None => return,
        }
        drop(state);
        self.remove_folder(name, None, remove);
    }

    /// Removes a folder that is leaving, by `remove`, without the lock.
    fn remove_folder(&self, name: &TaskName, absence: Option<FilesAbsence>, remove: impl FnOnce()) {
        remove();
        let mut state = self.lock();
        state.folders.remove(name);
        if let Some(absence) = absence {
            state.absent.insert(name.clone(), absence);
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

impl FoldersState {
    /// Returns why another folder of so many bytes can't be kept; `None`: it can.
    fn refuse_more(&self, bytes: u64, most: u64) -> Option<FilesAbsence> {
        let kept = self.folders.values().filter_map(|standing| match standing {
            FolderStanding::Kept(bytes) => Some(*bytes),
            FolderStanding::InUse { .. } | FolderStanding::Leaving => None,
        });
        let (count, others) = kept.fold((0, 0_u64), |(count, sum), bytes| (count + 1, sum + bytes));
        if count >= KEPT_FOLDERS {
            return Some(FilesAbsence::TooMany);
        }
        (others.saturating_add(bytes) > most).then_some(FilesAbsence::NoRoom {
            bytes,
            others,
            most,
        })
    }
}

/// Removes from the folder of a stopped instance what each boot makes anew: `made`, by their names, and the content of `/tmp` and
/// `/dev/shm`. Links are removed, and not followed.
///
/// # Errors
///
/// Something can't be removed.
pub(crate) fn clear_for_boot(folder: &Path, made: &[&str]) -> io::Result<()> {
    empty_folders(folder)?;
    made.iter().try_for_each(|name| remove_tree(&folder.join(name)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;

    const SOON: Duration = Duration::from_millis(10);
    const MIB: u64 = 1 << 20;

    fn name(number: u32) -> TaskName {
        TaskName::new("run", format!("instance-{number}")).unwrap()
    }

    fn folders() -> InstanceFolders {
        InstanceFolders::new(100 * MIB)
    }

    /// Has a VM leave a folder with 10 MiB; returns whether they were removed, and why they were if they should be kept.
    fn leave(folders: &InstanceFolders, vm: u32, keeps: bool) -> (bool, Option<FilesAbsence>) {
        leave_with(folders, &name(3), vm, keeps, 10)
    }

    fn leave_with(
        folders: &InstanceFolders,
        name: &TaskName,
        vm: u32,
        keeps: bool,
        mib: u64,
    ) -> (bool, Option<FilesAbsence>) {
        let mut removed = false;
        let why = folders.release(name, vm, keeps, mib * MIB, || removed = true);
        (removed, why)
    }

    /// Has a VM claim a folder, and its cell begin there.
    async fn use_folder(folders: &InstanceFolders, vm: u32) -> FoundFiles {
        let found = folders.claim(&name(3), vm, SOON).await.unwrap();
        folders.note_begun(&name(3), vm);
        found
    }

    const NEW: FoundFiles = FoundFiles::Absent(None);

    #[tokio::test]
    async fn files_outlive_a_stop_and_belong_to_one_vm_at_a_time() {
        let folders = folders();
        assert_eq!(use_folder(&folders, 3).await, NEW);
        let why = folders.claim(&name(3), 5, SOON).await.unwrap_err();
        assert_eq!(why, "vm3 still has the folder of its files");
        assert_eq!(leave(&folders, 5, false), (false, None), "it is not its own");
        let later = name(3);
        let next = folders.claim(&later, 5, Duration::from_secs(60));
        let (next, left) = tokio::join!(next, async { leave(&folders, 3, true) });
        assert_eq!((next, left), (Ok(FoundFiles::Kept), (false, None)));
        assert_eq!(leave(&folders, 5, false), (true, None), "it was not only stopped");
        assert_eq!(use_folder(&folders, 7).await, NEW);
    }

    /// Who waits for a folder takes no thread: in a runtime of one thread many can wait, and another VM goes on.
    #[tokio::test]
    async fn who_waits_for_a_folder_keeps_nobody_from_working() {
        let folders = std::sync::Arc::new(folders());
        use_folder(&folders, 3).await;
        let mut waiting = tokio::task::JoinSet::new();
        for vm in 10..200 {
            let folders = std::sync::Arc::clone(&folders);
            waiting
                .spawn(async move { folders.claim(&name(3), vm, Duration::from_secs(60)).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(folders.claim(&name(4), 4, SOON).await, Ok(NEW));
        leave(&folders, 3, true);
        let first = waiting.join_next().await.unwrap().unwrap();
        assert_eq!(first, Ok(FoundFiles::Kept));
        tokio::task::yield_now().await;
        assert!(waiting.try_join_next().is_none(), "it is one VM's at a time");
    }

    #[tokio::test]
    async fn files_that_nobody_needs_any_more_are_removed() {
        let folders = folders();
        let forget = || {
            let mut removed = false;
            folders.forget(&name(3), || removed = true);
            removed
        };
        assert!(!forget(), "there are none");
        use_folder(&folders, 3).await;
        assert_eq!(leave(&folders, 3, true), (false, None));
        assert!(forget());
        assert_eq!(use_folder(&folders, 4).await, NEW);
        // While it still ends.
        assert!(!forget());
        assert_eq!(leave(&folders, 4, true), (true, None));
    }

    #[tokio::test]
    async fn an_instance_that_never_began_leaves_nothing_and_begins_as_at_its_first_boot() {
        let folders = folders();
        assert_eq!(folders.claim(&name(3), 3, SOON).await, Ok(NEW));
        let never = Some(FilesAbsence::NeverBegun);
        assert_eq!(leave(&folders, 3, true), (true, never.clone()));
        assert_eq!(use_folder(&folders, 4).await, FoundFiles::Absent(never));
        // One that has files from before keeps them if a later boot is broken off.
        assert_eq!(leave(&folders, 4, true), (false, None));
        assert_eq!(folders.claim(&name(3), 5, SOON).await, Ok(FoundFiles::Kept));
        assert_eq!(leave(&folders, 5, true), (false, None));
        assert_eq!(use_folder(&folders, 6).await, FoundFiles::Kept);
    }

    #[tokio::test]
    async fn so_much_is_kept_and_what_is_beyond_is_said() {
        let folders = folders();
        for (number, mib, expected) in [(3, 60, None), (4, 41, Some("41 MiB")), (5, 40, None)] {
            folders.claim(&name(number), number, SOON).await.unwrap();
            folders.note_begun(&name(number), number);
            let (removed, why) = leave_with(&folders, &name(number), number, true, mib);
            assert_eq!(removed, expected.is_some(), "{number}");
            let why = why.map(|why| why.to_string());
            assert_eq!(why.is_some(), expected.is_some(), "{why:?}");
            if let Some((why, part)) = why.zip(expected) {
                assert!(why.contains(part) && why.contains("100 MiB of stopped"), "{why}");
                assert!(why.contains("60 MiB of them for others: terminate"), "{why}");
            }
        }
        // Its next boot says it again.
        let found = folders.claim(&name(4), 6, SOON).await.unwrap();
        let absence = FilesAbsence::NoRoom { bytes: 41 * MIB, others: 60 * MIB, most: 100 * MIB };
        assert_eq!(found, FoundFiles::Absent(Some(absence)));
        // What is not kept any more makes room.
        folders.forget(&name(3), || {});
        folders.note_begun(&name(4), 6);
        assert_eq!(leave_with(&folders, &name(4), 6, true, 41), (false, None));
    }

    #[tokio::test]
    async fn so_many_folders_are_kept() {
        let folders = folders();
        for number in 0..129 {
            folders.claim(&name(number), number, SOON).await.unwrap();
            folders.note_begun(&name(number), number);
            let (removed, why) = leave_with(&folders, &name(number), number, true, 0);
            let is_beyond = number == 128;
            assert_eq!((removed, why), (is_beyond, is_beyond.then_some(FilesAbsence::TooMany)));
        }
    }

    #[test]
    fn what_a_boot_makes_is_removed_and_links_are_not_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name);
        fs::write(elsewhere.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), at("bin")).unwrap();
        fs::create_dir_all(at("tmp/x")).unwrap();
        fs::create_dir_all(at("order/x")).unwrap();
        fs::write(at("mine"), "").unwrap();
        clear_for_boot(folder.path(), &["bin", "order", "none"]).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert!(left.len() == 1 && at("mine").exists(), "{left:?}");
        assert!(elsewhere.path().join("file").exists());
    }
}
