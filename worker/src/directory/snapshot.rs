//! Saving a task's directory.

use std::{collections::BTreeMap, fs::File, path::Path};

use nix::sys::statvfs::fstatvfs;

use super::{
    Error, Found, Kind, Node, Objects, Result,
    attributes::{MAX_ATTRIBUTES, read_attributes},
    handle::Handle,
    walk,
};

/// The permission bits that are kept: nobody becomes another by running a task's file.
pub(super) const PERMISSIONS: u32 = 0o777;
/// The bits that are kept of a directory: who may remove a file of it and which group its files get makes nobody another, and
/// CRIU goes on in a directory only if it has them all.
pub(super) const DIRECTORY_PERMISSIONS: u32 = 0o3777;

/// Saves a directory of a task that stands still: what is in it, and the contents of its files in `objects`.
///
/// Sockets are left out: whoever had one bound binds it again, by CRIU or by itself.
///
/// # Errors
/// It has something that cannot be saved, or more than its file system could hold without holes; a file cannot be
/// read or written.
pub(crate) fn snapshot(directory: &Path, objects: &Objects) -> Result<Vec<Node>> {
    let most = room(directory)?;
    let (mut nodes, mut bytes, mut described) = (Vec::new(), 0_u64, 0);
    let mut first_names: BTreeMap<(u64, u64), String> = BTreeMap::new();
    walk(directory, |found| {
        let mode = found.stat.st_mode & PERMISSIONS;
        let mut attributes = BTreeMap::new();
        let kind = match found.kind() {
            libc::S_IFDIR => {
                let read = found.parent.enter(found.name).and_then(read_attributes);
                attributes = read.map_err(Error::file("read the attributes of", found.path))?;
                Kind::Directory { mode: found.stat.st_mode & DIRECTORY_PERMISSIONS }
            }
            libc::S_IFIFO => Kind::Pipe { mode },
            libc::S_IFSOCK => return Ok(()),
            libc::S_IFLNK => Kind::Link { target: target(found)? },
            libc::S_IFREG => {
                let inode = (found.stat.st_dev, found.stat.st_ino);
                match first_names.get(&inode) {
                    Some(first) => Kind::SameAs { path: first.clone() },
                    None => {
                        if found.stat.st_nlink > 1 {
                            first_names.insert(inode, found.path.to_owned());
                        }
                        bytes = bytes.saturating_add(found.bytes());
                        if bytes > most {
                            return Err(beyond(most));
                        }
                        let (kind, given) = regular(found, objects, most)?;
                        attributes = given;
                        kind
                    }
                }
            }
            _ => {
                let why = "is a device, which no checkpoint can hold; remove it";
                return Err(Error::refused(found.path, why));
            }
        };
        described += attributes.iter().map(|(name, hex)| name.len() + hex.len()).sum::<usize>();
        if described > MAX_ATTRIBUTES {
            let what = format!("attributes of more than {MAX_ATTRIBUTES} bytes; remove some");
            return Err(Error::Beyond { what });
        }
        nodes.push(Node { path: found.path.to_owned(), kind, attributes });
        Ok(())
    })?;
    Ok(nodes)
}

fn regular(
    found: &Found<'_>,
    objects: &Objects,
    most: u64,
) -> Result<(Kind, BTreeMap<String, String>)> {
    let open = || -> std::io::Result<(File, u32)> {
        let file = found.parent.read(found.name)?;
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata()?);
        Ok((file, mode & PERMISSIONS))
    };
    let (mut file, mode) = open().map_err(Error::file("open", found.path))?;
    let attributes = read_attributes(&file);
    let attributes = attributes.map_err(Error::file("read the attributes of", found.path))?;
    let kept = objects.keep(&mut file, most).map_err(Error::file("save a copy of", found.path));
    let (size, digest) = kept?;
    let seconds = found.stat.st_mtime.saturating_mul(1_000_000_000);
    let modified_ns = seconds.saturating_add(found.stat.st_mtime_nsec);
    Ok((Kind::File { size, blake3: digest.to_hex().to_string(), mode, modified_ns }, attributes))
}

fn target(found: &Found<'_>) -> Result<String> {
    let target = found.parent.link(found.name).map_err(Error::file("read the link", found.path))?;
    target.into_string().map_err(|_| {
        Error::refused(found.path, "is a link to a name that is not UTF-8; rename its target")
    })
}

/// The number of bytes that the file system of a directory could hold: that of a task's directory
/// is as large as its quota.
fn room(directory: &Path) -> Result<u64> {
    let stat = Handle::open(directory).and_then(|handle| Ok(fstatvfs(handle)?));
    let stat = stat.map_err(Error::file("ask for the size of the file system of", directory))?;
    Ok(stat.blocks().saturating_mul(stat.fragment_size()))
}

fn beyond(most: u64) -> Error {
    let what = format!(
        "files of more than {most} bytes with their holes filled, as they are sent, and may hold {most}; raise its \
         quota, or write less"
    );
    Error::Beyond { what }
}
