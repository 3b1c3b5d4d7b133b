//! Positions of the words in a progress page.

use std::time::Duration;

/// Size of the progress file.
pub const PAGE_BYTES: usize = 4096;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"DORMPROG");
pub(super) const VERSION: u64 = 1;

pub(super) const WORDS: usize = PAGE_BYTES / 8;
pub(super) const AT_MAGIC: usize = 0;
pub(super) const AT_VERSION: usize = 1;
pub(super) const AT_STATE: usize = 2;
pub(super) const AT_PPM: usize = 3;
pub(super) const AT_CPU_NS: usize = 4;
pub(super) const AT_UNITS: usize = 5;
pub(super) const AT_HEARTBEAT: usize = 6;
pub(super) const AT_HOLD: usize = 7;
pub(super) const AT_RANKS: usize = 8;
pub(super) const AT_PIDS: usize = 9;
pub(super) const AT_OWN: usize = WORDS - 2;
pub(super) const AT_FOREIGN: usize = WORDS - 1;

/// Greatest number of ranks whose process ids fit into a page.
pub const MAX_RANKS: usize = 256;

/// Index of the ranks' work counters, half a word for each rank, so that no two ranks write the
/// same.
pub(super) const AT_WORK: usize = AT_PIDS + MAX_RANKS;
const _: () = assert!(AT_WORK + MAX_RANKS / 2 <= AT_OWN);
/// Unit of the work counters: eleven hours fit.
pub(super) const WORK_UNIT: Duration = Duration::from_micros(10);
