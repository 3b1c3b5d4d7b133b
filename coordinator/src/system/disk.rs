//! The disk that a run is on: its last part is kept for the log of events, without which nothing goes on.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// So much of a disk is left free by checkpoints, in bytes, but no more than [`KEPT_PART`] of it.
const KEPT: u64 = 256 << 20;
/// The part of a small disk that is left free: a twentieth.
const KEPT_PART: u64 = 20;

/// Whether something other than the log may still be written at this path.
///
/// # Errors
///
/// [`io::ErrorKind::StorageFull`] where what is free is kept; or the system says nothing of the disk.
pub(crate) fn has_room(path: &Path) -> io::Result<()> {
    let disk = statvfs(path)?;
    let unit = disk.fragment_size();
    let (free, whole) = (disk.blocks_available() * unit, disk.blocks() * unit);
    if free < kept_space(whole) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// What of a disk of so many bytes is kept.
const fn kept_space(whole: u64) -> u64 {
    let part = whole / KEPT_PART;
    if part < KEPT { part } else { KEPT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_disk_keeps_a_fixed_part_and_a_small_one_a_share() {
        assert_eq!(kept_space(1 << 40), KEPT);
        assert_eq!(kept_space(40 << 20), 2 << 20);
        assert!(has_room(Path::new("/nowhere/at/all")).is_err());
    }
}
