//! Data that runs share: plans, and jobs that were read or generated.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dormouse_policies::{BagSchedulerConfig, Plan, PlanError};
use dormouse_workload::Listed;

use dormouse_experiment::chain;
use dormouse_experiment::{BatchSetup, Experiment};
use dormouse_report::jobs::JobsError;

/// Number of job lists that are kept in memory whatever their length: a long list takes a hundred megabytes.
const FEW_LISTS: usize = 12;
/// Greatest number of jobs in all kept lists together if there are more than `FEW_LISTS` lists:
/// enough for thirty seeds.
const MOST_JOBS: usize = 600_000;

type Made<T, E> = Arc<OnceLock<Result<T, E>>>;

/// Plans and jobs that several runs share. A thread that needs a plan or jobs that another thread is making waits for
/// that thread.
#[derive(Debug, Default)]
pub struct SharedInputs {
    plans: Mutex<HashMap<blake3::Hash, Made<Option<Plan>, PlanError>>>,
    jobs: Mutex<VecDeque<(blake3::Hash, Made<Listed, String>)>>,
}

impl SharedInputs {
    /// Plan of an experiment; `None` if its scheduler makes no plan.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn plan(&self, experiment: &Experiment) -> Result<Option<Plan>, PlanError> {
        let Some(config) = &experiment.scheduler else { return Ok(None) };
        if let Some(given) = &config.plan {
            return Ok(Some(given.clone()));
        }
        let made = {
            let mut all = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(key_of_plan(config, experiment)).or_default().clone()
        };
        made.get_or_init(|| experiment.plan()).clone()
    }

    /// Jobs of a batch with a seed, before load, estimates and usage are set.
    ///
    /// # Errors
    ///
    /// The log can't be read, or the model can't generate them.
    pub(crate) fn jobs(&self, batch: &BatchSetup, seed: u64) -> Result<Listed, JobsError> {
        let key = key_of_jobs(batch, seed);
        let made = {
            let mut all = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            match all.iter().find(|(known, _)| *known == key) {
                Some((_, made)) => made.clone(),
                None => {
                    let made = Made::default();
                    all.push_back((key, made.clone()));
                    make_room(&mut all, MOST_JOBS);
                    made
                }
            }
        };
        let read = || Listed::read(&batch.wanted(seed)).map_err(|error| chain(&error));
        made.get_or_init(read).clone().map_err(JobsError::Schedule)
    }
}

/// Drops the oldest lists of jobs if there are many and they have more than `most` jobs together.
fn make_room(all: &mut VecDeque<(blake3::Hash, Made<Listed, String>)>, most: usize) {
    let jobs = |(_, made): &(blake3::Hash, Made<Listed, String>)| match made.get() {
        Some(Ok(listed)) => listed.len(),
        _ => 0,
    };
    while all.len() > FEW_LISTS && all.iter().map(jobs).sum::<usize>() > most {
        all.pop_front();
    }
}

/// Digest of everything that a plan depends on.
fn key_of_plan(config: &BagSchedulerConfig, experiment: &Experiment) -> blake3::Hash {
    let setup = &experiment.setup;
    // Keys that only matter during the run.
    let standard = BagSchedulerConfig::default();
    let scheduler = BagSchedulerConfig {
        allocation_cycle: standard.allocation_cycle,
        steal: standard.steal,
        burst_on: standard.burst_on,
        migrate: standard.migrate,
        ..config.clone()
    };
    let parts =
        serde_json::json!([scheduler, setup.catalogue, setup.bag, setup.checkpoint, setup.seed]);
    blake3::hash(parts.to_string().as_bytes())
}

/// Digest of everything that the jobs of a batch depend on.
fn key_of_jobs(batch: &BatchSetup, seed: u64) -> blake3::Hash {
    let workload = &batch.workload;
    // Jobs listed in the experiment get their usage when they are read.
    let listed = (workload.usage, batch.scheduler.name);
    let memory = batch.simulation(seed).job_capacity().memory;
    let parts = serde_json::json!([workload.source, workload.processors, memory, listed, seed]);
    blake3::hash(parts.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::SweepCell;

    /// Short lists of jobs of twenty seeds are all kept; of lists that exceed the limit of jobs together, only the last
    /// twelve.
    #[test]
    fn short_lists_of_many_seeds_are_kept_and_long_ones_are_not() {
        let cell = SweepCell::load("x", "jw-like", &["workload.jobs=100".to_owned()])
            .expect("it is right");
        let batch = cell.experiment.jobs.as_ref().expect("it has jobs");
        let shared = SharedInputs::default();
        for seed in 1..=20 {
            assert_eq!(shared.jobs(batch, seed).expect("they are made").len(), 100);
        }
        let mut all = shared.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(all.len(), 20);
        make_room(&mut all, 1_500);
        assert_eq!(all.len(), 15);
        make_room(&mut all, 1_000);
        assert_eq!(all.len(), FEW_LISTS);
    }
}
