//! The origin of the times of a log in a run.

use std::ops::RangeInclusive;

use dormouse_model::{Calendar, Submission};
use dormouse_units::{Span, Time};

/// First submission time at or above which a log's times are shifted to begin at zero: a year. Logs
/// count from about their own beginning; later times are dates, or the middle of a log of many
/// years.
const FAR: Span = Span::from_secs(365 * 86_400);

/// Range of seconds since 1970, from 1990 to 2100, that is taken for dates.
const DATES: RangeInclusive<i64> = 631_152_000..=4_102_444_800;

/// Shift of submission times so that a log that begins far from zero begins at zero.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SubmissionOrigin(Option<Span>);

impl SubmissionOrigin {
    /// The shift for a log whose first job is submitted at this time.
    pub(crate) fn of_log(first: Time) -> Self {
        Self(Some(origin_of_log(first)))
    }

    /// A submission of the log with its time on the run's clock.
    pub(crate) fn shift_submission(&mut self, job: Submission) -> Submission {
        let origin = *self.0.get_or_insert_with(|| origin_of_log(job.submitted));
        Submission { submitted: job.submitted - origin, ..job }
    }
}

/// Time of the log at which the run's clock is zero, given its first submission.
fn origin_of_log(first: Time) -> Span {
    let first = first.since(Time::ZERO);
    if first < FAR { Span::ZERO } else { first }
}

/// Calendar of a run of a log, from its first submission and the start time in its header (seconds
/// since 1970; `None`: not given).
pub(crate) fn calendar_of_log(first: Time, unix_start: Option<u64>) -> Calendar {
    let log_time = origin_of_log(first);
    let second = i64::try_from(first.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let start = unix_start.and_then(|start| i64::try_from(start).ok());
    // Logs write zero if the date is unknown.
    let start = start.filter(|start| DATES.contains(start));
    let of_log = i64::try_from(log_time.as_micros() / 1_000_000).unwrap_or(i64::MAX);
    let began = match start {
        // Times that are past the beginning of the log count from 1970 themselves.
        Some(start) if second < start => Some(start + of_log),
        _ => Some(second).filter(|second| DATES.contains(second)),
    };
    Calendar { began, log_time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_begin_where_their_first_job_is_submitted_if_that_is_far() {
        const START: u64 = 843_480_031;
        let year = 365 * 86_400;
        for (first, unix_start, began, log_time) in [
            // Logs of the archive count from their beginning, and most say when that was.
            (0, None, None, 0),
            (1_000, Some(0), None, 0),
            (5, Some(START), Some(843_480_031), 0),
            (year - 1, None, None, 0),
            // One from the middle of a log of many years.
            (year, None, None, year),
            (year + 7, Some(START), Some(843_480_031 + 31_536_007), year + 7),
            // Dates, whatever the header says of the beginning.
            (1_356_996_147, None, Some(1_356_996_147), 1_356_996_147),
            (1_356_996_147, Some(0), Some(1_356_996_147), 1_356_996_147),
            (1_356_996_147, Some(1_356_996_000), Some(1_356_996_147), 1_356_996_147),
            // No year that anybody lives in.
            (900_000_000_000, None, None, 900_000_000_000),
        ] {
            let log_time = Span::from_secs(log_time);
            let of = calendar_of_log(Time::from_secs(first), unix_start);
            assert_eq!(of, Calendar { began, log_time }, "{first} {unix_start:?}");
        }
    }
}
