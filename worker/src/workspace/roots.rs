//! A folder for the roots of several workers, and what is left of those of dead processes.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::{
    Error, Result,
    lock::{Lock, Tried, try_lock},
    site,
};

/// A folder for the roots of workers, locked by the process that made it. Dropping it removes it
/// with all that is in it.
#[derive(Debug)]
pub struct Roots {
    path: PathBuf,
    _lock: Lock,
}

impl Roots {
    /// Makes one in `place`, whose name begins with `prefix`.
    ///
    /// # Errors
    /// Where nothing can be made or locked there.
    pub fn create(place: &Path, prefix: &str) -> Result<Self> {
        let mut number = 0_u64;
        loop {
            // The same process id may be in use in another namespace: what counts is the number.
            let path = place.join(format!("{prefix}{}-{number}", std::process::id()));
            number += 1;
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(source) => {
                    return Err(Error::File { action: "create the directory", path, source });
                }
            }
            match try_lock(&path) {
                Ok(Tried::Ours(lock)) => return Ok(Self { path, _lock: lock }),
                // Somebody has just taken it for an abandoned one.
                Ok(Tried::SomebodyElses | Tried::Nothing) => {}
                Err(source) => return Err(Error::File { action: "lock", path, source }),
            }
        }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Roots {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            // Whoever removes the abandoned ones next removes it, too.
            tracing::warn!(%error, folder = %self.path.display(), "a folder of workers is left");
        }
    }
}

/// Removes the folders in `place` that are named `prefix` and a number and that nobody alive uses:
/// neither who made one nor any worker whose root is in it holds its lock. Says which.
///
/// # Errors
/// Where `place` can't be listed. A folder that can't be removed is left, with a warning.
pub fn remove_abandoned(place: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let fail = |source| Error::File { action: "list", path: place.to_owned(), source };
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
    // Workers outlive who started them for as long as they wait for their coordinator.
    for root in fs::read_dir(folder)? {
        match try_lock(&root?.path().join(site::LOCK)) {
            Ok(Tried::Ours(lock)) => locks.push(lock),
            Ok(Tried::SomebodyElses) => return Ok(false),
            Ok(Tried::Nothing) => {}
            // A file among the roots is none.
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => {}
            Err(e) => return Err(e),
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    const PREFIX: &str = "dormouse-run-";

    /// A number that no process has: the kernel's are smaller.
    const NOBODY: u32 = 1 << 30;

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
        let worker = Workspace::in_place(&orphaned.join("local-0")).unwrap();
        fs::write(orphaned.join("log"), "").unwrap();
        // Of one that was killed with its workers; its id is somebody else's by now.
        let dead = at(format!("{PREFIX}{}-7", std::process::id()));
        drop(Workspace::in_place(&dead.join("local-0")).unwrap());
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
    fn a_folder_of_roots_is_held_and_goes_with_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (Roots::create(place.path(), PREFIX), Roots::create(place.path(), PREFIX));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one.path(), two.path());
        fs::create_dir(one.path().join("local-0")).unwrap();
        assert!(remove_abandoned(place.path(), PREFIX).unwrap().is_empty());
        let gone = one.path().to_owned();
        drop(one);
        assert!(!gone.exists() && two.path().exists());
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
