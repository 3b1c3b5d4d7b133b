//! Whether tasks and jobs stood still for their checkpoints as long as they had to.

/// What is missing may be this part of it …
const TOLERANCE: f64 = 0.25;
/// … or this much real time, in microseconds.
const SLACK_US: u64 = 20_000;

/// For how much too short it stood still for a checkpoint, if that is too much, as the end of a
/// sentence about it. Real microseconds.
#[must_use]
pub fn cut_short(held_us: u64, owed_us: u64) -> Option<String> {
    let missing = owed_us.saturating_sub(held_us);
    let short = missing as f64 > owed_us as f64 * TOLERANCE && missing > SLACK_US;
    let (held, owed) = (held_us / 1000, owed_us / 1000);
    short.then(|| format!("stood still for {held} ms of {owed} ms for a checkpoint"))
}
