//! The files and sockets that images open.

use super::{messages::FileEntry, names::ImageNames};

/// Kinds of open files that a jailed task can have, by their numbers in CRIU's `fdinfo.proto`: regular files, pipes and FIFOs,
/// sockets of the internet and of UNIX, eventfd, epoll, inotify, signalfd, terminals (whose paths are among the regular files),
/// timerfd, memfd, pidfd.
const KINDS: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 17, 18, 20];
/// Type number of raw sockets (`SOCK_RAW`), which only root can open.
const RAW: u32 = 3;

/// Checks an open file of the images; `names` checks paths below the tasks' root (`None`: tasks have no root of their own).
///
/// # Errors
///
/// In words, why the file is refused.
pub(super) fn look_at(file: &FileEntry, names: Option<&ImageNames>) -> Result<(), String> {
    let kind = file.r#type.unwrap_or_default();
    if !KINDS.contains(&kind) {
        return Err(format!("has a file of kind {kind}, which a task can't have"));
    }
    if file.isk.as_ref().is_some_and(|socket| socket.r#type == Some(RAW)) {
        return Err("has a raw socket, which a task can't have".to_owned());
    }
    let Some(names) = names else { return Ok(()) };
    if let Some(regular) = &file.reg {
        let name = regular.name.as_deref().unwrap_or_default();
        names.look_at(name.as_bytes()).map_err(|why| format!("opens {name:?}, which {why}"))?;
    }
    if let Some(socket) = &file.usk {
        let name = socket.name.as_deref().unwrap_or_default();
        names.look_at_socket(name, socket.name_dir.as_deref()).map_err(|why| {
            let name = String::from_utf8_lossy(name);
            format!("has a socket of the name {name:?}, which {why}")
        })?;
    }
    for watch in file.ify.iter().flat_map(|watches| &watches.wd) {
        let path = watch.f_handle.as_ref().and_then(|handle| handle.path.as_deref());
        let path = path.ok_or("watches a file without a path")?;
        names.look_at(path.as_bytes()).map_err(|why| format!("watches {path:?}, which {why}"))?;
    }
    Ok(())
}
