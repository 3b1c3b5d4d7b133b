//! Checkpoints at even intervals, whose length follows from the VMs' rate of failures.

use dormouse_model::OfType;
use dormouse_units::{Span, Time};

use super::every::EveryWork;
use super::{Checkpointing, Quote, TaskView, When};

/// Optimal interval of work between checkpoints that take `checkpoint` each, on VMs without ageing
/// that live for `mttf` on average: sqrt(2 · δ · MTTF) (Young 1974, first order of Daly 2006). At
/// least a microsecond.
#[must_use]
pub fn young_daly(checkpoint: Span, mttf: Span) -> Span {
    let seconds = (2.0 * checkpoint.as_secs_f64() * mttf.as_secs_f64()).sqrt();
    Span::from_secs_f64(seconds).unwrap_or(mttf).max(Span::from_micros(1))
}

/// Checkpoints at even intervals of the work, by the mean lifetimes of instance types.
#[derive(Debug)]
pub(super) struct YoungDaly(pub(super) Vec<OfType<Span>>);

impl Checkpointing for YoungDaly {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        let mttf = &self.0[OfType::find_place(&self.0, Some(quote.kind))?];
        EveryWork(young_daly(task.cost, mttf.of)).next(now, task, quote)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_and_a_minute_are_eleven_minutes() {
        let tau = young_daly(Span::from_secs(60), Span::from_secs(3_600)).as_secs_f64();
        assert!((tau - 657.267).abs() < 0.001, "{tau}");
        assert_eq!(young_daly(Span::ZERO, Span::from_secs(1)), Span::from_micros(1));
    }
}
