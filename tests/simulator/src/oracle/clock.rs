//! Checks that a run's clock never runs ahead of the time that has passed.

use std::time::Duration;

use dormouse_model::Step;
use dormouse_units::{Speedup, Time};

use super::Broken;
use crate::invariant::Invariant;

/// Tolerance for rounding, and for the time between a step's time stamp and the step.
const SLACK: Duration = Duration::from_millis(100);

/// Checks the time of a log's last step; `passed` is the real time since before the run began.
///
/// # Errors
///
/// The time of the step has not come yet.
pub fn clock(speedup: Speedup, passed: Duration, steps: &[Step]) -> Result<(), Broken> {
    let latest = Time::ZERO + speedup.to_emulated(passed + SLACK);
    let Some(last) = steps.last().filter(|step| step.at > latest) else { return Ok(()) };
    let why = format!("step {} is of {}, and it can't be later than {latest}", last.seq, last.at);
    Err((Invariant::NotAhead, why))
}
