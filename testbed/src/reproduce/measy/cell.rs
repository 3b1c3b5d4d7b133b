//! One simulation of the evaluation, and what is kept of it.

use std::convert::Infallible;

use dormouse_engine::jobs::{Observer, Record, SimulationError, Totals, simulate};
use dormouse_policies::batch::Algorithm;
use dormouse_vm::Sharing;
use dormouse_workload::scale_arrivals;
use serde::{Deserialize, Serialize};

use super::batch_means::BatchMeans;
use super::setting::Setting;
use super::workloads::{Source, Workload};

/// One simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The source of the workload: a model or the log.
    pub source: Source,
    /// The setting.
    pub setting: Setting,
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
        format!("{}/{}/load-{load:.1}/{}", self.source.name(), self.setting.name(), self.algorithm)
    }

    /// The cell that gives the same: a scheduler for one tier heeds little of the setting, and a
    /// log is what it is.
    #[must_use]
    pub fn canonical(mut self) -> Self {
        if self.algorithm.promotion().is_none() {
            let Setting { estimates, shape, .. } = self.setting;
            self.setting = Setting { estimates, shape, ..Setting::default() };
        }
        if self.source == Source::Kth {
            self.setting.shape = Default::default();
        }
        self
    }
}

/// What is kept of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        let one_tier = self.algorithm.promotion().is_none();
        let simulation = self.setting.simulation(&workload.batch, self.algorithm, sharing, seed);
        let empty = BatchMeans::new(workload.jobs.len());
        let mut gather = Gather(Outcome {
            response: empty.clone(),
            slowdown: empty.clone(),
            migrations: empty,
            totals: Totals::default(),
        });
        let submissions = workload.jobs.iter().map(|job| {
            let job = scale_arrivals(job.clone(), factor);
            Ok(self.setting.job(job, one_tier, seed))
        });
        let totals = simulate(submissions, &simulation, &mut gather)?;
        Ok(Outcome { totals, ..gather.0 })
    }
}
