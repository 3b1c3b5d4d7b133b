//! What a cell's first boot writes: home directories, keys that may log in, and files.

use std::{
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use super::CellFile;
use crate::supervisor::WORK;

/// Folder in the directory of the cell that is its `/home`.
const HOMES: &str = "home";

/// Makes a home directory for each name: a link to the working directory, in the folder that is the cell's `/home`. What is there
/// from an earlier boot stays.
pub(super) fn link_homes(names: &[String]) -> io::Result<()> {
    let (homes, work) = (Path::new(HOMES), std::env::current_dir()?.join(WORK));
    DirBuilder::new().recursive(true).mode(0o755).create(homes)?;
    names.iter().try_for_each(|name| match std::os::unix::fs::symlink(&work, homes.join(name)) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    })
}

/// Writes the keys that may log in.
pub(super) fn write_keys(keys: &[String]) -> io::Result<()> {
    let folder = Path::new(WORK).join(".ssh");
    DirBuilder::new().mode(0o700).create(&folder)?;
    let path = folder.join("authorized_keys");
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(keys.iter().map(|key| format!("{key}\n")).collect::<String>().as_bytes())
}

/// Writes a file of the order, and the folders that it is in.
pub(super) fn write_file(file: &CellFile) -> io::Result<()> {
    if let Some(folder) = file.path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(file.appends).write(true).truncate(!file.appends);
    let mut open = options.mode(file.mode).open(&file.path)?;
    open.write_all(&file.content)?;
    open.set_permissions(Permissions::from_mode(file.mode))
}
