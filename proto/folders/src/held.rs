//! A folder that the process holds which made it.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use crate::{
    FolderError,
    lock::{Lock, Tried, try_lock},
    tree::remove_tree,
};

/// A folder locked by the process that made it. Dropping it removes it with all that is in it.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    _lock: Lock,
}

impl HeldFolder {
    /// Makes a locked folder in `place`, whose name begins with `prefix`.
    ///
    /// # Errors
    /// Nothing can be made or locked there.
    pub fn create(place: &Path, prefix: &str) -> Result<Self, FolderError> {
        let mut number = 0_u64;
        loop {
            // The same process id may be in use in another namespace: what counts is the number.
            let path = place.join(format!("{prefix}{}-{number}", std::process::id()));
            number += 1;
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(source) => {
                    return Err(FolderError { action: "create the directory", path, source });
                }
            }
            match try_lock(&path) {
                Ok(Tried::Ours(lock)) => return Ok(Self { path, _lock: lock }),
                // Somebody has just taken it for an abandoned one.
                Ok(Tried::SomebodyElses | Tried::Nothing) => {}
                Err(source) => return Err(FolderError { action: "lock", path, source }),
            }
        }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HeldFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_tree(&self.path) {
            // Whoever removes the abandoned ones next removes it, too.
            tracing::warn!(%error, folder = %self.path.display(), "can't remove a temporary folder; whoever makes the next one here removes it");
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use super::*;
    use crate::remove_abandoned;

    const PREFIX: &str = "dormouse-run-";

    #[test]
    fn a_folder_is_held_and_goes_with_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) =
            (HeldFolder::create(place.path(), PREFIX), HeldFolder::create(place.path(), PREFIX));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one.path(), two.path());
        fs::create_dir(one.path().join("local-0")).unwrap();
        assert!(remove_abandoned(place.path(), PREFIX).unwrap().is_empty());
        let gone = one.path().to_owned();
        drop(one);
        assert!(!gone.exists() && two.path().exists());
    }
}
