//! One simulation of the evaluation, and what is kept of it.

use std::convert::Infallible;

use dormouse_batch::{
    Algorithm, Config, Observer, Record, Setup, Sharing, SimulationError, Totals, UsageInformation,
    simulate,
};
use dormouse_units::{Ppm, Span};
use dormouse_workload::{UsageRule, scale_arrivals};

use super::workloads::{Source, Workload};
use crate::batch_means::BatchMeans;

/// What differs from the paper's standard setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variant {
    /// Nothing: usage drawn and known, 20 s a migration.
    Standard,
    /// The scheduler knows no CPU usage (section 3.5.1): it takes each process of a larger
    /// job for the mean of the range, 70 %.
    NoUsage,
    /// Every process uses 100 % (section 3.5.2).
    FullUsage,
    /// A migration costs this many seconds (section 3.5.3).
    Cost(u32),
    /// Users know how long their jobs run.
    ExactEstimates,
    /// Each background process has a utilisation of idle cycles of its own, and the job the
    /// least of them.
    EachProcess,
}

impl Variant {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Standard => "standard".to_owned(),
            Self::NoUsage => "no-usage-information".to_owned(),
            Self::FullUsage => "full-usage".to_owned(),
            Self::Cost(seconds) => format!("migration-cost-{seconds}s"),
            Self::ExactEstimates => "exact-estimates".to_owned(),
            Self::EachProcess => "utilisation-each-process".to_owned(),
        }
    }
}

/// One simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Which workload.
    pub source: Source,
    /// The setting.
    pub variant: Variant,
    /// Offered load in percent.
    pub load: u32,
    /// The scheduler.
    pub algorithm: Algorithm,
}

impl Cell {
    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        let load = f64::from(self.load) / 100.0;
        format!("{}/{}/load-{load:.1}/{}", self.source.name(), self.variant.name(), self.algorithm)
    }
}

/// What is kept of a simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Response times in seconds.
    pub response: BatchMeans,
    /// Bounded slowdowns.
    pub slowdown: BatchMeans,
    /// Migrations a job.
    pub migrations: BatchMeans,
    /// Counts over the whole run.
    pub totals: Totals,
}

struct Gather(Outcome);

impl Observer for Gather {
    type Error = Infallible;

    fn ended(&mut self, record: Record) -> Result<(), Infallible> {
        let kept = &mut self.0;
        kept.response.add(&record, record.response().as_secs_f64());
        kept.slowdown.add(&record, record.bounded_slowdown());
        kept.migrations.add(&record, f64::from(record.migrations));
        Ok(())
    }
}

impl Cell {
    /// Runs it on its workload.
    pub(super) fn run(
        &self,
        workload: &Workload,
        sharing: Sharing,
        seed: u64,
    ) -> Result<Outcome, SimulationError<Infallible>> {
        let factor = workload.load / (f64::from(self.load) / 100.0);
        let rule = match (self.variant, self.algorithm.promotion()) {
            // One tier never asks for usage.
            (Variant::FullUsage, _) | (_, None) => UsageRule::full(),
            _ => UsageRule::paper(seed),
        };
        let mut setup = Setup::new(Config::new(self.algorithm, workload.machine), seed);
        setup.sharing = sharing;
        match self.variant {
            Variant::Standard | Variant::FullUsage | Variant::ExactEstimates => {}
            Variant::EachProcess => setup.sharing.each_process = true,
            Variant::NoUsage => {
                setup.information = UsageInformation::Absent(Ppm::new(700_000));
            }
            Variant::Cost(seconds) => {
                setup.migration_cost = Span::from_secs(u64::from(seconds));
            }
        }
        let jobs = workload.jobs.len();
        let empty = BatchMeans::new(jobs);
        let mut gather = Gather(Outcome {
            response: empty.clone(),
            slowdown: empty.clone(),
            migrations: empty,
            totals: Totals::default(),
        });
        let submissions = workload.jobs.iter().map(|job| {
            let mut job = rule.assign(scale_arrivals(job.clone(), factor));
            if self.variant == Variant::ExactEstimates {
                job.estimate = job.runtime;
            }
            Ok(job)
        });
        let totals = simulate(submissions, &setup, &mut gather)?;
        Ok(Outcome { totals, ..gather.0 })
    }
}
