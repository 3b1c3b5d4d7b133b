//! Which bid and which type to take (ACC paper, Algorithm 1).

use dormouse_units::{Price, Span};

use super::SpotRecord;

/// The bid of the application: the least price on demand (Eq. 7); `None` of nothing.
#[must_use]
pub fn lowest_bid(on_demand: impl IntoIterator<Item = Price>) -> Option<Price> {
    on_demand.into_iter().min()
}

/// How long a job without checkpoints is expected to take, hours of waiting left out (Eq. 8): with f the
/// part of the instances that was left to this bid for so long and r the restart,
/// (w · P(T ≥ w) + Σ over T < w of (T + r) f(T)) / P(T ≥ w). In seconds; `None`: no instance lasted as long
/// as the job.
#[must_use]
pub fn expected_execution(record: &SpotRecord<'_>, work: Span, restart: Span) -> Option<f64> {
    let uptimes = record.uptimes();
    let (short, long) = uptimes.split_at(uptimes.partition_point(|uptime| *uptime < work));
    // The last instance is left when the record ends: it counts if that was long enough.
    #[expect(clippy::cast_precision_loss, reason = "uptimes are few")]
    let lasted = (long.len() + usize::from(record.open_for() >= work)) as f64;
    let lost: Span = short.iter().map(|uptime| *uptime + restart).sum();
    (lasted > 0.0).then(|| work.as_secs_f64() + lost.as_secs_f64() / lasted)
}
