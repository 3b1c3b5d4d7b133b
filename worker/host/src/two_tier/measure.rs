//! One measurement: a foreground job alone and beside a background job.

use std::time::{Duration, Instant};

use dormouse_worker::cgroup::TierSlot;

use super::TwoTierError;
use super::case::{JobPair, ProcessCase};
use super::host::{OtherWork, TwoTierHost};
use super::job::{MeasuredJob, MeasuredJobSpec};

/// Time that a foreground job takes alone.
const RUN: Duration = Duration::from_millis(500);
/// Time for which a background job is observed alone.
const WATCH: Duration = Duration::from_secs(1);

/// Results for a foreground and a background job that share processors, at one foreground usage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measurement {
    /// The number of processes that the jobs have.
    pub case: ProcessCase,
    /// Seed from which the lengths of the two jobs' phases were drawn.
    pub seed: u64,
    /// CPU usage requested for the foreground job, in per cent.
    pub usage: u32,
    /// Measured CPU usage of the foreground job when it runs alone, as a fraction of a processor.
    pub foreground_usage: f64,
    /// Fraction of its speed that the foreground job lost to the background job.
    pub loss: f64,
    /// Additional CPU time that the foreground job took for the same work due to shared caches, as a fraction of its CPU time
    /// alone. The rest of the loss is time spent waiting for the processors.
    pub more_cpu: f64,
    /// Progress of the background job beside the foreground job, as a fraction of its progress alone.
    pub rate: f64,
    /// CPU usage of the background job when it runs alone, as a fraction of a processor.
    pub background_usage: f64,
    /// CPU time of the background job beside the foreground, as a fraction of a processor.
    pub background_cpu: f64,
    /// Fraction of the host's processor time that other programs used during the measurement.
    pub elsewhere: f64,
}

impl Measurement {
    /// Fraction of the idle cycles that became progress of the background job: the x of the paper's
    /// model. `None` if almost nothing is idle.
    #[must_use]
    pub fn utilisation(&self) -> Option<f64> {
        self.of_idle(self.rate * self.background_usage)
    }

    /// Fraction of the idle cycles that the background job was charged for; `None` if almost nothing is idle.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        self.of_idle(self.background_cpu)
    }

    fn of_idle(&self, part: f64) -> Option<f64> {
        let idle = 1.0 - self.foreground_usage;
        self.has_room().then_some(part / idle)
    }

    /// True if the paper would run a background job beside this foreground job: its 96 % rule uses what is known of the
    /// foreground job beforehand.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.usage < 96
    }
}

/// Figures of a background job that runs alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct AloneFigures {
    units_per_second: f64,
    usage: f64,
}

/// CPU times of both tiers and the background job's progress, read at one instant.
struct CounterReading {
    at: Instant,
    foreground_ns: u64,
    background_ns: u64,
    background_units: u64,
}

impl CounterReading {
    fn read_counters(
        host: &TwoTierHost,
        case: ProcessCase,
        background: Option<&MeasuredJob>,
    ) -> Result<Self, TwoTierError> {
        let cpu = |slot| (0..case.processes()).map(|n| host.vm().slot_cpu_ns(n, slot)).sum();
        let background_units = match background {
            Some(job) => job.read_progress()?.units,
            None => 0,
        };
        Ok(Self {
            foreground_ns: cpu_sum(cpu(TierSlot::A))?,
            background_ns: cpu_sum(cpu(TierSlot::B))?,
            background_units,
            at: Instant::now(),
        })
    }
}

fn cpu_sum(sum: Result<u64, dormouse_worker::cgroup::CgroupError>) -> Result<u64, TwoTierError> {
    Ok(sum?)
}

/// CPU usage of both tiers, and the background job's speed, between two instants.
struct MeasuredWindow {
    seconds: f64,
    /// CPU usage of the foreground tier, as a mean fraction of a processor; `background` has that of the background tier.
    foreground: f64,
    background: f64,
    units_per_second: f64,
}

impl MeasuredWindow {
    fn window_between(start: &CounterReading, end: &CounterReading, processes: u32) -> Self {
        let seconds = end.at.duration_since(start.at).as_secs_f64();
        let part = |from: u64, to: u64| {
            to.saturating_sub(from) as f64 / 1e9 / seconds / f64::from(processes)
        };
        let units = end.background_units.saturating_sub(start.background_units);
        Self {
            seconds,
            foreground: part(start.foreground_ns, end.foreground_ns),
            background: part(start.background_ns, end.background_ns),
            units_per_second: units as f64 / seconds,
        }
    }
}

impl MeasuredWindow {
    /// CPU time of the foreground per processor, in seconds.
    fn foreground_time(&self) -> f64 {
        self.foreground * self.seconds
    }

    /// Joins two windows of time: their lengths are added, all other values are averaged by length.
    fn add_window(&self, other: &Self) -> Self {
        let seconds = self.seconds + other.seconds;
        let mean =
            |of: fn(&Self) -> f64| (of(self) * self.seconds + of(other) * other.seconds) / seconds;
        Self {
            foreground: mean(|w| w.foreground),
            background: mean(|w| w.background),
            units_per_second: mean(|w| w.units_per_second),
            seconds,
        }
    }
}

/// Number of blocks of work in a phase of this length, at least one.
fn blocks_per_phase(phase: Duration, block: Duration) -> u64 {
    phase.div_duration_f64(block).round().max(1.0) as u64
}

