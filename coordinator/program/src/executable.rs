//! Search for the file of a command. The system's own search would give a file that it can't
//! execute to a shell.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

/// The file that the first word of a command names: with a slash its path, else the first of that
/// name in PATH that may be executed.
///
/// # Errors
///
/// There is none, it may not be executed, or it is neither a binary nor a script that names its
/// interpreter.
pub(crate) fn find_executable(word: &str) -> io::Result<PathBuf> {
    let file = if word.contains('/') { PathBuf::from(word) } else { in_path(word)? };
    access(&file, AccessFlags::X_OK)?;
    let mut first = Vec::new();
    // One that may be executed but not read is given to the system as it is.
    if let Ok(open) = File::open(&file) {
        open.take(4).read_to_end(&mut first)?;
        if !first.starts_with(b"#!") && first != b"\x7fELF" {
            return Err(Errno::ENOEXEC.into());
        }
    }
    Ok(file)
}

fn in_path(word: &str) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let may_be_executed = |file: &Path| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(word));
    files.find(|file| may_be_executed(file)).ok_or_else(|| ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_no_interpreter_is_named_for_is_not_given_to_a_shell() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, content).expect("it is written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is changed");
            path.to_string_lossy().into_owned()
        };
        let script = file("script", "#!/bin/sh\n", 0o755);
        assert_eq!(find_executable(&script).expect("it is one"), PathBuf::from(&script));
        let commands = file("commands", "echo\n", 0o755);
        let refused = find_executable(&commands).expect_err("nobody knows how");
        assert_eq!(refused.raw_os_error(), Some(Errno::ENOEXEC as i32));
        let no_right =
            find_executable(&file("text", "#!/bin/sh\n", 0o644)).expect_err("not allowed");
        assert_eq!(no_right.kind(), ErrorKind::PermissionDenied);
        assert!(find_executable("sh").expect("it is in PATH").is_absolute());
        let nowhere = find_executable("no-such-program-anywhere").expect_err("there is none");
        assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    }
}
