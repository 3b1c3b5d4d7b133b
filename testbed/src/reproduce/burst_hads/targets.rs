//! What is to come out: every cell of the tables, with the printed figures.

use dormouse_policies::BagSchedulerName;

use super::paper::{JOBS, SCENARIOS, SCHEDULERS, TABLE_4, TABLE_6};
use crate::experiment::InputError;
use crate::sweep::{Cell, Sample};

/// One scheduler on one job in one scenario, and what the paper says of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// The job.
    pub job: &'static str,
    /// The scenario of Table V; `None`: no hibernations (Table IV).
    pub scenario: Option<&'static str>,
    /// The scheduler.
    pub scheduler: BagSchedulerName,
    /// Dollars.
    pub cost: f64,
    /// Seconds.
    pub makespan: f64,
    /// Hibernations, resumes and regular on-demand VMs launched later (Table VI).
    pub events: Option<[f64; 3]>,
}

impl Target {
    /// The cells of Table IV.
    #[must_use]
    pub fn table_4() -> Vec<Self> {
        let mut all = Vec::new();
        for (job, row) in JOBS.into_iter().zip(TABLE_4) {
            for (scheduler, (cost, makespan)) in SCHEDULERS.into_iter().zip(row) {
                all.push(Self { job, scenario: None, scheduler, cost, makespan, events: None });
            }
        }
        all
    }

    /// The cells of Table VI.
    #[must_use]
    pub fn table_6() -> Vec<Self> {
        let mut all = Vec::new();
        for (job, rows) in JOBS.into_iter().zip(TABLE_6) {
            for (scenario, row) in SCENARIOS.into_iter().zip(rows) {
                for (n, (cost, makespan)) in row.figures.into_iter().enumerate() {
                    let events = Some([row.hibernations, row.resumes, row.on_demand[n]]);
                    let (scenario, scheduler) = (Some(scenario), SCHEDULERS[n]);
                    all.push(Self { job, scenario, scheduler, cost, makespan, events });
                }
            }
        }
        all
    }

    /// The experiment, such as `j60-sc2`.
    #[must_use]
    pub fn experiment(&self) -> String {
        self.scenario.map_or(self.job.to_owned(), |sc| format!("{}-{sc}", self.job))
    }

    /// The experiment and the scheduler.
    #[must_use]
    pub fn case(&self) -> String {
        format!("{}/{}", self.experiment(), self.scheduler)
    }

    /// Settings under which hibernations and resumes come `rarer` times as rarely.
    pub(crate) fn events(&self, rarer: f64) -> Vec<String> {
        let (hibernate, resume) = match self.scenario {
            None => return Vec::new(),
            Some("sc1") => (1.0, 0.0),
            Some("sc2") => (5.0, 0.0),
            Some("sc3") => (1.0, 5.0),
            Some("sc4") => (5.0, 5.0),
            Some(_) => (3.0, 2.5),
        };
        let set = |key: &str, k: f64| format!("interruption.0.{key}={}", k / rarer);
        vec![set("k-hibernate", hibernate), set("k-resume", resume)]
    }

    /// The cell, with these settings.
    ///
    /// # Errors
    ///
    /// A setting is wrong.
    pub fn cell(&self, suffix: &str, set: &[String]) -> Result<Cell, InputError> {
        let mut all = vec![format!("scheduler.name={}", self.scheduler)];
        all.extend(set.iter().cloned());
        Cell::load(&format!("{}{suffix}", self.case()), &self.experiment(), &all)
    }
}

/// Targets and the samples of each.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The cells with their samples, in order.
    pub all: Vec<(Target, Vec<Sample>)>,
}

impl Results {
    /// The samples of one cell.
    #[must_use]
    pub fn of(
        &self,
        job: &str,
        scenario: Option<&str>,
        scheduler: BagSchedulerName,
    ) -> Option<&[Sample]> {
        let same = |t: &Target| t.job == job && t.scenario == scenario && t.scheduler == scheduler;
        self.all.iter().find(|(t, _)| same(t)).map(|(_, samples)| samples.as_slice())
    }
}

/// Seconds; an unfinished run has none.
pub(crate) fn makespans(samples: &[Sample]) -> Vec<f64> {
    samples.iter().filter_map(|s| Some(s.makespan?.as_secs_f64())).collect()
}

/// Dollars.
pub(crate) fn costs(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|s| s.cost.as_usd()).collect()
}
