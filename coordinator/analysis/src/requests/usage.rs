//! What of its hosts a provider's VMs use, over time.

use dormouse_units::Time;

/// Most bins; their width doubles when there would be more.
const MAX_BINS: usize = 2_000;

/// A quantity that is followed over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// vCPUs of on-demand VMs that run: that are ready, and neither hibernated nor gone.
    NormalVcpus,
    /// vCPUs of spot VMs that run.
    PreemptibleVcpus,
    /// Memory of on-demand VMs that run, in bytes.
    NormalMemory,
    /// Memory of spot VMs that run, in bytes.
    PreemptibleMemory,
    /// vCPUs of the hosts that there are.
    HostVcpus,
    /// Memory of the hosts that there are, in bytes.
    HostMemory,
}

const LEVELS: usize = 6;

/// What is counted as it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Requests that came.
    Requests,
    /// Normal requests that were refused.
    FailedNormal,
    /// Preemptible requests that were refused.
    FailedPreemptible,
    /// Spot VMs of requests that the provider ended.
    Terminations,
    /// What was charged for on-demand VMs of requests that ended, in nano-dollars.
    NormalRevenue,
    /// What was charged for spot VMs of requests that ended, in nano-dollars.
    PreemptibleRevenue,
}

const FLOWS: usize = 6;

/// A part of the run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// The integral of each level over it, in units × microseconds.
    levels: [u128; LEVELS],
    /// What was counted in it.
    flows: [i64; FLOWS],
}

impl Bin {
    fn with(&self, other: &Self) -> Self {
        let (mut levels, mut flows) = (self.levels, self.flows);
        levels.iter_mut().zip(other.levels).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        flows.iter_mut().zip(other.flows).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        Self { levels, flows }
    }

    /// The integral of a level over it, in units × microseconds.
    #[must_use]
    pub const fn integral(&self, of: Level) -> u128 {
        self.levels[of as usize]
    }

    /// What was counted in it.
    #[must_use]
    pub const fn count(&self, of: Flow) -> i64 {
        self.flows[of as usize]
    }

    /// The vCPUs that on-demand VMs used, and those that spot VMs did, as parts of those of the hosts;
    /// `None`: there were no hosts, or some without bounds.
    #[must_use]
    pub fn vcpus(&self) -> Option<(f64, f64)> {
        let (normal, preemptible) = (Level::NormalVcpus, Level::PreemptibleVcpus);
        self.parts([normal, preemptible], Level::HostVcpus)
    }

    /// The same of memory.
    #[must_use]
    pub fn memory(&self) -> Option<(f64, f64)> {
        let (normal, preemptible) = (Level::NormalMemory, Level::PreemptibleMemory);
        self.parts([normal, preemptible], Level::HostMemory)
    }

    fn parts(&self, of: [Level; 2], whole: Level) -> Option<(f64, f64)> {
        let whole = self.integral(whole);
        #[expect(clippy::cast_precision_loss, reason = "shares for people")]
        let part = |of| self.integral(of) as f64 / whole as f64;
        (whole > 0).then(|| (part(of[0]), part(of[1])))
    }
}

/// Levels and flows in equal bins from the beginning of the run on, exact in each; as many bins as are
/// needed, and few whatever the length of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    width_us: u64,
    /// The last one is under way.
    bins: Vec<Bin>,
    level: [u64; LEVELS],
    until: Time,
    /// All there was until now, and until the last request came.
    whole: Bin,
    until_arrival: Option<(Time, Bin)>,
    /// There is a host that holds everything: parts of it mean nothing.
    is_boundless: bool,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            width_us: 1_000_000,
            bins: vec![Bin::default()],
            level: [0; LEVELS],
            until: Time::ZERO,
            whole: Bin::default(),
            until_arrival: None,
            is_boundless: false,
        }
    }
}

