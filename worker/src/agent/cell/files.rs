//! Folders of instances' files, which outlive a stop of the instance.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::{jail::empty_folders, workspace::TaskName};

/// The folders of the instances of one session, each of which belongs to one VM at a time.
#[derive(Debug, Default)]
pub(crate) struct InstanceFolders {
    state: Mutex<FoldersState>,
    /// Notified whenever a VM has left a folder.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FoldersState {
    folders: BTreeMap<TaskName, FolderStanding>,
    /// Folders whose files are not to be kept, although their VM was told to.
    unwanted: BTreeSet<TaskName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FolderStanding {
    /// The VM with this number uses the folder, or its files are being removed.
    InUse(u32),
    /// A VM has left its files, which are kept.
    Kept,
}

impl InstanceFolders {
    fn lock(&self) -> MutexGuard<'_, FoldersState> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a folder to a VM, once an earlier VM has left it; returns true if kept files are in it. Blocks for `patience` at most.
    ///
    /// # Errors
    ///
    /// In words: another VM still has the folder.
    pub(crate) fn claim(
        &self,
        name: &TaskName,
        vm: u32,
        patience: Duration,
    ) -> Result<bool, String> {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        while let Some(FolderStanding::InUse(other)) = state.folders.get(name).copied()
            && other != vm
        {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("vm{other} still has the folder of its files"));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let before = state.folders.insert(name.clone(), FolderStanding::InUse(vm));
        Ok(before == Some(FolderStanding::Kept))
    }

    /// Handles that a VM has left its folder: its files are kept, or removed by `remove`. A folder of another VM stays as it is.
    pub(crate) fn release(&self, name: &TaskName, vm: u32, keeps: bool, remove: impl FnOnce()) {
        let mut state = self.lock();
        if state.folders.get(name) != Some(&FolderStanding::InUse(vm)) {
            return;
        }
        if !state.unwanted.remove(name) && keeps {
            state.folders.insert(name.clone(), FolderStanding::Kept);
        } else {
            drop(state);
            remove();
            self.lock().folders.remove(name);
        }
        self.changed.notify_all();
    }

    /// Removes the files that are kept in a folder, by `remove`; if a VM still uses the folder, its files will not be kept.
    pub(crate) fn forget(&self, name: &TaskName, remove: impl FnOnce()) {
        let mut state = self.lock();
        match state.folders.get_mut(name) {
            Some(standing @ FolderStanding::Kept) => *standing = FolderStanding::InUse(u32::MAX),
            Some(FolderStanding::InUse(_)) => {
                state.unwanted.insert(name.clone());
                return;
            }
            None => return,
        }
        drop(state);
        remove();
        self.lock().folders.remove(name);
        self.changed.notify_all();
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
    for name in made {
        let path = folder.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(10);

    fn name() -> TaskName {
        TaskName::new("run", "instance-3").unwrap()
    }

    fn leave(folders: &InstanceFolders, vm: u32, keeps: bool) -> bool {
        let mut removed = false;
        folders.release(&name(), vm, keeps, || removed = true);
        removed
    }

    #[test]
    fn files_outlive_a_stop_and_belong_to_one_vm_at_a_time() {
        let folders = InstanceFolders::default();
        assert_eq!(folders.claim(&name(), 3, SOON), Ok(false));
        let why = folders.claim(&name(), 5, SOON).unwrap_err();
        assert_eq!(why, "vm3 still has the folder of its files");
        assert!(!leave(&folders, 5, false), "it is not its own");
        std::thread::scope(|scope| {
            let next = scope.spawn(|| folders.claim(&name(), 5, Duration::from_secs(60)));
            assert!(!leave(&folders, 3, true));
            assert_eq!(next.join().unwrap(), Ok(true));
        });
        assert!(leave(&folders, 5, false), "it was not only stopped");
        assert_eq!(folders.claim(&name(), 7, SOON), Ok(false));
    }

    #[test]
    fn files_that_nobody_needs_any_more_are_removed() {
        let folders = InstanceFolders::default();
        let forget = || {
            let mut removed = false;
            folders.forget(&name(), || removed = true);
            removed
        };
        assert!(!forget(), "there are none");
        folders.claim(&name(), 3, SOON).unwrap();
        assert!(!leave(&folders, 3, true));
        assert!(forget());
        assert_eq!(folders.claim(&name(), 4, SOON), Ok(false));
        // While it still ends.
        assert!(!forget());
        assert!(leave(&folders, 4, true));
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
