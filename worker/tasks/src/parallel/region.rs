//! The memory that the processes of a parallel job share: anonymous memory, mapped before they were
//! forked, in which they count, leave their results and meet.
//!
//! All waiting is on futexes of this memory, which CRIU restores with it: a process that waited
//! when it was dumped looks again when it is restored.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::kernel::{self, BlockChain};
use crate::meter::Meter;
use crate::progress::{Progress, ProgressWriter, State};

/// All counts start at zero, as the kernel hands out memory.
#[derive(Default)]
struct Common {
    /// 1 once the ranks may work. A futex.
    go: AtomicU32,
    /// The number of phases that are over. A futex: who has arrived waits for it to change.
    phase: AtomicU32,
    /// The number of ranks that have arrived at the end of this phase.
    arrived: AtomicU32,
    /// Results and words of memory that were not as they should be.
    wrong: AtomicU64,
    /// Times that progress was published.
    beats: AtomicU64,
    /// Held by the one that publishes.
    publishing: AtomicBool,
}

/// The words that one rank leaves for the others. A cache line of its own, or two.
#[derive(Default)]
#[repr(align(128))]
struct Desk {
    pid: AtomicI32,
    units: AtomicU64,
    cpu_ns: AtomicU64,
    /// Blocks of work in the phase that is coming to its end.
    blocks: AtomicU64,
    /// The trail of these.
    trail: AtomicU64,
    /// Results of even and of odd phases: one is read while the other is written.
    result: [AtomicU64; 2],
    /// The values that the results should have.
    expected: [AtomicU64; 2],
}

/// The sums over all ranks.
pub(super) struct Totals {
    pub(super) cpu: Duration,
    pub(super) units: u64,
    pub(super) beats: u64,
}

/// The outcome of the checks.
pub(super) struct Checked {
    /// Phases in which every result was checked.
    pub(super) phases: u32,
    pub(super) wrong: u64,
    /// The sum of all ranks' last results, and what it should be.
    pub(super) sum: u64,
    pub(super) expected_sum: u64,
}

/// The shared memory.
pub(super) struct Region {
    common: NonNull<Common>,
    ranks: usize,
    /// Phases of which the blocks of work are kept.
    told: u32,
}

impl Region {
    /// Memory for so many ranks, to be shared with all processes forked from now on, in which the blocks
    /// of work of the first phases are kept.
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

    /// The common part fits where a desk does, so the desks begin aligned.
    const fn bytes(ranks: usize, told: u32) -> usize {
        assert!(size_of::<Common>() <= size_of::<Desk>());
        size_of::<Desk>() * (ranks + 1) + 2 * size_of::<AtomicU64>() * ranks * told as usize
    }

    /// The blocks of work of each rank, phase by phase, as far as they are kept; behind all of them their trails.
    fn kept(&self) -> &[AtomicU64] {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: after the desks the mapping holds so many counts, see `bytes`; they are aligned as the
        // desks are, and zeroes are valid.
        unsafe {
            let desks = self.common.cast::<Desk>().add(1 + self.ranks);
            std::slice::from_raw_parts(
                desks.cast::<AtomicU64>().as_ptr(),
                2 * self.ranks * self.told as usize,
            )
        }
    }

    /// The blocks of work of each rank, phase by phase, and the trails of these, once all ranks have ended.
    pub(super) fn blocks_and_trails(&self) -> (Vec<u64>, Vec<u64>) {
        let read =
            |words: &[AtomicU64]| words.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        let (blocks, trails) = self.kept().split_at(self.ranks * self.told as usize);
        (read(blocks), read(trails))
    }

    fn common(&self) -> &Common {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: the mapping begins with a `Common`, is aligned to a page and lives as long as
        // `self`; all its fields are atomics, for which zeroes are valid.
        unsafe {
            self.common.as_ref()
        }
    }

