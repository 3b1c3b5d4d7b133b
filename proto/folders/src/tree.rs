//! Removal of folders that strangers have filled: however deep they are, and whatever links are in them.

use std::{
    ffi::CString,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use nix::{
    dir::Dir,
    errno::Errno,
    fcntl::{AT_FDCWD, OFlag, openat, renameat},
    sys::stat::{Mode, fstat},
    unistd::{Uid, UnlinkatFlags, fchown, unlinkat},
};

/// A folder, and never what a link leads to.
const FOLDER: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);
/// Names that are read of a folder at a time.
const NAMES: usize = 4096;

/// Removes a folder with all that is in it, or the file or link at this path; it is no error if nothing is there.
///
/// Links are removed and not followed. Folders in the folder may be nested so deep that their paths are longer than the kernel takes:
/// each one is moved up into the folder before it is emptied, so that neither the stack nor the number of open folders grows.
///
/// # Errors
///
/// Something can't be removed, for example a folder on which something is mounted.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let removed = match openat(AT_FDCWD, path, FOLDER, Mode::empty()) {
        Ok(folder) => empty_tree(&folder).and_then(|()| fs::remove_dir(path)),
        Err(Errno::ELOOP | Errno::ENOTDIR) => fs::remove_file(path),
        Err(error) => Err(error.into()),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes all that is in an open folder, as [`remove_tree`] does, but not the folder itself.
///
/// # Errors
///
/// Something can't be removed.
pub fn empty_tree(folder: impl AsFd) -> io::Result<()> {
    let mut tree = LiftedTree { top: reopen(folder.as_fd(), c".")?, lifted: 0 };
    let owner = own_sticky(&tree.top)?;
    let emptied = loop {
        let names = list_names(&tree.top)?;
        if names.is_empty() {
            break Ok(());
        }
        if let Err(error) = names.iter().try_for_each(|name| tree.remove(name)) {
            break Err(error.into());
        }
    };
    if let Some(owner) = owner {
        fchown(&tree.top, Some(owner), None)?;
    }
    emptied
}

/// Makes this process's user the owner of a sticky folder of another user, and returns that user; `None`: nothing was to be done.
/// In a sticky folder of another user only its owner, and who has CAP_FOWNER, may remove what others have made.
fn own_sticky(folder: &OwnedFd) -> nix::Result<Option<Uid>> {
    let stat = fstat(folder)?;
    let (owner, own) = (Uid::from_raw(stat.st_uid), Uid::effective());
    if Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX) && owner != own {
        return match fchown(folder, Some(own), None) {
            Ok(()) => Ok(Some(owner)),
            // Who may not do that may still remove files of their own.
            Err(Errno::EPERM) => Ok(None),
            Err(error) => Err(error),
        };
    }
    Ok(None)
}

/// A folder that is being emptied; folders from below are moved up into it.
struct LiftedTree {
    top: OwnedFd,
    /// Number of the next folder that is moved up, which becomes a part of its name.
    lifted: u64,
}

impl LiftedTree {
    /// Removes what has this name in the top folder. What is in the folders in it is moved up.
    fn remove(&mut self, name: &CString) -> nix::Result<()> {
        if remove_one(&self.top, name)? {
            return Ok(());
        }
        let folder = match reopen(self.top.as_fd(), name) {
            Err(Errno::ENOENT) => return Ok(()),
            folder => folder?,
        };
        own_sticky(&folder)?;
        loop {
            let names = list_names(&folder)?;
            if names.is_empty() {
                break;
            }
            for inner in &names {
                if !remove_one(&folder, inner)? {
                    self.lift(&folder, inner)?;
                }
            }
        }
        match unlinkat(&self.top, name.as_c_str(), UnlinkatFlags::RemoveDir) {
            Err(Errno::ENOENT) => Ok(()),
            removed => removed,
        }
    }

    /// Moves a folder up into the top folder, under a name that nothing has there but perhaps an empty folder, which it replaces.
    fn lift(&mut self, from: &OwnedFd, name: &CString) -> nix::Result<()> {
        loop {
            let to = format!(".dormouse-removed-{}", self.lifted);
            self.lifted += 1;
            match renameat(from, name.as_c_str(), &self.top, to.as_str()) {
                Err(Errno::EEXIST | Errno::ENOTEMPTY | Errno::ENOTDIR) => {}
                Err(Errno::ENOENT) => return Ok(()),
                moved => return moved,
            }
        }
    }
}

/// Removes a file, a link or an empty folder; returns false if it is a folder that is not empty.
fn remove_one(from: &OwnedFd, name: &CString) -> nix::Result<bool> {
    let removed = match unlinkat(from, name.as_c_str(), UnlinkatFlags::NoRemoveDir) {
        Err(Errno::EISDIR) => unlinkat(from, name.as_c_str(), UnlinkatFlags::RemoveDir),
        removed => removed,
    };
    match removed {
        Ok(()) | Err(Errno::ENOENT) => Ok(true),
        Err(Errno::ENOTEMPTY | Errno::EEXIST) => Ok(false),
        Err(error) => Err(error),
    }
}

