//! The folders that dead processes left.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    FolderError,
    lock::LOCK,
    lock::{Tried, try_lock},
    tree::remove_tree,
};

/// Removes the abandoned folders in `place` and returns their paths. A folder is abandoned if its name is `prefix`
/// and a number, and no process locks it or the file [`LOCK`] in any folder inside it.
///
/// # Errors
/// The folder `place` can't be listed. A folder that can't be removed is left, with a warning.
pub fn remove_abandoned(place: &Path, prefix: &str) -> Result<Vec<PathBuf>, FolderError> {
    let fail = |source| FolderError { action: "list", path: place.to_owned(), source };
    let mut removed = Vec::new();
    for entry in fs::read_dir(place).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let is_named = number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if !is_named || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        match remove_if_abandoned(&path) {
            Ok(true) => removed.push(path),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, folder = %path.display(), "a dead run's folder is left");
            }
        }
    }
    Ok(removed)
}

fn remove_if_abandoned(folder: &Path) -> io::Result<bool> {
    // Held until all is gone.
    let Tried::Ours(lock) = try_lock(folder)? else { return Ok(false) };
    let mut locks = vec![lock];
    // Who holds a folder in it may outlive who made it, as workers do that wait for their coordinator.
    for inner in fs::read_dir(folder)? {
        match try_lock(&inner?.path().join(LOCK)) {
            Ok(Tried::Ours(lock)) => locks.push(lock),
            Ok(Tried::SomebodyElses) => return Ok(false),
            Ok(Tried::Nothing) => {}
            // A file among the folders is none.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {}
            Err(e) => return Err(e),
        }
    }
    remove_tree(folder)?;
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::{lock::Lock, try_lock_in};

    const PREFIX: &str = "dormouse-run-";

    /// A number that no process has: the kernel's are smaller.
    const NOBODY: u32 = 1 << 30;

    /// A folder as a worker has it for its own.
    fn held(folder: &Path) -> Lock {
        fs::create_dir_all(folder).unwrap();
        let Tried::Ours(lock) = try_lock_in(folder).unwrap() else { panic!("it is held") };
        lock
    }

    #[test]
    fn only_what_nobody_holds_is_removed_whatever_its_name_says() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: String| place.path().join(name);
        // Of a run in another PID namespace, where its id is nobody's here.
        let elsewhere = at(format!("{PREFIX}{NOBODY}-0"));
        fs::create_dir(&elsewhere).unwrap();
        let Tried::Ours(owner) = try_lock(&elsewhere).unwrap() else { panic!("it is held") };
        // Of a run that was killed, and whose worker still lives.
        let orphaned = at(format!("{PREFIX}{NOBODY}-1"));
        let worker = held(&orphaned.join("local-0"));
        fs::write(orphaned.join("log"), "").unwrap();
        // Of one that was killed with its workers; its id is somebody else's by now.
        let dead = at(format!("{PREFIX}{}-7", std::process::id()));
        drop(held(&dead.join("local-0")));
        // A user's own.
        let other = at(format!("{PREFIX}notes"));
        fs::create_dir(&other).unwrap();

        assert_eq!(remove_abandoned(place.path(), PREFIX).unwrap(), std::slice::from_ref(&dead));
        let left = [&elsewhere, &orphaned, &dead, &other].map(|path| path.exists());
        assert_eq!(left, [true, true, false, true]);
        drop((owner, worker));
        assert_eq!(remove_abandoned(place.path(), PREFIX).unwrap().len(), 2);
        assert!(other.exists());
    }

    #[test]
    fn links_are_nobodys_folders() {
        let place = tempfile::tempdir().unwrap();
        let precious = place.path().join("precious");
        fs::create_dir(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, place.path().join(format!("{PREFIX}1-0"))).unwrap();
        assert!(remove_abandoned(place.path(), PREFIX).unwrap().is_empty());
        assert!(precious.exists());
    }
}