    fn desks(&self) -> &[Desk] {
        #[expect(unsafe_code, reason = "a mapping is a raw pointer")]
        // SAFETY: after the place of one desk the mapping holds `ranks` of them, see `bytes`;
        // all their fields are atomics, for which zeroes are valid.
        unsafe {
            std::slice::from_raw_parts(self.common.cast::<Desk>().add(1).as_ptr(), self.ranks)
        }
    }

    /// Sets what a rank starts from.
    pub(super) fn begin_at(&self, rank: usize, state: u64) {
        let desk = &self.desks()[rank];
        desk.result[0].store(state, Ordering::Relaxed);
        desk.expected[0].store(state, Ordering::Relaxed);
    }

    /// Notes who a rank is.
    pub(super) fn set_pid(&self, rank: usize, pid: i32) {
        self.desks()[rank].pid.store(pid, Ordering::Relaxed);
    }

    /// The ranks' PIDs, in the parent's namespace.
    pub(super) fn pids(&self) -> Vec<i32> {
        self.desks().iter().map(|desk| desk.pid.load(Ordering::Relaxed)).collect()
    }

    /// Lets all ranks go.
    pub(super) fn let_go(&self) {
        self.common().go.store(1, Ordering::Release);
        wake_all(&self.common().go);
    }

    /// Waits until the ranks may go.
    pub(super) fn wait_until_let_go(&self) {
        wait_while(&self.common().go, 0);
    }

    /// The value with which `rank` begins phase `phase`.
    pub(super) fn joined(&self, rank: usize, phase: u32) -> u64 {
        let result = |rank: usize| self.desks()[rank].result[parity(phase)].load(Ordering::Relaxed);
        kernel::join(result(rank), result(self.neighbour(rank)))
    }

    /// Leaves what `rank` came to in phase `phase` by so many blocks of work.
    pub(super) fn leave(&self, rank: usize, phase: u32, chain: BlockChain, blocks: u64) {
        let desk = &self.desks()[rank];
        desk.result[parity(phase + 1)].store(chain.state, Ordering::Relaxed);
        desk.trail.store(chain.trail, Ordering::Relaxed);
        desk.blocks.store(blocks, Ordering::Relaxed);
    }

