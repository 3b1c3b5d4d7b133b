//! Memory shared by the processes of a parallel job: an anonymous mapping made before the fork,
//! with counters, results and a barrier.
//!
//! All waiting is on futexes in this memory, which CRIU restores with it: a process that waited
//! when it was dumped checks again when it is restored.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::kernel::{self, BlockChain};
use crate::meter::WorkMeter;
use crate::progress::{Progress, ProgressWriter, State};

/// Words of shared memory that all ranks of a parallel job use. They start at zero, as new memory does.
#[derive(Default)]
struct TeamWords {
    /// Futex that is 1 once the ranks may work.
    go: AtomicU32,
    /// Futex with the number of completed phases, on which ranks wait for the next phase.
    phase: AtomicU32,
    /// Number of ranks that have reached the end of the current phase.
    arrived: AtomicU32,
    /// Number of wrong results and of wrong words of memory found so far.
    wrong: AtomicU64,
    /// Number of times that progress was published.
    beats: AtomicU64,
    /// Lock held while a rank publishes progress.
    publishing: AtomicBool,
}

/// Words that one rank writes and other ranks read, on one or two cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct RankWords {
    pid: AtomicI32,
    units: AtomicU64,
    cpu_ns: AtomicU64,
    /// Blocks of work that the rank has done in the current phase.
    blocks: AtomicU64,
    /// Hash of all values that the rank has computed in the current phase.
    trail: AtomicU64,
    /// Last results of the rank in even and in odd phases: one is read while the other is written.
    result: [AtomicU64; 2],
    /// Expected values of the rank's last results in even and in odd phases.
    expected: [AtomicU64; 2],
}

/// CPU time, units of work and heartbeats of a parallel job, each summed over all ranks.
pub(super) struct TeamTotals {
    pub(super) cpu: Duration,
    pub(super) units: u64,
    pub(super) beats: u64,
}

/// Outcome of the checks of a parallel job's results.
pub(super) struct CheckedPhases {
    /// Number of phases in which every result was checked.
    pub(super) phases: u32,
    pub(super) wrong: u64,
    /// Sum of all ranks' last results, each the last value of the rank's chain of numbers.
    pub(super) sum: u64,
    pub(super) expected_sum: u64,
}

/// The memory that all processes of a parallel job share.
///
/// Use: the parent allocates it, sets each rank's start value, forks the ranks, stores their process ids and lets them go. Each
/// rank waits until it may start; in every phase it reads its start value, stores its result and waits for the other ranks. Once
/// all ranks have ended, the parent reads the outcome of the checks.
pub(super) struct SharedRegion {
    common: NonNull<TeamWords>,
    ranks: usize,
    /// Number of phases, from the first on, whose block counts are kept.
    told: u32,
}