impl Usage {
    /// Time passes until `now`.
    pub fn pass(&mut self, now: Time) {
        let mut from = self.until.as_micros();
        let until = now.as_micros();
        if until <= from {
            return;
        }
        for (sum, level) in self.whole.levels.iter_mut().zip(self.level) {
            *sum = sum.saturating_add(u128::from(level) * u128::from(until - from));
        }
        while until / self.width_us >= MAX_BINS as u64 {
            self.widen();
        }
        while from < until {
            let place = from / self.width_us;
            while (self.bins.len() as u64) <= place {
                self.bins.push(Bin::default());
            }
            let to = until.min((place + 1).saturating_mul(self.width_us));
            if let Some(bin) = self.bins.last_mut() {
                for (sum, level) in bin.levels.iter_mut().zip(self.level) {
                    *sum = sum.saturating_add(u128::from(level) * u128::from(to - from));
                }
            }
            from = to;
        }
        self.until = now;
    }

    /// Two bins become one of twice the width.
    fn widen(&mut self) {
        self.width_us *= 2;
        let one = |pair: &[Bin]| pair.iter().fold(Bin::default(), |sum, bin| sum.with(bin));
        self.bins = self.bins.chunks(2).map(one).collect();
    }

    /// From now on there is so much more of a level.
    pub fn more(&mut self, of: Level, by: u64) {
        let level = &mut self.level[of as usize];
        *level = level.saturating_add(by);
    }

    /// From now on there is so much less of a level.
    pub fn less(&mut self, of: Level, by: u64) {
        let level = &mut self.level[of as usize];
        *level = level.saturating_sub(by);
    }

    /// Something happens now.
    pub fn count(&mut self, of: Flow, by: i64) {
        let flow = &mut self.whole.flows[of as usize];
        *flow = flow.saturating_add(by);
        let place = self.until.as_micros() / self.width_us;
        while (self.bins.len() as u64) <= place {
            self.bins.push(Bin::default());
        }
        if let Some(bin) = self.bins.last_mut() {
            let flow = &mut bin.flows[of as usize];
            *flow = flow.saturating_add(by);
        }
    }

    /// A request comes now.
    pub fn arrival(&mut self) {
        self.until_arrival = Some((self.until, self.whole));
        self.count(Flow::Requests, 1);
    }

    /// There is a host that holds everything.
    pub const fn boundless(&mut self) {
        self.is_boundless = true;
    }

