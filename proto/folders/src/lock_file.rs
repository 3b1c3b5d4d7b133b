//! A folder that is held through a file in it, by a process that did not make what the folder is in.

use std::{fs::OpenOptions, io, os::unix::fs::OpenOptionsExt, path::Path};

use crate::{
    FolderError,
    lock::{Tried, try_lock},
};

/// The file in a folder by whose lock it is held.
pub const LOCK: &str = "lock";

/// Tries to hold an existing folder through its file [`LOCK`], which is made if need be. A link in its place is not
/// followed.
///
/// # Errors
/// The file can't be made or locked.
pub fn try_lock_in(folder: &Path) -> Result<Tried, FolderError> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let tried = match options.open(&path) {
        Ok(_) => try_lock(&path),
        // It has just been removed as an abandoned one.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Tried::Nothing),
        Err(e) => Err(e),
    };
    tried.map_err(|source| FolderError { action: "lock", path, source })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let Tried::Ours(first) = try_lock_in(folder.path()).unwrap() else { panic!("it is held") };
        assert!(matches!(try_lock_in(folder.path()), Ok(Tried::SomebodyElses)));
        drop(first);
        assert!(matches!(try_lock_in(folder.path()), Ok(Tried::Ours(_))));
        assert!(matches!(try_lock_in(&folder.path().join("gone")), Ok(Tried::Nothing)));
    }

    #[test]
    fn an_error_says_what_was_tried_and_has_what_the_kernel_said() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::os::unix::fs::symlink(&victim, folder.path().join(LOCK)).unwrap();
        let error = try_lock_in(folder.path()).unwrap_err();
        let lock = folder.path().join(LOCK);
        assert_eq!(error.to_string(), format!("can't lock {}", lock.display()));
        assert_eq!(io::Error::from(error).raw_os_error(), Some(libc::ELOOP));
        assert!(!fs::exists(victim).unwrap());
    }
}
