//! Relation of a run's clock to dates, and to the times of the log that its jobs come from.

use dormouse_input::{Moment, written};
use dormouse_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// Calendar of a run: every date shown for it, and every time of its log, is computed here.
///
/// The clock of a run begins at zero. If the log's times are dates, zero is the first submission,
/// so that a run does not begin with decades of waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Calendar {
    /// Date at clock zero in seconds since 1970 (UTC); `None`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<i64>,
    /// Time in the jobs' log at clock zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub log_time: Span,
}

impl Calendar {
    /// Calendar of a run without dates or log times.
    pub const UNKNOWN: Self = Self { began: None, log_time: Span::ZERO };

    /// True if neither dates nor log times are known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::UNKNOWN
    }

    /// Date and time (UTC) of an instant of the run, such as `2024-09-22 09:09:07`, in whole
    /// seconds; `None`: dates are unknown.
    #[must_use]
    pub fn date_at(&self, at: Time) -> Option<String> {
        let since = i64::try_from(at.as_micros() / 1_000_000).ok()?;
        Some(written(self.began?.checked_add(since)?))
    }

    /// Date of an instant in the form that follows its time: ` (2024-09-22 09:09:07 UTC)`; empty if
    /// dates are unknown.
    #[must_use]
    pub fn in_brackets(&self, at: Time) -> String {
        self.date_at(at).map(|date| format!(" ({date} UTC)")).unwrap_or_default()
    }

    /// Date and time at which the run begins, with its time zone: `2024-09-22 09:09:07 UTC`.
    #[must_use]
    pub fn beginning_date(&self) -> Option<String> {
        Some(format!("{} UTC", self.date_at(Time::ZERO)?))
    }

    /// Label of a figure's time axis: `time since` the date on which the run began, or `time since the
    /// beginning` if dates are unknown.
    #[must_use]
    pub fn time_axis(&self) -> String {
        format!(
            "time since {}",
            self.beginning_date().unwrap_or_else(|| "the beginning".to_owned())
        )
    }

    /// Instant of the run at this date; the beginning for an earlier one. `None`: dates are
    /// unknown.
    #[must_use]
    pub fn time_at(&self, date: Moment) -> Option<Time> {
        let since = date.second.saturating_sub(self.began?);
        Some(Time::ZERO + span_of(u64::try_from(since).unwrap_or(0)))
    }

    /// Time in the jobs' log at an instant of the run.
    #[must_use]
    pub fn in_log(&self, at: Time) -> Time {
        at + self.log_time
    }
}

/// A span of `s` seconds, limited to the longest span.
fn span_of(s: u64) -> Span {
    Span::from_micros(s.saturating_mul(1_000_000))
}

/// True if the span is zero.
fn is_zero(span: &Span) -> bool {
    *span == Span::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_dates_and_dates_instants() {
        let of = Calendar { began: Some(1_356_996_147), log_time: Span::from_secs(1_356_996_147) };
        assert_eq!(of.beginning_date().as_deref(), Some("2012-12-31 23:22:27 UTC"));
        assert_eq!(of.time_axis(), "time since 2012-12-31 23:22:27 UTC");
        let at = Time::from_micros(200_900_000);
        assert_eq!(of.date_at(at).as_deref(), Some("2012-12-31 23:25:47"));
        assert_eq!(of.in_brackets(at), " (2012-12-31 23:25:47 UTC)");
        assert_eq!(of.in_log(at), Time::from_micros(1_356_996_347_900_000));
        for (date, s) in [("2013-01-01T00:22:27Z", 3_600), ("1999-01-01T00:00:00Z", 0)] {
            let date = Moment::read(date).expect("a date");
            assert_eq!(of.time_at(date), Some(Time::from_secs(s)));
        }
    }

    #[test]
    fn without_dates_there_are_none() {
        let date = Moment::read("2013-01-01T00:22:27Z").expect("a date");
        let of = Calendar::UNKNOWN;
        assert!(of.is_unknown() && of == Calendar::default());
        assert_eq!(
            (of.date_at(Time::ZERO), of.beginning_date(), of.time_at(date)),
            (None, None, None)
        );
        assert_eq!(of.time_axis(), "time since the beginning");
        assert_eq!(of.in_brackets(Time::ZERO), "");
        assert_eq!(of.in_log(Time::from_secs(7)), Time::from_secs(7));
        assert_eq!(serde_json::to_string(&of).expect("JSON"), "{}");
        let later = Calendar { log_time: Span::from_secs(40_000_000), ..of };
        assert!(!later.is_unknown());
        let json = serde_json::to_string(&later).expect("JSON");
        assert_eq!(json, r#"{"log-time":40000000000000}"#);
        assert_eq!(serde_json::from_str::<Calendar>(&json).expect("a calendar"), later);
    }
}
