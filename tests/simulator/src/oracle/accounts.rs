//! Money, credits and capacity: the rules that `dormouse check` holds every log to.

use std::time::Duration;

use dormouse_analysis::{CapacityChecker, Checker, JobsChecker};
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{Setup, Step};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::Speedup;

use super::Broken;
use crate::invariant::Invariant;

/// How late, in real time, a report may reach the log beside what the world holds up: as for real runs.
const LATENESS: Duration = Duration::from_secs(1);

/// Checks all steps of a run that has ended; `jobs` is the algorithm and the seed of a run of parallel jobs, and `held_up`
/// the longest for which the world held messages up. What is wrong with a step that is a liar's word, by `is_lie`, is
/// the liar's fault: all that comes of it has to keep the rules.
///
/// # Errors
///
/// A rule is broken.
pub fn accounts(
    setup: &Setup,
    jobs: Option<(Algorithm, u64)>,
    speedup: Speedup,
    held_up: Duration,
    steps: &[Step],
    is_lie: impl Fn(&Step) -> bool,
) -> Result<(), Broken> {
    let lateness = speedup.to_emulated(LATENESS + held_up);
    let mut capacity = CapacityChecker::new(setup);
    steps.iter().for_each(|step| capacity.see(step));
    let found = match jobs {
        None => {
            let mut checker = Checker::new(setup, lateness);
            steps.iter().for_each(|step| checker.see(step));
            checker.finish(true)
        }
        Some((algorithm, seed)) => {
            let processors = setup.space_of_jobs().processors;
            let simulation = JobSimulation {
                checkpoint: setup.checkpoint_of_jobs().cloned(),
                ..JobSimulation::new(Config::new(algorithm, processors), seed)
            };
            let mut checker = JobsChecker::new(&simulation, lateness);
            steps.iter().for_each(|step| checker.see(step));
            checker.finish(true)
        }
    };
    let is_a_lies = |seq: u64| {
        let step = usize::try_from(seq).ok().and_then(|seq| steps.get(seq));
        step.is_some_and(&is_lie)
    };
    let mut found = found.into_iter().chain(capacity.finish());
    let found = found.find(|it| !is_a_lies(it.seq));
    found.map_or(Ok(()), |first| {
        let why = format!("step {}: {}", first.seq, first.what);
        Err((Invariant::Accounts, why))
    })
}