fn reopen(from: impl AsFd, name: &std::ffi::CStr) -> nix::Result<OwnedFd> {
    openat(from, name, FOLDER, Mode::empty())
}

/// Returns names in a folder, as many as are read at a time; none if the folder is empty.
fn list_names(folder: &OwnedFd) -> nix::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in &mut Dir::from_fd(reopen(folder, c".")?)?.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
        if names.len() == NAMES {
            break;
        }
    }
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::{
        os::unix::fs::{PermissionsExt as _, symlink},
        path::PathBuf,
    };

    use nix::sys::stat::mkdirat;

    use super::*;

    /// Makes folders in each other, each with a file, a link to `outside` and another folder, deeper than any path reaches.
    fn dig(folder: &Path, depth: usize, outside: &Path) {
        let mut at = reopen(AT_FDCWD, &CString::new(folder.to_str().unwrap()).unwrap()).unwrap();
        for _ in 0..depth {
            for name in [c"down", c"beside"] {
                mkdirat(&at, name, Mode::S_IRWXU).unwrap();
            }
            nix::unistd::symlinkat(outside, &at, c"link").unwrap();
            drop(openat(&at, c"file", OFlag::O_CREAT | OFlag::O_WRONLY, Mode::S_IRUSR).unwrap());
            at = reopen(&at, c"down").unwrap();
        }
    }

    /// Runs something in a thread whose stack has room for a few calls.
    fn with_little_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(work);
        thread.unwrap().join().unwrap()
    }

    #[test]
    fn a_sticky_folder_keeps_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let sticky = place.path().join("tmp");
        fs::create_dir_all(sticky.join("a/b")).unwrap();
        fs::set_permissions(&sticky, fs::Permissions::from_mode(0o1777)).unwrap();
        let other = Uid::from_raw(60_700);
        if std::os::unix::fs::chown(&sticky, Some(other.as_raw()), None).is_err() {
            assert!(!Uid::effective().is_root(), "root may do that");
            return;
        }
        let open = fs::File::open(&sticky).unwrap();
        empty_tree(&open).unwrap();
        assert_eq!(fstat(&open).unwrap().st_uid, other.as_raw());
        assert_eq!(fs::read_dir(&sticky).unwrap().count(), 0);
        assert_eq!(own_sticky(&reopen(&open, c".").unwrap()), Ok(Some(other)));
        assert_eq!(own_sticky(&reopen(&open, c".").unwrap()), Ok(None));
    }

    fn outside() -> (tempfile::TempDir, PathBuf) {
        let outside = tempfile::tempdir().unwrap();
        let kept = outside.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        (outside, kept)
    }

    #[test]
    fn a_tree_deeper_than_any_path_is_removed_and_no_link_is_followed() {
        let (place, (outside, kept)) = (tempfile::tempdir().unwrap(), outside());
        let tree = place.path().join("tree");
        fs::create_dir(&tree).unwrap();
        dig(&tree, 3000, outside.path());
        with_little_stack(move || remove_tree(&tree)).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
    }

    #[test]
    fn names_of_folders_that_were_moved_up_may_be_there_before() {
        let (place, (outside, kept)) = (tempfile::tempdir().unwrap(), outside());
        dig(place.path(), 5, outside.path());
        let at = |number: usize| place.path().join(format!(".dormouse-removed-{number}"));
        fs::write(at(0), "").unwrap();
        symlink(outside.path(), at(1)).unwrap();
        fs::create_dir_all(at(2).join("inner/one")).unwrap();
        fs::create_dir(at(3)).unwrap();
        empty_tree(fs::File::open(place.path()).unwrap()).unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(kept.exists());
    }

    #[test]
    fn a_path_may_lead_to_anything_or_nothing() {
        let (place, (outside, kept)) = (tempfile::tempdir().unwrap(), outside());
        let at = |name: &str| place.path().join(name);
        remove_tree(&at("nothing")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink(outside.path(), at("link")).unwrap();
        symlink(at("nowhere"), at("broken")).unwrap();
        for name in ["file", "link", "broken"] {
            remove_tree(&at(name)).unwrap();
            fs::symlink_metadata(at(name)).unwrap_err();
        }
        assert!(kept.exists());
        // Many names, and a folder that may not be listed by others than its owner.
        fs::create_dir_all(at("many/closed")).unwrap();
        (0..5000).for_each(|number| fs::write(at("many").join(number.to_string()), "").unwrap());
        fs::set_permissions(at("many/closed"), fs::Permissions::from_mode(0o700)).unwrap();
        remove_tree(&at("many")).unwrap();
        assert!(!at("many").exists());
    }

    #[test]
    fn what_can_not_be_removed_is_an_error() {
        // A folder of the kernel's, which nobody may change.
        remove_tree(Path::new("/proc/self/fdinfo")).unwrap_err();
        assert!(Path::new("/proc/self/fdinfo").exists());
    }
}
