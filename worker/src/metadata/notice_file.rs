//! A notice as a file in the directory of a program, which may have put anything there.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, fchown},
    path::Path,
};

use nix::{
    fcntl::{OFlag, OpenHow, ResolveFlag, openat2},
    sys::stat::Mode,
};

/// Writes a notice to a file in a directory, whose owner gets the file. A file of that name is overwritten; nothing
/// outside of the directory is, whatever links the program has made.
///
/// # Errors
///
/// The kernel's error, such as that the path leads through a link.
pub(crate) fn leave_notice(directory: &Path, file: &str, notice: &str) -> io::Result<()> {
    let directory = File::open(directory)?;
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_TRUNC | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let how = OpenHow::new()
        .flags(flags)
        .mode(Mode::from_bits_truncate(0o644))
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let mut file = File::from(openat2(&directory, file, how)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let owner = directory.metadata()?;
    fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    file.write_all(notice.as_bytes())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_notice_is_left_in_the_directory_alone() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = inside.path();
        fs::write(at.join("notice"), "an older and longer one").unwrap();
        leave_notice(at, "notice", "new").unwrap();
        assert_eq!(fs::read_to_string(at.join("notice")).unwrap(), "new");
        let victim = outside.path().join("victim");
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, at.join("link")).unwrap();
        symlink(outside.path(), at.join("way")).unwrap();
        let absolute = victim.to_str().unwrap();
        for path in ["link", "way/victim", "../victim", absolute] {
            assert!(leave_notice(at, path, "bad").is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    }
}
