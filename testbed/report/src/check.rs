//! Checks the log of a run of any kind against all rules.

use dormouse_analysis::jobs::SeenByJobs;
use dormouse_analysis::{
    CapacityChecker, Checker, JobsChecker, RequestsChecker, RuleViolation, RunMode,
};
use dormouse_engine::tenants_part;
use dormouse_units::Span;
use std::time::Duration;

use crate::output::RunLog;
use crate::replay::{ReplayError, play};

/// Real time by which a worker's report may be late in the log of a live run. It is far more than
/// any measured delay, and too little to hide a worker that earns credits at a wrong rate.
const LATENESS: Duration = Duration::from_secs(1);

/// Result of checking a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// Number of steps in the log.
    pub steps: u64,
    /// Number of parallel jobs; `None` if the run has none.
    pub jobs: Option<u64>,
    /// Number of requests; `None` if the run has none.
    pub requests: Option<u64>,
    /// Broken rules: of the bag and its VMs, then of the jobs, then of the requests, each in order
    /// of the steps.
    pub violations: Vec<RuleViolation>,
}

/// Checks every step of a run. `ended` is false for a run that was killed.
///
/// # Errors
///
/// The log has no steps, and the run can't be repeated.
pub fn check(log: &RunLog, ended: bool) -> Result<CheckResult, ReplayError> {
    let experiment = &log.header.experiment;
    let (tenants, setup) = (experiment.tenants(), experiment.whole_setup());
    let lateness = match log.header.mode {
        RunMode::Virtual => Span::ZERO,
        RunMode::Live => experiment.live.speedup.to_emulated(LATENESS),
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
            // Violations are reported with the numbers that the run's files have.
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
    Ok(CheckResult { steps, jobs: followed, requests: requested, violations })
}
