//! Use of the provider's hosts by its VMs, over time.

use dormouse_units::Time;

/// Greatest number of bins; the width of the bins doubles when there would be more.
const MAX_BINS: usize = 2_000;

/// A quantity with a current value, whose integral over time is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageLevel {
    /// vCPUs of running on-demand VMs: ready, and neither hibernated nor gone.
    NormalVcpus,
    /// vCPUs of running spot VMs: ready, and neither hibernated nor gone.
    PreemptibleVcpus,
    /// Memory of running on-demand VMs, in bytes.
    NormalMemory,
    /// Memory of running spot VMs, in bytes.
    PreemptibleMemory,
    /// vCPUs of the hosts.
    HostVcpus,
    /// Memory of the hosts, in bytes.
    HostMemory,
}

const LEVELS: usize = 6;

/// An event, or money, that is counted when it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageFlow {
    /// Number of requests that arrived.
    Requests,
    /// Number of normal requests that were refused.
    FailedNormal,
    /// Number of preemptible requests that were refused.
    FailedPreemptible,
    /// Number of spot VMs of requests that the provider ended.
    Terminations,
    /// Charges for on-demand VMs of requests that ended, in nano-dollars.
    NormalRevenue,
    /// Charges for spot VMs of requests that ended, in nano-dollars.
    PreemptibleRevenue,
}

const FLOWS: usize = 6;

/// Integrals and counts over a part of the run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageBin {
    /// Integral of each [`UsageLevel`], in its order, in the quantity's unit × microseconds.
    levels: [u128; LEVELS],
    /// Sum or number of each [`UsageFlow`], in its order.
    flows: [i64; FLOWS],
}

impl UsageBin {
    fn with(&self, other: &Self) -> Self {
        let (mut levels, mut flows) = (self.levels, self.flows);
        levels.iter_mut().zip(other.levels).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        flows.iter_mut().zip(other.flows).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        Self { levels, flows }
    }

    /// Integral of a quantity over the bin, in the quantity's unit × microseconds.
    #[must_use]
    pub const fn integral(&self, of: UsageLevel) -> u128 {
        self.levels[of as usize]
    }

    /// Number of events of this kind in the bin, or, for revenue, sum in nano-dollars.
    #[must_use]
    pub const fn count(&self, of: UsageFlow) -> i64 {
        self.flows[of as usize]
    }

    /// vCPUs used by on-demand and by spot VMs, as parts of the hosts' vCPUs; `None` if the hosts had no vCPUs.
    #[must_use]
    pub fn vcpus(&self) -> Option<(f64, f64)> {
        let (normal, preemptible) = (UsageLevel::NormalVcpus, UsageLevel::PreemptibleVcpus);
        self.parts_of([normal, preemptible], UsageLevel::HostVcpus)
    }

    /// Memory used by on-demand and by spot VMs, as parts of the hosts' memory; `None` if the hosts had no memory.
    #[must_use]
    pub fn memory(&self) -> Option<(f64, f64)> {
        let (normal, preemptible) = (UsageLevel::NormalMemory, UsageLevel::PreemptibleMemory);
        self.parts_of([normal, preemptible], UsageLevel::HostMemory)
    }

    fn parts_of(&self, of: [UsageLevel; 2], whole: UsageLevel) -> Option<(f64, f64)> {
        let whole = self.integral(whole);
        #[expect(clippy::cast_precision_loss, reason = "shares for people")]
        let part = |of| self.integral(of) as f64 / whole as f64;
        (whole > 0).then(|| (part(of[0]), part(of[1])))
    }
}

/// Integrals of quantities and counts of events in bins of equal width from the beginning of the
/// run on, exact in each bin; the number of bins is bounded even in long runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostUsage {
    width_us: u64,
    /// The bins of the run so far; the last one is not complete yet.
    bins: Vec<UsageBin>,
    level: [u64; LEVELS],
    until: Time,
    /// Integrals of quantities and counts of events, from the beginning of the run until now; `until_arrival` has them until the
    /// last request arrived.
    whole: UsageBin,
    until_arrival: Option<(Time, UsageBin)>,
    /// True if a host without bounds exists: then fractions of the capacity mean nothing.
    is_boundless: bool,
}

impl Default for HostUsage {
    fn default() -> Self {
        Self {
            width_us: 1_000_000,
            bins: vec![UsageBin::default()],
            level: [0; LEVELS],
            until: Time::ZERO,
            whole: UsageBin::default(),
            until_arrival: None,
            is_boundless: false,
        }
    }
}

