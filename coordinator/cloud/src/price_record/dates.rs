//! Intervals of calendar time.

use std::fmt;

use dormouse_units::Span;

use dormouse_input::written;

/// First and last date of a record, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordDates {
    first: i64,
    last: i64,
}

impl RecordDates {
    pub(super) const fn new((first, last): (i64, i64)) -> Self {
        Self { first, last }
    }

    /// The common part of two intervals; `None`: there is none.
    #[must_use]
    pub fn common_part(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    /// Second since 1970 that is `span` after the first date.
    #[must_use]
    pub fn second_after(self, span: Span) -> i64 {
        let seconds = i64::try_from(span.as_micros() / 1_000_000).unwrap_or(i64::MAX);
        self.first.saturating_add(seconds)
    }

    /// Time from the first to the last date.
    #[must_use]
    pub fn length(self) -> Span {
        span_of(self.last - self.first)
    }

    /// Time from this first date to the first date of `others`; zero if the other date is earlier.
    #[must_use]
    pub fn time_before(self, others: Self) -> Span {
        span_of(others.first - self.first)
    }
}

impl fmt::Display for RecordDates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", written(self.first), written(self.last))
    }
}

fn span_of(n: i64) -> Span {
    Span::from_secs(u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_have_in_common_begins_with_the_later_and_ends_with_the_earlier() {
        let of = |first, last| RecordDates::new((first, last));
        let (early, late) = (of(0, 100), of(60, 300));
        assert_eq!(early.common_part(late), Some(of(60, 100)));
        assert_eq!(late.common_part(early), early.common_part(late));
        assert_eq!(early.common_part(of(100, 200)), Some(of(100, 100)));
        assert_eq!(early.common_part(of(101, 200)), None);
        assert_eq!(
            (early.length(), early.time_before(late)),
            (Span::from_secs(100), Span::from_secs(60))
        );
        assert_eq!(late.time_before(early), Span::ZERO);
        assert_eq!(late.second_after(Span::from_secs(7)), 67);
        assert_eq!(of(0, 86_400).to_string(), "1970-01-01 00:00:00 to 1970-01-02 00:00:00");
    }
}
