//! The rules of a run of whatever kind, on its log.

use dormouse_analysis::jobs::SeenByJobs;
use dormouse_analysis::{
    CapacityChecker, Checker, JobsChecker, RequestsChecker, RuleViolation, RunMode,
};
use dormouse_engine::tenants_part;
use dormouse_units::Span;
use std::time::Duration;

use crate::output::RunLog;
use crate::replay::{ReplayError, play};

/// How late, in real time, a worker's report may reach the log of a live run. Far more
/// than any was seen to be, and too little for a worker that earns credits at a wrong rate.
const LATENESS: Duration = Duration::from_secs(1);

/// What was looked at, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The number of steps in the log.
    pub steps: u64,
    /// The number of parallel jobs that were followed; `None`: the run has none.
    pub jobs: Option<u64>,
    /// The number of requests that were followed; `None`: the run has none.
    pub requests: Option<u64>,
    /// What is wrong with the bag and its VMs, then with the jobs, then with the requests, each in order.
    pub violations: Vec<RuleViolation>,
}

/// Looks through every step of a run, which came to its end or, if `ended` is false, was killed.
///
/// # Errors
///
/// Its steps were left out of its log, and it can't be made again.
pub fn check(log: &RunLog, ended: bool) -> Result<Checked, ReplayError> {
    let experiment = &log.header.experiment;
    let (tenants, setup) = (experiment.tenants(), experiment.whole_setup());
    let lateness = match log.header.mode {
        RunMode::Virtual => Span::ZERO,
        RunMode::Live => experiment.live.speedup.emulated(LATENESS),
    };
    let mut bag = experiment.scheduler.as_ref().map(|_| Checker::new(&setup, lateness));
    let mut jobs = experiment.jobs.as_deref().map(|jobs| {
        // No rule depends on chance.
        JobsChecker::new(&jobs.simulation(0), lateness)
    });
    let requests = || RequestsChecker::new(&setup, tenants.clone(), lateness);
    let mut requests = experiment.requests.as_ref().map(|_| requests());
    let mut capacity = CapacityChecker::new(&setup);
    let (seen, mut steps) = (SeenByJobs::new(experiment.tenants()), 0);
    play(log, |step| {
        steps += 1;
        match &mut bag {
            // What is wrong is said with the numbers that the run's files have.
            Some(bag) if tenants.are_several() => {
                let own = tenants.with_bag().unwrap_or_default();
                bag.see(&tenants_part(step, &tenants, own));
            }
            Some(bag) => bag.see(step),
            None => {}
        }
        capacity.see(step);
        if let Some(jobs) = &mut jobs {
            jobs.see(&seen.see(step));
        }
        if let Some(requests) = &mut requests {
            requests.see(step);
        }
    })?;
    let mut violations = bag.map(|bag| bag.finish(ended)).unwrap_or_default();
    violations.extend(capacity.finish());
    let followed = jobs.as_ref().map(JobsChecker::jobs);
    violations.extend(jobs.into_iter().flat_map(|jobs| jobs.finish(ended)));
    let requested = requests.as_ref().map(RequestsChecker::requests);
    violations.extend(requests.into_iter().flat_map(|requests| requests.finish(ended)));
    Ok(Checked { steps, jobs: followed, requests: requested, violations })
}
