//! Files and folders that only their owner can access.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes a file that only its owner can read. An existing file is replaced by a new one, which was never open to
/// others; links are not followed; readers see the whole old file or the whole new one.
///
/// # Errors
///
/// The system refuses.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(beside, path)
}

/// Creates a folder that only its owner can enter, unless it exists.
///
/// # Errors
///
/// The system refuses, or something that is not a folder has this name.
pub fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let is_folder = fs::symlink_metadata(path)?.is_dir();
            if is_folder { Ok(()) } else { Err(error) }
        }
        made => made,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_is_private_is_made_anew_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (theirs, path) = (dir.path().join("theirs"), dir.path().join("secret"));
        fs::write(&theirs, "").unwrap();
        symlink(&theirs, &path).unwrap();
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read(&theirs).unwrap()), (b"two".into(), vec![]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let folder = dir.path().join("folder");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        symlink(&folder, &link).unwrap();
        make_folder(&link).unwrap_err();
    }
}
