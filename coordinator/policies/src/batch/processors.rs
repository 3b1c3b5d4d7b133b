//! The processors with the jobs on them, as the scheduler knows them, and the choice of processors
//! for a job.

use dormouse_units::{Cpus, Ppm, TaskId, Usage};

use super::config::Config;

/// A process in a VM, with its CPU usage.
#[derive(Clone, Copy, Debug)]
struct SeatedProcess {
    job: TaskId,
    usage: Ppm,
}

/// One processor: the process in its foreground and the one in its background; `None`: idle.
#[derive(Clone, Copy, Debug, Default)]
struct TwoTierProcessor {
    foreground: Option<SeatedProcess>,
    background: Option<SeatedProcess>,
}

/// All processors, each with its foreground and its background VM.
#[derive(Clone, Debug)]
pub(crate) struct TwoTierProcessors {
    all: Vec<TwoTierProcessor>,
    /// One bit per processor: set if its foreground is idle.
    idle: Vec<u64>,
    idle_count: u32,
    /// One bit per processor: set if a process is in its background.
    shared: Vec<u64>,
    /// One bit per processor: set if the process in its foreground uses so little of the processor that a background
    /// process is worthwhile.
    lends: Vec<u64>,
    /// CPU usage of a foreground process below which a background VM may use its processor too.
    usable_below: Ppm,
    /// True if a background VM may also be used where no foreground process runs.
    usable_idle: bool,
    /// Processors being chosen, a buffer that is empty between choices.
    chosen: Vec<u32>,
}

/// Numbers of the bits that are set in `words`, ascending: bit 0 is the lowest bit of the first
/// word.
fn set_bits(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    words.zip((0_u32..).step_by(64)).flat_map(|(word, base)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(base + bit)
        })
    })
}

/// Applies `change(word, bits)` to each of `words` that holds one of the bits numbered `on`.
/// Neighbouring numbers share one call per word, because reading a word that was just written
/// stalls.
fn change_bits(words: &mut [u64], on: &[u32], change: impl Fn(&mut u64, u64)) {
    let (mut at, mut bits) = (0, 0);
    for &p in on {
        if p / 64 != at {
            change(&mut words[at as usize], bits);
            (at, bits) = (p / 64, 0);
        }
        bits |= 1_u64 << (p % 64);
    }
    if let Some(word) = words.get_mut(at as usize) {
        change(word, bits);
    }
}

impl TwoTierProcessors {
    pub(crate) fn new(config: &Config) -> Self {
        let Config { processors: count, usable_below, usable_idle, .. } = *config;
        let mut all_idle = Self {
            all: vec![TwoTierProcessor::default(); count as usize],
            idle: vec![0; (count as usize).div_ceil(64)],
            idle_count: count,
            shared: vec![0; (count as usize).div_ceil(64)],
            lends: vec![0; (count as usize).div_ceil(64)],
            usable_below,
            usable_idle: usable_idle && usable_below > Ppm::ZERO,
            chosen: Vec::new(),
        };
        for p in 0..count {
            all_idle.idle[p as usize / 64] |= 1 << (p % 64);
        }
        all_idle
    }

    /// Processors whose foreground VM is idle.
    pub(crate) fn idle_foregrounds(&self) -> u32 {
        self.idle_count
    }

    /// Idle foregrounds for `count` processes, least used background first (Dispatch in Algorithm
    /// 2), without processors that have a background process of `avoid`; `None` if there are not
    /// enough.
    pub(crate) fn choose_foreground(&mut self, count: u32, avoid: Option<TaskId>) -> Option<Cpus> {
        let mut chosen = std::mem::take(&mut self.chosen);
        let found = self.choose_least_used(count as usize, avoid, &mut chosen);
        let on = found.then(|| Cpus::from(&*chosen));
        chosen.clear();
        self.chosen = chosen;
        on
    }

    fn choose_least_used(
        &self,
        count: usize,
        avoid: Option<TaskId>,
        chosen: &mut Vec<u32>,
    ) -> bool {
        let words = || self.idle.iter().zip(&self.shared);
        for ((idle, shared), base) in words().zip((0..).step_by(64)) {
            let mut left = idle & !shared;
            while left != 0 && chosen.len() < count {
                chosen.push(base + left.trailing_zeros());
                left &= left - 1;
            }
        }
        let missing = count - chosen.len();
        if missing == 0 {
            return true;
        }
        let mut beside = Vec::new();
        for p in set_bits(words().map(|(idle, shared)| idle & shared)) {
            if let Some(seat) = self.all[p as usize].background.filter(|s| Some(s.job) != avoid) {
                beside.push((seat.usage, p));
            }
        }
        if beside.len() < missing {
            return false;
        }
        beside.sort_unstable();
        chosen.extend(beside[..missing].iter().map(|&(_, p)| p));
        true
    }