    /// Waits until all ranks have left their results of phase `phase`. The last one checks them.
    pub(super) fn meet(&self, phase: u32, page: Option<&ProgressWriter>) {
        let common = self.common();
        // What the ranks left happens before the last one's reading, and that before the next
        // phase.
        let arrived = common.arrived.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived as usize == self.ranks {
            self.check(phase);
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

    fn check(&self, phase: u32) {
        let (old, new) = (parity(phase), parity(phase + 1));
        let expected = |rank: usize| self.desks()[rank].expected[old].load(Ordering::Relaxed);
        for (rank, desk) in self.desks().iter().enumerate() {
            let from = kernel::join(expected(rank), expected(self.neighbour(rank)));
            let blocks = desk.blocks.load(Ordering::Relaxed);
            let (all_blocks, all_trails) = self.kept().split_at(self.ranks * self.told as usize);
            let place = phase as usize * self.ranks + rank;
            if let (Some(kept), Some(trail)) = (all_blocks.get(place), all_trails.get(place)) {
                kept.store(blocks, Ordering::Relaxed);
                trail.store(desk.trail.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            let right = kernel::result(from, blocks);
            if desk.result[new].load(Ordering::Relaxed) != right {
                self.common().wrong.fetch_add(1, Ordering::Relaxed);
            }
            desk.expected[new].store(right, Ordering::Relaxed);
        }
    }

    /// Counts what was found wrong in a rank's memory.
    pub(super) fn found_wrong(&self, words: u64) {
        self.common().wrong.fetch_add(words, Ordering::Relaxed);
    }

    /// Counts what `rank` has done so far.
    pub(super) fn count(&self, rank: usize, meter: &Meter) {
        let desk = &self.desks()[rank];
        desk.units.store(meter.units(), Ordering::Relaxed);
        desk.cpu_ns.store(meter.spent().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Publishes the progress of all ranks, unless another one is just doing that.
    pub(super) fn publish(&self, page: &ProgressWriter, fraction: impl Fn(&Totals) -> f64) {
        let publishing = &self.common().publishing;
        if publishing.swap(true, Ordering::Acquire) {
            return;
        }
        self.common().beats.fetch_add(1, Ordering::Relaxed);
        let totals = self.totals();
        page.write(&Progress {
            state: State::Running,
            ppm: ((fraction(&totals) * 1e6) as u64).min(Progress::COMPLETE - 1),
            cpu: totals.cpu,
            units: totals.units,
            heartbeat: totals.beats,
        });
        publishing.store(false, Ordering::Release);
    }

    /// CPU time of one rank.
    pub(super) fn cpu(&self, rank: usize) -> Duration {
        Duration::from_nanos(self.desks()[rank].cpu_ns.load(Ordering::Relaxed))
    }

    /// Sums over all ranks.
    pub(super) fn totals(&self) -> Totals {
        Totals {
            cpu: (0..self.ranks).map(|rank| self.cpu(rank)).sum(),
            units: self.desks().iter().map(|desk| desk.units.load(Ordering::Relaxed)).sum(),
            // One is the parent's, when it was held.
            beats: self.common().beats.load(Ordering::Relaxed) + 1,
        }
    }

    /// The outcome of the checks, once all ranks have ended.
    pub(super) fn checked(&self) -> Checked {
        let phases = self.common().phase.load(Ordering::Acquire);
        let sum = |of: fn(&Desk) -> &[AtomicU64; 2]| {
            let last =
                self.desks().iter().map(|desk| of(desk)[parity(phases)].load(Ordering::Relaxed));
            last.fold(0, u64::wrapping_add)
        };
        Checked {
            phases,
            wrong: self.common().wrong.load(Ordering::Relaxed),
            sum: sum(|desk| &desk.result),
            expected_sum: sum(|desk| &desk.expected),
        }
    }

    /// The rank whose results `rank` takes in.
    fn neighbour(&self, rank: usize) -> usize {
        (rank + 1) % self.ranks
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping ends with its owner")]
        // SAFETY: the start and the length of a mapping that nothing else refers to.
        unsafe {
            libc::munmap(self.common.as_ptr().cast(), Self::bytes(self.ranks, self.told));
        }
    }
}

fn parity(phase: u32) -> usize {
    (phase % 2) as usize
}

/// Waits for as long as `word` is `value`.
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

/// Wakes all processes that wait at `word`.
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
    fn after_five_phases(disturb: impl Fn(usize, u32, u64) -> u64) -> Checked {
        let region = Region::new(RANKS, 5).unwrap();
        for rank in 0..RANKS {
            region.begin_at(rank, kernel::start(1, rank));
        }
        for phase in 0..5 {
            for rank in 0..RANKS {
                let blocks = rank as u64 + u64::from(phase);
                let begun = region.joined(rank, phase);
                let chain = (0..blocks)
                    .fold(BlockChain::new(begun, 1, (rank, phase)), |chain, _| chain.block());
                let state = disturb(rank, phase, chain.state);
                region.leave(rank, phase, BlockChain { state, ..chain }, blocks);
            }
            // Nobody waits: as the last to arrive, the third goes through.
            region.common().arrived.store(RANKS as u32 - 1, Ordering::Relaxed);
            region.meet(phase, None);
        }
        let (blocks, trails) = region.blocks_and_trails();
        assert_eq!(blocks, [0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 6]);
        let different: std::collections::BTreeSet<_> = trails.iter().collect();
        assert_eq!(different.len(), blocks.len(), "each place has a trail of its own");
        region.checked()
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
        let region = Region::new(1, 0).unwrap();
        region.begin_at(0, 5);
        region.leave(0, 0, BlockChain::new(kernel::result(5, 2), 1, (0, 0)), 2);
        region.meet(0, None);
        assert_eq!(region.checked().wrong, 1);
    }
}
