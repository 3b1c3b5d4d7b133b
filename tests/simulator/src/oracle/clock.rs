//! A run's clock shows no more than the time that has passed.

use std::time::Duration;

use dormouse_model::Step;
use dormouse_units::{Speedup, Time};

use super::Broken;
use crate::invariant::Invariant;

/// Rounding, and what a step's time may be after the step is made.
const SLACK: Duration = Duration::from_millis(100);

/// Looks at the last step of a log where so much real time has passed since before the run began.
///
/// # Errors
///
/// The step is of a time that has not come.
pub fn clock(speedup: Speedup, passed: Duration, steps: &[Step]) -> Result<(), Broken> {
    let latest = Time::ZERO + speedup.to_emulated(passed + SLACK);
    let Some(last) = steps.last().filter(|step| step.at > latest) else { return Ok(()) };
    let why = format!("step {} is of {}, and it can't be later than {latest}", last.seq, last.at);
    Err((Invariant::NotAhead, why))
}