impl HostUsage {
    /// Integrates all levels, such as the used vCPUs, over the time up to `now`.
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
            self.double_width();
        }
        while from < until {
            let place = from / self.width_us;
            while (self.bins.len() as u64) <= place {
                self.bins.push(UsageBin::default());
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

    /// Doubles the width of the bins: each two neighbours become one.
    fn double_width(&mut self) {
        self.width_us *= 2;
        let one =
            |pair: &[UsageBin]| pair.iter().fold(UsageBin::default(), |sum, bin| sum.with(bin));
        self.bins = self.bins.chunks(2).map(one).collect();
    }

    /// Raises the current value of a quantity by `by`.
    pub fn more(&mut self, of: UsageLevel, by: u64) {
        let level = &mut self.level[of as usize];
        *level = level.saturating_add(by);
    }

    /// Lowers the current value of a quantity by `by`.
    pub fn less(&mut self, of: UsageLevel, by: u64) {
        let level = &mut self.level[of as usize];
        *level = level.saturating_sub(by);
    }

    /// Counts `by` events, or for revenue `by` nano-dollars, at the present time.
    pub fn count(&mut self, of: UsageFlow, by: i64) {
        let flow = &mut self.whole.flows[of as usize];
        *flow = flow.saturating_add(by);
        let place = self.until.as_micros() / self.width_us;
        while (self.bins.len() as u64) <= place {
            self.bins.push(UsageBin::default());
        }
        if let Some(bin) = self.bins.last_mut() {
            let flow = &mut bin.flows[of as usize];
            *flow = flow.saturating_add(by);
        }
    }

    /// Counts the arrival of a request.
    pub fn arrival(&mut self) {
        self.until_arrival = Some((self.until, self.whole));
        self.count(UsageFlow::Requests, 1);
    }

    /// Records that a host without bounds exists.
    pub const fn boundless(&mut self) {
        self.is_boundless = true;
    }

    /// Whether all hosts have bounds, so that use can be given as a part of their capacity.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        !self.is_boundless
    }

    /// Time at which the last request arrived, and the integrals and counts from the run's beginning until then; `None` if no
    /// request arrived.
    #[must_use]
    pub const fn until_last_arrival(&self) -> Option<(Time, UsageBin)> {
        self.until_arrival
    }

    /// Integrals and counts of the whole run.
    #[must_use]
    pub const fn whole(&self) -> &UsageBin {
        &self.whole
    }

    /// Time up to which all quantities are integrated.
    #[must_use]
    pub const fn until(&self) -> Time {
        self.until
    }

    /// At most `most` bins, merged from neighbours, each with its beginning and end.
    #[must_use]
    pub fn merged(&self, most: usize) -> Vec<(Time, Time, UsageBin)> {
        let bins: Vec<_> = self.bins().collect();
        let together = bins.len().div_ceil(most.max(1)).max(1);
        let one = |part: &[(Time, Time, &UsageBin)]| {
            let sum = part.iter().fold(UsageBin::default(), |sum, (.., bin)| sum.with(bin));
            let (from, until) = (part.first().map(|p| p.0), part.last().map(|p| p.1));
            (from.unwrap_or_default(), until.unwrap_or_default(), sum)
        };
        bins.chunks(together).map(one).collect()
    }

    /// All bins in order, each with its beginning and end; all are equally long but the last, which
    /// ends with the run.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = (Time, Time, &UsageBin)> {
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
        let mut usage = HostUsage::default();
        usage.more(UsageLevel::HostVcpus, u64::MAX);
        for us in [1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            usage.pass(Time::from_micros(us));
        }
        assert_eq!(usage.whole.levels[UsageLevel::HostVcpus as usize], u128::from(u64::MAX).pow(2));
        for _ in 0..2 {
            usage.count(UsageFlow::NormalRevenue, i64::MAX);
        }
        assert_eq!(usage.whole.count(UsageFlow::NormalRevenue), i64::MAX);
        let sum: Vec<_> =
            usage.merged(1).iter().map(|bin| bin.2.count(UsageFlow::NormalRevenue)).collect();
        assert_eq!(sum, [i64::MAX]);
    }

    /// The integrals and counts over all bins equal what was added, however wide the bins are.
    #[test]
    fn every_bin_is_exact_however_wide() {
        let (mut usage, mut changes) = (HostUsage::default(), Vec::new());
        usage.more(UsageLevel::HostVcpus, 100);
        for n in 0..5_000_u64 {
            let (now, more) = (n * 3 + n * n % 3, n * 7 % 11);
            usage.pass(at(now));
            usage.more(UsageLevel::NormalVcpus, more);
            usage.count(UsageFlow::Terminations, 1);
            changes.push((now, more));
            if n % 2 == 1 {
                usage.less(UsageLevel::NormalVcpus, changes[changes.len() - 2].1);
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
            assert_eq!(bin.integral(UsageLevel::NormalVcpus), sum * 1_000_000);
            let count = changes.iter().filter(|(at, _)| seconds.contains(at)).count();
            assert_eq!(bin.count(UsageFlow::Terminations), count as i64, "{from} to {until}");
        }
        let whole: u128 = bins.iter().map(|(.., bin)| bin.integral(UsageLevel::NormalVcpus)).sum();
        assert_eq!(usage.whole().integral(UsageLevel::NormalVcpus), whole);
        let few = usage.merged(10);
        assert!(few.len() <= 10);
        let again: u128 = few.iter().map(|(.., bin)| bin.integral(UsageLevel::NormalVcpus)).sum();
        assert_eq!(again, whole);
    }

    #[test]
    fn what_is_used_until_the_last_request_leaves_out_the_rest() {
        let mut usage = HostUsage::default();
        usage.more(UsageLevel::HostVcpus, 4);
        usage.more(UsageLevel::PreemptibleVcpus, 2);
        usage.pass(at(10));
        usage.arrival();
        usage.more(UsageLevel::NormalVcpus, 2);
        usage.pass(at(20));
        usage.arrival();
        usage.less(UsageLevel::PreemptibleVcpus, 2);
        usage.pass(at(1_000));
        let (last, until) = usage.until_last_arrival().expect("requests came");
        assert_eq!((last, until.vcpus()), (at(20), Some((0.25, 0.5))));
    }
}
