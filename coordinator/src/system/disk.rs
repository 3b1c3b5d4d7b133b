//! The disk of a run's folder: its last part is reserved for the event log, without which the run can't continue.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Bytes of a disk that checkpoints leave free; on a small disk its [`KEPT_PART`]th part, if that is less.
const KEPT: u64 = 256 << 20;
/// Divisor for the part of a small disk that is left free: a twentieth.
const KEPT_PART: u64 = 20;

/// Checks that something other than the log may be written at this path.
///
/// # Errors
///
/// [`io::ErrorKind::StorageFull`] if the free disk space is reserved for the log; or the system doesn't tell it.
pub(crate) fn has_room(path: &Path) -> io::Result<()> {
    let disk = statvfs(path)?;
    let unit = disk.fragment_size();
    let (free, whole) = (disk.blocks_available() * unit, disk.blocks() * unit);
    if free < kept_space(whole) { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
}

/// Returns the reserved bytes of a disk of this size.
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