    /// Whether parts of the hosts' room mean anything.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        !self.is_boundless
    }

    /// What is used until the last request came, from the beginning on, when nobody had any VM yet; and
    /// when that was.
    #[must_use]
    pub const fn until_last_arrival(&self) -> Option<(Time, Bin)> {
        self.until_arrival
    }

    /// What the whole run came to.
    #[must_use]
    pub const fn whole(&self) -> &Bin {
        &self.whole
    }

    /// Until when it goes.
    #[must_use]
    pub const fn until(&self) -> Time {
        self.until
    }

    /// The bins as few as wanted, each with the time at which it begins and the one at which it ends.
    #[must_use]
    pub fn merged(&self, most: usize) -> Vec<(Time, Time, Bin)> {
        let bins: Vec<_> = self.bins().collect();
        let together = bins.len().div_ceil(most.max(1)).max(1);
        let one = |part: &[(Time, Time, &Bin)]| {
            let sum = part.iter().fold(Bin::default(), |sum, (.., bin)| sum.with(bin));
            let (from, until) = (part.first().map(|p| p.0), part.last().map(|p| p.1));
            (from.unwrap_or_default(), until.unwrap_or_default(), sum)
        };
        bins.chunks(together).map(one).collect()
    }

    /// The bins in order, each with the time at which it begins and the one at which it ends: all are
    /// equally long but for the last, which ends with the run.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = (Time, Time, &Bin)> {
        let at = |place: usize| Time::from_micros((place as u64).saturating_mul(self.width_us));
        let bins = self.bins.iter().enumerate();
        bins.map(move |(n, bin)| (at(n), at(n + 1).min(self.until.max(at(n))), bin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::from_secs(s)
    }

    #[test]
    fn the_times_and_levels_of_a_hostile_log_have_their_bins() {
        let mut usage = Usage::default();
        usage.more(Level::HostVcpus, u64::MAX);
        for us in [1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            usage.pass(Time::from_micros(us));
        }
        assert_eq!(usage.whole.levels[Level::HostVcpus as usize], u128::from(u64::MAX).pow(2));
        for _ in 0..2 {
            usage.count(Flow::NormalRevenue, i64::MAX);
        }
        assert_eq!(usage.whole.count(Flow::NormalRevenue), i64::MAX);
        let sum: Vec<_> =
            usage.merged(1).iter().map(|bin| bin.2.count(Flow::NormalRevenue)).collect();
        assert_eq!(sum, [i64::MAX]);
    }

    /// Levels and flows are what was put in, in whatever bins.
    #[test]
    fn every_bin_is_exact_however_wide() {
        let (mut usage, mut changes) = (Usage::default(), Vec::new());
        usage.more(Level::HostVcpus, 100);
        for n in 0..5_000_u64 {
            let (now, more) = (n * 3 + n * n % 3, n * 7 % 11);
            usage.pass(at(now));
            usage.more(Level::NormalVcpus, more);
            usage.count(Flow::Terminations, 1);
            changes.push((now, more));
            if n % 2 == 1 {
                usage.less(Level::NormalVcpus, changes[changes.len() - 2].1);
                let before = changes.len() - 2;
                changes[before].1 = 0;
            }
        }
        usage.pass(at(20_000));
        let bins: Vec<_> = usage.bins().collect();
        assert!(bins.len() <= MAX_BINS && bins.len() > MAX_BINS / 4, "{}", bins.len());
        // Second by second.
        let mut level = vec![0_u128; 20_001];
        let mut up = 0_u128;
        let mut replayed = std::collections::BTreeMap::<u64, i128>::new();
        for n in 0..5_000_u64 {
            let (now, more) = (n * 3 + n * n % 3, n * 7 % 11);
            *replayed.entry(now).or_default() += i128::from(more);
            if n % 2 == 1 {
                *replayed.entry(now).or_default() -= i128::from((n - 1) * 7 % 11);
            }
        }
        for (second, level) in level.iter_mut().enumerate() {
            let change = replayed.get(&(second as u64)).copied().unwrap_or_default();
            up = up.checked_add_signed(change).expect("never below nothing");
            *level = up;
        }
        for (from, until, bin) in &bins {
            let seconds = from.as_micros() / 1_000_000..until.as_micros() / 1_000_000;
            let sum: u128 = seconds.clone().map(|s| level[s as usize]).sum();
            assert_eq!(bin.integral(Level::NormalVcpus), sum * 1_000_000);
            let count = changes.iter().filter(|(at, _)| seconds.contains(at)).count();
            assert_eq!(bin.count(Flow::Terminations), count as i64, "{from} to {until}");
        }
        let whole: u128 = bins.iter().map(|(.., bin)| bin.integral(Level::NormalVcpus)).sum();
        assert_eq!(usage.whole().integral(Level::NormalVcpus), whole);
        let few = usage.merged(10);
        assert!(few.len() <= 10);
        let again: u128 = few.iter().map(|(.., bin)| bin.integral(Level::NormalVcpus)).sum();
        assert_eq!(again, whole);
    }

    #[test]
    fn what_is_used_until_the_last_request_leaves_out_the_rest() {
        let mut usage = Usage::default();
        usage.more(Level::HostVcpus, 4);
        usage.more(Level::PreemptibleVcpus, 2);
        usage.pass(at(10));
        usage.arrival();
        usage.more(Level::NormalVcpus, 2);
        usage.pass(at(20));
        usage.arrival();
        usage.less(Level::PreemptibleVcpus, 2);
        usage.pass(at(1_000));
        let (last, until) = usage.until_last_arrival().expect("requests came");
        assert_eq!((last, until.vcpus()), (at(20), Some((0.25, 0.5))));
    }
}
