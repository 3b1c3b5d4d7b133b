//! Ownership of a folder for results: others who can change a folder can make it point elsewhere.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use nix::unistd::geteuid;

use super::OutputError;

/// Mode bit that lets everybody write.
const ALL_WRITE: u32 = 0o002;
/// Mode of a folder that only its owner may enter.
const PRIVATE: u32 = 0o700;

/// Makes a folder for results and its parents. An existing folder is used only if nobody else can
/// put links into it, which would be followed.
///
/// # Errors
///
/// The folder belongs to another user or is writable by all, or the system refuses.
pub fn make_folder(folder: &Path) -> Result<(), OutputError> {
    refuse_others(folder)?;
    fs::create_dir_all(folder).map_err(|error| OutputError::io("make", folder, error))
}

/// Makes a folder that only its owner may enter.
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(folder)
}

/// Refuses a folder into which somebody else could put links. A folder that does not exist is
/// accepted.
///
/// # Errors
///
/// The folder, or a link in its place, belongs to another user or is writable by all.
pub(super) fn refuse_others(folder: &Path) -> Result<(), OutputError> {
    let users = TrustedUsers::of_this_process();
    let Ok(found) = fs::symlink_metadata(folder) else { return Ok(()) };
    let theirs = |uid: u32| {
        let remedy = "give another folder, or have it be yours with chown";
        OutputError::out(
            folder,
            format!("it belongs to user {uid}, who could redirect its files elsewhere; {remedy}"),
        )
    };
    if !users.is_trusted(found.uid()) {
        return Err(theirs(found.uid()));
    }
    let found = fs::metadata(folder).map_err(|error| OutputError::io("look at", folder, error))?;
    if !users.is_trusted(found.uid()) {
        return Err(theirs(found.uid()));
    }
    if found.is_dir() && found.mode() & ALL_WRITE != 0 {
        let why = "every user may write into it, and could point its files elsewhere; give another \
                   folder, or take that away with chmod o-w";
        return Err(OutputError::out(folder, why));
    }
    Ok(())
}

/// Users whose access to a folder is not an additional danger, because they can control this process
/// anyway.
#[derive(Clone, Copy, Debug)]
struct TrustedUsers {
    own: u32,
    /// User who became root with sudo.
    by_sudo: Option<u32>,
}

impl TrustedUsers {
    fn of_this_process() -> Self {
        let own = geteuid().as_raw();
        // Only in root's environment can the variable be trusted, and only there it matters.
        let by_sudo = (own == 0).then(|| std::env::var("SUDO_UID").ok()?.parse().ok()).flatten();
        Self { own, by_sudo }
    }

    fn is_trusted(self, uid: u32) -> bool {
        uid == 0 || uid == self.own || self.by_sudo == Some(uid)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    const NOBODY: u32 = 65_534;

    #[test]
    fn sudo_does_not_make_a_stranger_of_who_typed_it() {
        let users = TrustedUsers { own: 0, by_sudo: Some(1_000) };
        assert!(users.is_trusted(0) && users.is_trusted(1_000) && !users.is_trusted(1_001));
        let users = TrustedUsers { own: 1_000, by_sudo: None };
        assert!(users.is_trusted(0) && users.is_trusted(1_000) && !users.is_trusted(NOBODY));
    }

    #[test]
    fn a_folder_in_which_others_could_put_links_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("in/runs");
        make_folder(&folder).unwrap();
        make_folder(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        let no = make_folder(&folder).unwrap_err();
        assert!(no.is_bad_input() && no.to_string().contains("chmod o-w"), "{no}");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let link = dir.path().join("link");
        symlink(&folder, &link).unwrap();
        make_folder(&link).unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
            let no = make_folder(&link).unwrap_err();
            assert!(no.to_string().contains("belongs to user 65534"), "{no}");
            chown(&folder, Some(NOBODY), None).unwrap();
            let no = make_folder(&folder).unwrap_err();
            assert!(no.is_bad_input() && no.to_string().contains("chown"), "{no}");
        }
    }
}
