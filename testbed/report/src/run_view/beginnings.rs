//! Time that users' own programs waited for their inputs to reach their hosts before they ran.

use std::time::Duration;

use dormouse_units::Span;

use super::SummaryLine;
use super::outcome::BagResults;

/// Shortest time that is reported: every program has a file or two.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// Longest real time from the command to start a program until its inputs had arrived; `None` in a
/// virtual run, or if no program had inputs.
fn longest_wait(of: &BagResults<'_>) -> Option<Duration> {
    let attempts = of.tasks().flat_map(|task| &task.is.attempts);
    let longest_us = attempts.map(|attempt| attempt.real_inputs_us).max()?;
    (longest_us > 0).then(|| Duration::from_micros(longest_us))
}

/// That time in emulated time.
pub(super) fn longest_emulated(of: &BagResults<'_>) -> Option<Span> {
    longest_wait(of).map(|longest| of.of.header.experiment.live.speedup.to_emulated(longest))
}

/// A line on that time, if it is long enough.
pub(super) fn line(of: &BagResults<'_>) -> Option<SummaryLine> {
    let (real, emulated) = (longest_wait(of)?, longest_emulated(of)?);
    (real >= WORTH_TELLING).then(|| {
        let (real_s, emulated_s) = (real.as_secs_f64(), emulated.as_secs_f64());
        let what = format!(
            "{real_s:.1} s of real time at most until a task had them, {emulated_s:.0} s emulated: on the bill of its \
             VM, and no work of the task"
        );
        SummaryLine::plain("inputs", what)
    })
}
