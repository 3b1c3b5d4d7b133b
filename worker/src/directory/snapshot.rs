//! Saving a task's directory.

use std::{collections::BTreeMap, fs::File, path::Path};

use nix::sys::statvfs::fstatvfs;

use super::{
    ContentObjects, DirectoryError, DirectoryNode, FoundNode, NodeKind, Result,
    attributes::{MAX_ATTRIBUTES, read_attributes},
    handle::DirectoryHandle,
    walk,
};

/// The permission bits of a file that are saved. Set-user-ID bits aren't, so that nobody gets another user by running a task's
/// file.
pub(super) const PERMISSIONS: u32 = 0o777;
/// The permission bits of a directory that are saved, with the sticky bit and the set-group-ID bit. On a directory these two give
/// nobody another user, and CRIU restores a process in a directory only if all bits of the directory are as before.
pub(super) const DIRECTORY_PERMISSIONS: u32 = 0o3777;

/// Saves a directory of a task that is stopped: what is in it, and the contents of its files in `objects`.
///
/// Sockets are left out: the program that had one bound gets it again by CRIU, or binds it again itself.
///
/// # Errors
/// The directory has something that cannot be saved, or more than its file system could hold without holes; a file
/// cannot be read or written.
pub(crate) fn snapshot_directory(
    directory: &Path,
    objects: &ContentObjects,
) -> Result<Vec<DirectoryNode>> {
    let most = disk_room(directory)?;
    let (mut nodes, mut bytes, mut described) = (Vec::new(), 0_u64, 0);
    let mut first_names: BTreeMap<(u64, u64), String> = BTreeMap::new();
    walk(directory, |found| {
        let mode = found.stat.st_mode & PERMISSIONS;
        let mut attributes = BTreeMap::new();
        let kind = match found.kind() {
            libc::S_IFDIR => {
                let read = found.parent.enter_directory(found.name).and_then(read_attributes);
                attributes =
                    read.map_err(DirectoryError::file_error("read the attributes of", found.path))?;
                NodeKind::Directory { mode: found.stat.st_mode & DIRECTORY_PERMISSIONS }
            }
            libc::S_IFIFO => NodeKind::Pipe { mode },
            libc::S_IFSOCK => return Ok(()),
            libc::S_IFLNK => NodeKind::Link { target: link_target(found)? },
            libc::S_IFREG => {
                let inode = (found.stat.st_dev, found.stat.st_ino);
                match first_names.get(&inode) {
                    Some(first) => NodeKind::SameAs { path: first.clone() },
                    None => {
                        if found.stat.st_nlink > 1 {
                            first_names.insert(inode, found.path.to_owned());
                        }
                        bytes = bytes.saturating_add(found.bytes());
                        if bytes > most {
                            return Err(beyond_error(most));
                        }
                        let (kind, given) = regular_file(found, objects, most)?;
                        attributes = given;
                        kind
                    }
                }
            }
            _ => {
                let why = "is a device, which no checkpoint can hold; remove it";
                return Err(DirectoryError::refused_path(found.path, why));
            }
        };
        described += attributes.iter().map(|(name, hex)| name.len() + hex.len()).sum::<usize>();
        if described > MAX_ATTRIBUTES {
            let what = format!("attributes of more than {MAX_ATTRIBUTES} bytes; remove some");
            return Err(DirectoryError::Beyond { what });
        }
        nodes.push(DirectoryNode { path: found.path.to_owned(), kind, attributes });
        Ok(())
    })?;
    Ok(nodes)
}

fn regular_file(
    found: &FoundNode<'_>,
    objects: &ContentObjects,
    most: u64,
) -> Result<(NodeKind, BTreeMap<String, String>)> {
    let open = || -> std::io::Result<(File, u32)> {
        let file = found.parent.read(found.name)?;
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata()?);
        Ok((file, mode & PERMISSIONS))
    };
    let (mut file, mode) = open().map_err(DirectoryError::file_error("open", found.path))?;
    let attributes = read_attributes(&file);
    let attributes =
        attributes.map_err(DirectoryError::file_error("read the attributes of", found.path))?;
    let kept = objects
        .keep_content(&mut file, most)
        .map_err(DirectoryError::file_error("save a copy of", found.path));
    let (size, digest) = kept?;
    let seconds = found.stat.st_mtime.saturating_mul(1_000_000_000);
    let modified_ns = seconds.saturating_add(found.stat.st_mtime_nsec);
    Ok((
        NodeKind::File { size, blake3: digest.to_hex().to_string(), mode, modified_ns },
        attributes,
    ))
}

fn link_target(found: &FoundNode<'_>) -> Result<String> {
    let target = found
        .parent
        .read_link(found.name)
        .map_err(DirectoryError::file_error("read the link", found.path))?;
    target.into_string().map_err(|_| {
        DirectoryError::refused_path(
            found.path,
            "is a link to a name that is not UTF-8; rename its target",
        )
    })
}

/// Returns the bytes that the file system of a directory can hold; the file system of a task's directory has the size of the task's
/// quota.
fn disk_room(directory: &Path) -> Result<u64> {
    let stat = DirectoryHandle::open(directory).and_then(|handle| Ok(fstatvfs(handle)?));
    let stat = stat
        .map_err(DirectoryError::file_error("ask for the size of the file system of", directory))?;
    Ok(stat.blocks().saturating_mul(stat.fragment_size()))
}

fn beyond_error(most: u64) -> DirectoryError {
    let what = format!(
        "files of more than {most} bytes with their holes filled, as they are sent, and may hold {most}; raise its \
         quota, or write less"
    );
    DirectoryError::Beyond { what }
}
