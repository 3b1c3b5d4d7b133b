//! Estimates of how long jobs take, from those that have ended.

use dormouse_units::{Ppm, Span};

/// Mean length of the jobs that ran from beginning to end without an interruption.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanLength {
    first: Option<Span>,
    total: Span,
    count: u64,
}

impl MeanLength {
    /// An estimate of the length before any job has ended: `first`, or unknown.
    pub(super) const fn new(first: Option<Span>) -> Self {
        Self { first, total: Span::ZERO, count: 0 }
    }

    /// Counts a job that took this long.
    pub(super) fn add_length(&mut self, span: Span) {
        self.total += span;
        self.count += 1;
    }

    /// Expected length of a whole job; `None`: unknown.
    pub(super) fn whole_length(&self) -> Option<Span> {
        let mean = self.total.as_micros().checked_div(self.count).map(Span::from_micros);
        mean.or(self.first)
    }

    /// Expected rest of a job whose part `kept` is done; `None`: unknown.
    pub(super) fn remaining_length(&self, kept: Ppm) -> Option<Span> {
        let whole = self.whole_length()?;
        Some(whole.saturating_sub(whole.part(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_have_ended_are_believed_before_the_first_estimate() {
        let s = Span::from_secs;
        assert_eq!(MeanLength::new(None).remaining_length(Ppm::ZERO), None);
        let mut length = MeanLength::new(Some(s(600)));
        assert_eq!(length.remaining_length(Ppm::ZERO), Some(s(600)));
        length.add_length(s(100));
        length.add_length(s(200));
        assert_eq!(length.remaining_length(Ppm::ZERO), Some(s(150)));
        assert_eq!(length.remaining_length(Ppm::new(800_000)), Some(s(30)));
    }
}
