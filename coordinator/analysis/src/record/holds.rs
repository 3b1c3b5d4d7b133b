//! Check that tasks and jobs stood still for their checkpoints as long as they had to.

/// Part of the owed time that may be missing.
const TOLERANCE: f64 = 0.25;
/// Real time that may be missing as well, in microseconds.
const SLACK_US: u64 = 20_000;

/// The end of a sentence on a checkpoint for which a task was stopped too briefly; `None` if the time
/// is all right. Times are real microseconds.
#[must_use]
pub fn cut_short(held_us: u64, owed_us: u64) -> Option<String> {
    let missing = owed_us.saturating_sub(held_us);
    let short = missing as f64 > owed_us as f64 * TOLERANCE && missing > SLACK_US;
    let (held, owed) = (held_us / 1000, owed_us / 1000);
    short.then(|| format!("was stopped for {held} ms instead of {owed} ms for a checkpoint"))
}