fn foreground_spec(pair: &JobPair, usage: u32, block: Duration) -> MeasuredJobSpec {
    MeasuredJobSpec {
        processes: pair.case.processes(),
        usage: f64::from(usage) / 100.0,
        phases: RUN.div_duration_f64(pair.foreground_phase).round().max(1.0) as u32,
        blocks: blocks_per_phase(pair.foreground_phase, block),
        seed: pair.seed,
    }
}

/// Parameters of the background job of `pair`, which runs until it is ended.
fn background_spec(pair: &JobPair, block: Duration) -> MeasuredJobSpec {
    MeasuredJobSpec {
        processes: pair.case.processes(),
        usage: pair.case.background_usage(),
        phases: u32::MAX,
        blocks: blocks_per_phase(pair.background_phase, block),
        seed: pair.seed,
    }
}

/// Measures the background job of `pair` while it runs alone.
pub(super) fn background_alone(
    host: &TwoTierHost,
    pair: &JobPair,
    block: Duration,
) -> Result<AloneFigures, TwoTierError> {
    let job = MeasuredJob::start(host, "background", TierSlot::B, &background_spec(pair, block))?;
    job.set_going()?;
    let start = CounterReading::read_counters(host, pair.case, Some(&job))?;
    job.work_for(WATCH)?;
    let end = CounterReading::read_counters(host, pair.case, Some(&job))?;
    let window = MeasuredWindow::window_between(&start, &end, pair.case.processes());
    Ok(AloneFigures { units_per_second: window.units_per_second, usage: window.background })
}

/// Measures a foreground and a background job at a foreground usage in per cent: the foreground job alone, twice beside the
/// background job, and alone again, so that a drift of the processor's speed cancels out.
pub(super) fn measure_both(
    host: &TwoTierHost,
    pair: &JobPair,
    usage: u32,
    block: Duration,
    alone: &AloneFigures,
) -> Result<Measurement, TwoTierError> {
    let spec = foreground_spec(pair, usage, block);
    let busy = OtherWork::begin(host)?;
    let before = run_beside(host, pair, &spec, None)?;
    let neighbour =
        MeasuredJob::start(host, "background", TierSlot::B, &background_spec(pair, block))?;
    neighbour.set_going()?;
    let first = run_beside(host, pair, &spec, Some(&neighbour))?;
    let with = first.add_window(&run_beside(host, pair, &spec, Some(&neighbour))?);
    drop(neighbour);
    let without = before.add_window(&run_beside(host, pair, &spec, None)?);
    Ok(Measurement {
        case: pair.case,
        seed: pair.seed,
        usage,
        foreground_usage: without.foreground,
        loss: 1.0 - without.seconds / with.seconds,
        more_cpu: with.foreground_time() / without.foreground_time() - 1.0,
        rate: with.units_per_second / alone.units_per_second,
        background_usage: alone.usage,
        background_cpu: with.background,
        elsewhere: busy.share_elsewhere(host)?,
    })
}

/// Runs the foreground job to its end beside the jobs that run already.
fn run_beside(
    host: &TwoTierHost,
    pair: &JobPair,
    spec: &MeasuredJobSpec,
    neighbour: Option<&MeasuredJob>,
) -> Result<MeasuredWindow, TwoTierError> {
    let mut job = MeasuredJob::start(host, "foreground", TierSlot::A, spec)?;
    let start = CounterReading::read_counters(host, pair.case, neighbour)?;
    job.let_go()?;
    job.wait_for_end()?;
    let end = CounterReading::read_counters(host, pair.case, neighbour)?;
    Ok(MeasuredWindow::window_between(&start, &end, pair.case.processes()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::two_tier) const MEASUREMENT: Measurement = Measurement {
        case: ProcessCase::Several,
        seed: 1,
        usage: 60,
        foreground_usage: 0.6,
        loss: 0.01,
        more_cpu: 0.0,
        rate: 0.3,
        background_usage: 0.7,
        background_cpu: 0.36,
        elsewhere: 0.003,
    };

    #[test]
    fn utilisation_is_the_x_of_the_papers_model() {
        // rate = x · (1 − u_fg) / u_bg
        let x = MEASUREMENT.utilisation().unwrap_or_default();
        assert!((x * (1.0 - 0.6) / 0.7 - 0.3).abs() < 1e-12 && (x - 0.525).abs() < 1e-12);
        assert!((MEASUREMENT.share().unwrap_or_default() - 0.9).abs() < 1e-12);
    }

    #[test]
    fn where_nothing_is_idle_there_is_no_utilisation() {
        let full = Measurement { usage: 97, foreground_usage: 0.95, ..MEASUREMENT };
        assert_eq!((full.utilisation(), full.share()), (None, None));
    }

    #[test]
    fn a_window_is_in_parts_of_a_processor() {
        let at = Instant::now();
        let start =
            CounterReading { at, foreground_ns: 5, background_ns: 7, background_units: 100 };
        let end = CounterReading {
            at: at + Duration::from_secs(2),
            foreground_ns: 2_400_000_005,
            background_ns: 400_000_007,
            background_units: 1100,
        };
        let window = MeasuredWindow::window_between(&start, &end, 2);
        assert_eq!((window.seconds, window.units_per_second), (2.0, 500.0));
        assert!((window.foreground - 0.6).abs() < 1e-9 && (window.background - 0.1).abs() < 1e-9);
        let short = MeasuredWindow {
            seconds: 1.0,
            foreground: 0.3,
            background: 0.4,
            units_per_second: 50.0,
        };
        let both = window.add_window(&short);
        assert_eq!((both.seconds, both.units_per_second), (3.0, 350.0));
        assert!((both.foreground - 0.5).abs() < 1e-9 && (both.background - 0.2).abs() < 1e-9);
    }
}