    /// Words of the bit sets of idle background VMs that a job may use: in each pair, first the VMs below a busy
    /// foreground, then those below an idle one.
    fn usable_backgrounds(&self) -> impl Iterator<Item = (u64, u64)> {
        let words = self.idle.iter().zip(&self.shared).zip(&self.lends);
        words.map(|((idle, shared), lends)| {
            (lends & !shared, if self.usable_idle { idle & !shared } else { 0 })
        })
    }

    /// Number of background VMs that are idle and of use.
    pub(crate) fn background_room(&self) -> usize {
        self.usable_backgrounds()
            .map(|(below, idle)| (below.count_ones() + idle.count_ones()) as usize)
            .sum()
    }

    /// Processors of the first `count` background VMs that are idle and of use, or of all if there are fewer, least
    /// used foreground first.
    pub(crate) fn first_backgrounds(&self, count: usize) -> Vec<u32> {
        // The CPU usage of the foreground in the upper half, and the processor's number in the lower.
        let mut keys: Vec<u64> = Vec::with_capacity(self.all.len());
        keys.extend(set_bits(self.usable_backgrounds().map(|(below, _)| below)).map(|p| {
            let usage = self.all[p as usize].foreground.map_or(Ppm::ZERO, |seat| seat.usage);
            u64::from(usage.get()) << 32 | u64::from(p)
        }));
        keys.extend(set_bits(self.usable_backgrounds().map(|(_, idle)| idle)).map(u64::from));
        if (1..keys.len()).contains(&count) {
            keys.select_nth_unstable(count - 1);
        }
        keys.truncate(count);
        keys.sort_unstable();
        keys.into_iter().map(|key| key as u32).collect()
    }

    pub(crate) fn sit_foreground(&mut self, job: TaskId, usage: &Usage, on: &[u32]) {
        // A usage that all processes share is looked up once.
        let uniform = usage.uniform_usage();
        for (n, &p) in on.iter().enumerate() {
            let usage = uniform.unwrap_or_else(|| usage.of_process(n));
            self.all[p as usize].foreground = Some(SeatedProcess { job, usage });
            if uniform.is_none() && usage < self.usable_below {
                self.lends[p as usize / 64] |= 1 << (p % 64);
            }
        }
        if uniform.is_some_and(|usage| usage < self.usable_below) {
            change_bits(&mut self.lends, on, |word, bits| *word |= bits);
        }
        change_bits(&mut self.idle, on, |word, bits| *word &= !bits);
        self.idle_count -= len(on);
    }

    pub(crate) fn leave_foreground(&mut self, on: &[u32]) {
        for &p in on {
            self.all[p as usize].foreground = None;
        }
        change_bits(&mut self.lends, on, |word, bits| *word &= !bits);
        change_bits(&mut self.idle, on, |word, bits| *word |= bits);
        self.idle_count += len(on);
    }

    pub(crate) fn sit_background(&mut self, job: TaskId, usage: &Usage, on: &[u32]) {
        for (n, &p) in on.iter().enumerate() {
            self.all[p as usize].background =
                Some(SeatedProcess { job, usage: usage.of_process(n) });
        }
        change_bits(&mut self.shared, on, |word, bits| *word |= bits);
    }

    pub(crate) fn leave_background(&mut self, on: &[u32]) {
        for &p in on {
            self.all[p as usize].background = None;
        }
        change_bits(&mut self.shared, on, |word, bits| *word &= !bits);
    }

    /// True if no foreground VM of the processors `on` has a process.
    pub(crate) fn are_idle(&self, on: &[u32]) -> bool {
        on.iter().all(|&p| self.all[p as usize].foreground.is_none())
    }

    /// Number of the processors `on` whose foreground VM is idle.
    pub(crate) fn idle_among(&self, on: &[u32]) -> u32 {
        len(on) - self.foreground_jobs(on).count() as u32
    }

    /// The job in the foreground of each of the processors `on`; an idle foreground has no entry.
    pub(crate) fn foreground_jobs(&self, on: &[u32]) -> impl Iterator<Item = TaskId> {
        on.iter().filter_map(|&p| self.all[p as usize].foreground.map(|seat| seat.job))
    }
}

fn len(on: &[u32]) -> u32 {
    u32::try_from(on.len()).unwrap_or(u32::MAX)
}