impl SharedRegion {
    /// Allocates memory for `ranks` ranks, shared with all processes that are forked from now on; block counts of the
    /// first `told` phases are kept.
    pub(super) fn new(ranks: usize, told: u32) -> io::Result<Self> {
        // Miri has one process, and private memory alone.
        let sharing = if cfg!(miri) { libc::MAP_PRIVATE } else { libc::MAP_SHARED };
        #[expect(unsafe_code, reason = "the standard library has no mmap")]
        // SAFETY: a new mapping at an address of the kernel's choice; arguments are in range.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::bytes(ranks, told),
                libc::PROT_READ | libc::PROT_WRITE,
                sharing | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let common = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { common, ranks, told })
    }

    /// Returns the size of the mapping in bytes. The common words take the space of one rank's words, so that the ranks' words are
    /// aligned.
    const fn bytes(ranks: usize, told: u32) -> usize {
        assert!(size_of::<TeamWords>() <= size_of::<RankWords>());
        size_of::<RankWords>() * (ranks + 1) + 2 * size_of::<AtomicU64>() * ranks * told as usize
    }

    /// Returns the kept block counts of each rank, phase by phase, followed by the hashes of the ranks' computed values in the same
    /// order.
    fn kept_blocks(&self) -> &[AtomicU64] {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: after the desks the mapping holds so many counts, see `bytes`; they are aligned as the
        // desks are, and zeroes are valid.
        unsafe {
            let desks = self.common.cast::<RankWords>().add(1 + self.ranks);
            std::slice::from_raw_parts(
                desks.cast::<AtomicU64>().as_ptr(),
                2 * self.ranks * self.told as usize,
            )
        }
    }

    /// Returns the block counts of each rank, phase by phase, and the hashes of the ranks' computed values in the same order; to be
    /// called once all ranks have ended.
    pub(super) fn blocks_and_trails(&self) -> (Vec<u64>, Vec<u64>) {
        let read =
            |words: &[AtomicU64]| words.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        let (blocks, trails) = self.kept_blocks().split_at(self.ranks * self.told as usize);
        (read(blocks), read(trails))
    }

    fn team_words(&self) -> &TeamWords {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: the mapping begins with a `Common`, is aligned to a page and lives as long as
        // `self`; all its fields are atomics, for which zeroes are valid.
        unsafe {
            self.common.as_ref()
        }
    }

    fn rank_words(&self) -> &[RankWords] {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: after the place of one desk the mapping holds `ranks` of them, see `bytes`;
        // all their fields are atomics, for which zeroes are valid.
        unsafe {
            std::slice::from_raw_parts(self.common.cast::<RankWords>().add(1).as_ptr(), self.ranks)
        }
    }

    /// Sets a rank's start value in the first phase.
    pub(super) fn begin_at(&self, rank: usize, state: u64) {
        let desk = &self.rank_words()[rank];
        desk.result[0].store(state, Ordering::Relaxed);
        desk.expected[0].store(state, Ordering::Relaxed);
    }

    /// Stores a rank's process id.
    pub(super) fn set_pid(&self, rank: usize, pid: i32) {
        self.rank_words()[rank].pid.store(pid, Ordering::Relaxed);
    }

    /// Returns the ranks' PIDs, in the parent's PID namespace.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.rank_words().iter().map(|desk| desk.pid.load(Ordering::Relaxed)).collect()
    }

    /// Lets all ranks start.
    pub(super) fn let_go(&self) {
        self.team_words().go.store(1, Ordering::Release);
        wake_all(&self.team_words().go);
    }

    /// Waits until the ranks may start.
    pub(super) fn wait_until_let_go(&self) {
        wait_while(&self.team_words().go, 0);
    }

    /// Returns the start value of `rank` in phase `phase`.
    pub(super) fn start_of_phase(&self, rank: usize, phase: u32) -> u64 {
        let result = |rank: usize| {
            self.rank_words()[rank].result[phase_parity(phase)].load(Ordering::Relaxed)
        };
        kernel::join_results(result(rank), result(self.neighbour_of(rank)))
    }

    /// Stores the result of `rank` in phase `phase`: its chain after `blocks` blocks of work.
    pub(super) fn store_result(&self, rank: usize, phase: u32, chain: BlockChain, blocks: u64) {
        let desk = &self.rank_words()[rank];
        desk.result[phase_parity(phase + 1)].store(chain.state, Ordering::Relaxed);
        desk.trail.store(chain.trail, Ordering::Relaxed);
        desk.blocks.store(blocks, Ordering::Relaxed);
    }

    /// Waits until all ranks have stored their results of phase `phase`. The last rank to arrive checks the results.
    pub(super) fn meet_ranks(&self, phase: u32, page: Option<&ProgressWriter>) {
        let common = self.team_words();
        // AcqRel: the ranks' results are written before the last rank reads them, and it reads them
        // before the next phase.
        let arrived = common.arrived.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived as usize == self.ranks {
            self.check_phase(phase);
            if let Some(page) = page {
                page.write_ranks(&self.pids());
            }
            common.arrived.store(0, Ordering::Relaxed);
            common.phase.store(phase + 1, Ordering::Release);
            wake_all(&common.phase);
        } else {
            wait_while(&common.phase, phase);
        }
    }

    fn check_phase(&self, phase: u32) {
        let (old, new) = (phase_parity(phase), phase_parity(phase + 1));
        let expected = |rank: usize| self.rank_words()[rank].expected[old].load(Ordering::Relaxed);
        for (rank, desk) in self.rank_words().iter().enumerate() {
            let from = kernel::join_results(expected(rank), expected(self.neighbour_of(rank)));
            let blocks = desk.blocks.load(Ordering::Relaxed);
            let (all_blocks, all_trails) =
                self.kept_blocks().split_at(self.ranks * self.told as usize);
            let place = phase as usize * self.ranks + rank;
            if let (Some(kept), Some(trail)) = (all_blocks.get(place), all_trails.get(place)) {
                kept.store(blocks, Ordering::Relaxed);
                trail.store(desk.trail.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let right = kernel::chain_result(from, blocks);
            if desk.result[new].load(Ordering::Relaxed) != right {
                self.team_words().wrong.fetch_add(1, Ordering::Relaxed);
            }
            desk.expected[new].store(right, Ordering::Relaxed);
        }
    }

    /// Adds the number of wrong words in a rank's memory to the count of errors.
    pub(super) fn found_wrong(&self, words: u64) {
        self.team_words().wrong.fetch_add(words, Ordering::Relaxed);
    }

    /// Stores the CPU time and units of `rank` so far.
    pub(super) fn store_counts(&self, rank: usize, meter: &WorkMeter) {
        let desk = &self.rank_words()[rank];
        desk.units.store(meter.units(), Ordering::Relaxed);
        desk.cpu_ns.store(meter.spent().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Publishes the progress of all ranks, unless another rank is doing so at the moment.
    pub(super) fn publish_progress(
        &self,
        page: &ProgressWriter,
        fraction: impl Fn(&TeamTotals) -> f64,
    ) {
        let publishing = &self.team_words().publishing;
        if publishing.swap(true, Ordering::Acquire) {
            return;
        }
        self.team_words().beats.fetch_add(1, Ordering::Relaxed);
        let totals = self.sum_totals();
        page.write(&Progress {
            state: State::Running,
            ppm: ((fraction(&totals) * 1e6) as u64).min(Progress::COMPLETE - 1),
            cpu: totals.cpu,
            units: totals.units,
            heartbeat: totals.beats,
        });
        publishing.store(false, Ordering::Release);
    }

    /// Returns the CPU time of one rank so far.
    pub(super) fn cpu_time_of(&self, rank: usize) -> Duration {
        Duration::from_nanos(self.rank_words()[rank].cpu_ns.load(Ordering::Relaxed))
    }

    /// Returns the CPU time, units of work and heartbeats of the job so far, each summed over all ranks.
    pub(super) fn sum_totals(&self) -> TeamTotals {
        TeamTotals {
            cpu: (0..self.ranks).map(|rank| self.cpu_time_of(rank)).sum(),
            units: self.rank_words().iter().map(|desk| desk.units.load(Ordering::Relaxed)).sum(),
            // One is the parent's, when it was held.
            beats: self.team_words().beats.load(Ordering::Relaxed) + 1,
        }
    }

    /// Returns the outcome of the checks; to be called once all ranks have ended.
    pub(super) fn check_outcome(&self) -> CheckedPhases {
        let phases = self.team_words().phase.load(Ordering::Acquire);
        let sum = |of: fn(&RankWords) -> &[AtomicU64; 2]| {
            let last = self
                .rank_words()
                .iter()
                .map(|desk| of(desk)[phase_parity(phases)].load(Ordering::Relaxed));
            last.fold(0, u64::wrapping_add)
        };
        CheckedPhases {
            phases,
            wrong: self.team_words().wrong.load(Ordering::Relaxed),
            sum: sum(|desk| &desk.result),
            expected_sum: sum(|desk| &desk.expected),
        }
    }

    /// Returns the rank whose results `rank` uses.
    fn neighbour_of(&self, rank: usize) -> usize {
        (rank + 1) % self.ranks
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping ends with its owner")]
        // SAFETY: the start and the length of a mapping that nothing else refers to.
        unsafe {
            libc::munmap(self.common.as_ptr().cast(), Self::bytes(self.ranks, self.told));
        }
    }
}

fn phase_parity(phase: u32) -> usize {
    (phase % 2) as usize
}

/// Waits on the futex `word` while it has the value `value`.
fn wait_while(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        #[expect(unsafe_code, reason = "the standard library's futexes are of one process")]
        // SAFETY: a valid, aligned word of 32 bits; no timeout. Woken for nothing, by a signal
        // or a restore, it is looked at again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT,
                value,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }
}

/// Wakes all processes that wait on `word`.
fn wake_all(word: &AtomicU32) {
    #[expect(unsafe_code, reason = "the standard library's futexes are of one process")]
    // SAFETY: a valid, aligned word of 32 bits.
    unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    const RANKS: usize = 3;

    /// Three ranks, one after the other, in five phases of some blocks of work each; `disturb`
    /// may change what a rank leaves.
    fn after_five_phases(disturb: impl Fn(usize, u32, u64) -> u64) -> CheckedPhases {
        let region = SharedRegion::new(RANKS, 5).unwrap();
        for rank in 0..RANKS {
            region.begin_at(rank, kernel::start_value(1, rank));
        }
        for phase in 0..5 {
            for rank in 0..RANKS {
                let blocks = rank as u64 + u64::from(phase);
                let begun = region.start_of_phase(rank, phase);
                let chain = (0..blocks)
                    .fold(BlockChain::new(begun, 1, (rank, phase)), |chain, _| chain.do_block());
                let state = disturb(rank, phase, chain.state);
                region.store_result(rank, phase, BlockChain { state, ..chain }, blocks);
            }
            // Nobody waits: as the last to arrive, the third goes through.
            region.team_words().arrived.store(RANKS as u32 - 1, Ordering::Relaxed);
            region.meet_ranks(phase, None);
        }
        let (blocks, trails) = region.blocks_and_trails();
        assert_eq!(blocks, [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6]);
        let different: std::collections::BTreeSet<_> = trails.iter().collect();
        assert_eq!(different.len(), blocks.len(), "each place has a trail of its own");
        region.check_outcome()
    }

    #[test]
    fn right_results_verify() {
        let checked = after_five_phases(|_, _, state| state);
        assert_eq!((checked.phases, checked.wrong), (5, 0));
        assert_eq!(checked.sum, checked.expected_sum);
    }

    #[test]
    fn a_wrong_bit_is_found_and_spreads_to_those_that_take_it_in() {
        let checked =
            after_five_phases(|rank, phase, state| state ^ u64::from((rank, phase) == (1, 3)) << 9);
        // Rank 1 in phase 3; ranks 1 and 0 in the last.
        assert_eq!((checked.phases, checked.wrong), (5, 3));
        assert_ne!(checked.sum, checked.expected_sum);
    }

    #[test]
    fn a_rank_that_went_on_without_its_neighbour_is_found() {
        // It took in what its neighbour had left before, which is as if it had left nothing.
        let region = SharedRegion::new(1, 0).unwrap();
        region.begin_at(0, 5);
        region.store_result(0, 0, BlockChain::new(kernel::chain_result(5, 2), 1, (0, 0)), 2);
        region.meet_ranks(0, None);
        assert_eq!(region.check_outcome().wrong, 1);
    }
}
