//! Programs of the instance's user that are run at each boot.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Folder in the home directory with programs that are run at each boot, as cloud-init's `scripts/per-boot`.
pub(super) const EACH_BOOT: &str = "per-boot";
/// Most programs that are run at each boot.
const BOOT_PROGRAMS: usize = 64;

/// Returns the paths of the programs in a folder, in the order of their names; none if there is no such folder.
pub(super) fn boot_programs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let folder = std::env::current_dir()?.join(folder);
    let mut found = Vec::new();
    for entry in entries {
        let path = folder.join(entry?.file_name());
        let is_program = |it: &fs::Metadata| it.is_file() && it.permissions().mode() & 0o111 != 0;
        if fs::metadata(&path).is_ok_and(|it| is_program(&it)) {
            found.push(path);
        }
    }
    found.sort();
    found.truncate(BOOT_PROGRAMS);
    Ok(found)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn programs_of_each_boot_begin_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(boot_programs(&folder.path().join("none")).unwrap(), Vec::<PathBuf>::new());
        for (name, mode) in [("20-b", 0o755), ("10-a", 0o700), ("notes", 0o644)] {
            fs::write(folder.path().join(name), "").unwrap();
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(folder.path().join("folder")).unwrap();
        let found = boot_programs(folder.path()).unwrap();
        assert_eq!(found, ["10-a", "20-b"].map(|name| folder.path().join(name)));
    }
}
