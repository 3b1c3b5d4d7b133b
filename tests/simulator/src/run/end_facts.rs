//! The facts about a plan by which the reason for the end of its run is judged.

use dormouse_policies::batch::MOST_STARTS;

use crate::oracle::EndFacts;
use crate::plan::Plan;

/// The facts about a run, given whether its user has cancelled or paused it.
pub(super) fn end_facts(plan: &Plan, is_cancelled: bool, is_paused: bool) -> EndFacts {
    let (setup, schedulers) = (&plan.setup, &plan.schedulers);
    let of_jobs = schedulers.jobs.map(|_| MOST_STARTS);
    let config = schedulers.bag.as_deref();
    let failures = config.map(|config| config.max_failures).into_iter().chain(of_jobs);
    let tenants = schedulers.tenants();
    let bids = |config: &dormouse_policies::BagSchedulerConfig| {
        config.fleet.iter().any(|fleet| fleet.bid.is_some())
    };
    EndFacts {
        is_cancelled,
        is_paused,
        failures: failures.min().unwrap_or(u32::MAX),
        refusals: config.map_or(u32::MAX, |config| config.max_retries),
        machine: schedulers.jobs.map(|_| setup.space_of_jobs().processors),
        bag: tenants.tenant_numbers(tenants.with_bag().unwrap_or_default()),
        are_programs: schedulers.are_programs,
        has_bids: config.is_some_and(bids) || setup.terms.default_bid.is_some(),
        has_scarce: !setup.terms.availability.is_empty(),
    }
}
