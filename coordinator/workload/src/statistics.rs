//! Statistics of a workload, from one pass over it.

use std::collections::BTreeMap;
use std::fmt;

use dormouse_model::Submission;
use dormouse_units::Time;
use serde::{Serialize, Serializer};

/// Count, mean and deviation of a quantity (Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: u64,
    mean: f64,
    square: f64,
    least: f64,
    most: f64,
}

impl Moments {
    /// Adds a value of the quantity whose count, mean and deviation are computed.
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let n = self.count as f64;
        let from = x - self.mean;
        self.mean += from / n;
        self.square += from * (x - self.mean);
        self.least = if self.count == 1 { x } else { self.least.min(x) };
        self.most = if self.count == 1 { x } else { self.most.max(x) };
    }

    /// Number of values added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean of the values; zero if there are none.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Standard deviation of the values (of a sample); zero for fewer than two.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a mean")]
        let below = self.count.saturating_sub(1) as f64;
        if below > 0.0 { (self.square / below).sqrt() } else { 0.0 }
    }

    /// The least and the greatest of the added values.
    #[must_use]
    pub const fn range(&self) -> (f64, f64) {
        (self.least, self.most)
    }
}

impl Serialize for Moments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = [
            ("mean", self.mean),
            ("deviation", self.deviation()),
            ("least", self.least),
            ("most", self.most),
        ];
        serializer.collect_map(figures)
    }
}

/// Counts of values in buckets by powers of two: bucket n counts values in (2^(n−1), 2^n], bucket 0 values up to 1.
#[derive(Clone, Debug, Default)]
pub struct Histogram(Vec<u64>);

impl Histogram {
    /// Counts a value in the bucket that it belongs to.
    pub fn add(&mut self, x: u64) {
        let bucket = x.max(1).next_power_of_two().trailing_zeros() as usize;
        if self.0.len() <= bucket {
            self.0.resize(bucket + 1, 0);
        }
        self.0[bucket] += 1;
    }

    /// Upper bound and count of each bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0
            .iter()
            .enumerate()
            .map(|(n, &count)| (1_u64.checked_shl(n as u32).unwrap_or(0), count))
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct HistogramBucket {
            at_most: u64,
            jobs: u64,
        }
        serializer
            .collect_seq(self.buckets().map(|(at_most, jobs)| HistogramBucket { at_most, jobs }))
    }
}

/// Statistics of a batch workload: sizes, run times, estimates and arrivals of its jobs.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    machine: u32,
    /// Number of processes of a job.
    pub size: Moments,
    /// Run times in seconds.
    pub runtime: Moments,
    /// Users' estimates of the run times, in seconds.
    pub estimate: Moments,
    /// Run time of a job divided by its user's estimate.
    pub accuracy: Moments,
    /// Gaps between submissions, in seconds.
    pub gap: Moments,
    /// Sizes by powers of two.
    pub sizes: Histogram,
    /// Run times in seconds by powers of two.
    pub runtimes: Histogram,
    serial: u64,
    powers_of_two: u64,
    area: f64,
    first: Option<Time>,
    last: Time,
}

impl Statistics {
    /// Empty statistics, for jobs on a machine of `machine` processors.
    #[must_use]
    pub fn new(machine: u32) -> Self {
        Self { machine, ..Self::default() }
    }

    /// Adds a job to the statistics; jobs must be added in order of submission.
    pub fn add(&mut self, job: &Submission) {
        let runtime = job.runtime.as_secs_f64();
        self.size.add(f64::from(job.processes));
        self.runtime.add(runtime);
        self.estimate.add(job.estimate.as_secs_f64());
        if job.estimate.as_micros() > 0 {
            self.accuracy.add(runtime / job.estimate.as_secs_f64());
        }
        if self.first.is_some() {
            self.gap.add(job.submitted.since(self.last).as_secs_f64());
        }
        self.sizes.add(u64::from(job.processes));
        self.runtimes.add(job.runtime.as_micros() / 1_000_000);
        self.serial += u64::from(job.processes == 1);
        self.powers_of_two += u64::from(job.processes > 1 && job.processes.is_power_of_two());
        self.area += f64::from(job.processes) * runtime;
        self.first = self.first.or(Some(job.submitted));
        self.last = job.submitted;
    }

    /// The quantities that have a mean, each with its name for people and for programs.
    fn named_moments(&self) -> [(&'static str, &'static str, &Moments); 5] {
        [
            ("processes", "processes", &self.size),
            ("run time / s", "runtime_s", &self.runtime),
            ("estimate / s", "estimate_s", &self.estimate),
            ("run time / estimate", "runtime_over_estimate", &self.accuracy),
            ("gap / s", "gap_s", &self.gap),
        ]
    }

    /// Number of jobs added to the statistics.
    #[must_use]
    pub const fn jobs(&self) -> u64 {
        self.size.count()
    }

    /// Share of jobs with one process, from 0 to 1.
    #[must_use]
    pub fn serial_share(&self) -> f64 {
        share(self.serial, self.jobs())
    }

    /// Share of jobs whose size is a power of two above one, from 0 to 1.
    #[must_use]
    pub fn power_of_two_share(&self) -> f64 {
        share(self.powers_of_two, self.jobs())
    }

    /// Offered load: the jobs' processor time divided by that of the whole machine between the first and the last
    /// submission.
    #[must_use]
    pub fn offered_load(&self) -> f64 {
        let span = self.last.since(self.first.unwrap_or(self.last)).as_secs_f64();
        if span > 0.0 { self.area / (f64::from(self.machine) * span) } else { 0.0 }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = part as f64 / whole.max(1) as f64;
    share
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "jobs                  {}", self.jobs())?;
        writeln!(f, "processors            {}", self.machine)?;
        writeln!(f, "offered load          {:.4}", self.offered_load())?;
        writeln!(f, "serial                {:.1} %", 100.0 * self.serial_share())?;
        writeln!(f, "power of two above 1  {:.1} %", 100.0 * self.power_of_two_share())?;
        writeln!(f, "{:<22}{:>12}{:>12}{:>12}{:>12}", "", "mean", "deviation", "least", "most")?;
        for (name, _, of) in self.named_moments() {
            let (least, most) = of.range();
            let (mean, deviation) = (of.mean(), of.deviation());
            writeln!(f, "{name:<22}{mean:>12.3}{deviation:>12.3}{least:>12.3}{most:>12.3}")?;
        }
        Ok(())
    }
}

impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WorkloadFigures<'a> {
            jobs: u64,
            processors: u32,
            offered_load: f64,
            serial_share: f64,
            power_of_two_share: f64,
            moments: BTreeMap<&'a str, &'a Moments>,
            sizes: &'a Histogram,
            runtimes_s: &'a Histogram,
        }
        let figures = WorkloadFigures {
            jobs: self.jobs(),
            processors: self.machine,
            offered_load: self.offered_load(),
            serial_share: self.serial_share(),
            power_of_two_share: self.power_of_two_share(),
            moments: self.named_moments().into_iter().map(|(_, key, of)| (key, of)).collect(),
            sizes: &self.sizes,
            runtimes_s: &self.runtimes,
        };
        figures.serialize(serializer)
    }
}
