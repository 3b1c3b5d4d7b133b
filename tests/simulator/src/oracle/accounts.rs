//! Money, credits and capacity: the rules that `dormouse check` holds every log to.

use std::time::Duration;

use dormouse_analysis::{CapacityChecker, Checker};
use dormouse_model::{Setup, Step};
use dormouse_units::Speedup;

use super::Broken;
use crate::invariant::Invariant;

/// How late, in real time, a report may reach the log beside what the world holds up: as for real runs.
const LATENESS: Duration = Duration::from_secs(1);

/// Checks all steps of a run; `held_up` is the longest for which the world held messages up.
///
/// # Errors
///
/// A rule is broken.
pub fn accounts(
    setup: &Setup,
    speedup: Speedup,
    held_up: Duration,
    steps: &[Step],
    has_ended: bool,
) -> Result<(), Broken> {
    let lateness = speedup.emulated(LATENESS + held_up);
    let mut checker = Checker::new(setup, lateness);
    let mut capacity = CapacityChecker::new(setup);
    for step in steps {
        checker.see(step);
        capacity.see(step);
    }
    let found = checker.finish(has_ended).into_iter().chain(capacity.finish()).next();
    found.map_or(Ok(()), |first| {
        let why = format!("step {}: {}", first.seq, first.what);
        Err((Invariant::Accounts, why))
    })
}
