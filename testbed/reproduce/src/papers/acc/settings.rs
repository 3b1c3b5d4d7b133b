//! Settings of all cases from the command line: the part of the records that is used, and the job.

use dormouse_cloud::RecordDates;
use dormouse_spot::SpotJob;
use dormouse_units::{Span, Time};

use crate::sweep::SweepError;

/// Work of the paper's job: 500 minutes.
const WORK: Span = Span::from_secs(500 * 60);

/// Beginning or end of the part of a price record that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordBorder {
    /// Time after the first price of each record.
    After(Span),
    /// A date, in seconds since 1970 (UTC).
    Date(i64),
}

/// The part of each spot price record that is used, and the job that runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordSettings {
    from: Option<RecordBorder>,
    until: Option<RecordBorder>,
    /// The job that runs on spot instances, with the parameters of its checkpoint schemes.
    pub(super) job: SpotJob,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self { from: None, until: None, job: SpotJob::with_work(WORK) }
    }
}

impl RecordSettings {
    /// Reads settings of the form `key=value`: `from` and `until` with a time after the first price
    /// of each record or, after an `@`, in seconds since 1970; `job`, `checkpoint`, `restart` and
    /// `look` with a duration.
    ///
    /// # Errors
    ///
    /// [`SweepError::BadInput`] for an unknown key, a wrong value, or a job that can't run.
    pub(crate) fn read(set: &[String]) -> Result<Self, SweepError> {
        let mut all = Self::default();
        for text in set {
            let wrong = || {
                let keys = "from, until, job, checkpoint, restart, look";
                SweepError::BadInput(format!(
                    "{text}: write KEY=VALUE with a length of time, or @ and seconds since 1970 for from and until; KEY is one of {keys}"
                ))
            };
            let (key, value) = text.split_once('=').ok_or_else(wrong)?;
            let span = || value.parse::<Span>().map_err(|_| wrong());
            let edge = || match value.strip_prefix('@') {
                Some(second) => second.parse().map(RecordBorder::Date).map_err(|_| wrong()),
                None => span().map(RecordBorder::After),
            };
            match key {
                "from" => all.from = Some(edge()?),
                "until" => all.until = Some(edge()?),
                "job" => all.job.work = span()?,
                "checkpoint" => all.job.checkpoint = span()?,
                "restart" => all.job.restart = span()?,
                "look" => all.job.look = span()?,
                _ => return Err(wrong()),
            }
        }
        all.checked()
    }

    /// Returns the settings if a job can run with them, and an error otherwise.
    fn checked(self) -> Result<Self, SweepError> {
        let SpotJob { work, checkpoint, look, .. } = self.job;
        let wrong = |what: &str| Err(SweepError::BadInput(what.to_owned()));
        if work == Span::ZERO {
            return wrong("--job 0s: give a job with some work");
        }
        if checkpoint + look >= dormouse_spot::HOUR {
            return wrong(
                "--checkpoint and --look: together they are longer than an hour; give less",
            );
        }
        Ok(self)
    }

    /// Beginning and length of the used part of a record of this length, from its first price on.
    /// `None` if no part is used, or if the settings have dates and the record has none.
    pub(super) fn part(&self, dates: Option<RecordDates>, length: Span) -> Option<(Span, Time)> {
        let place = |edge: RecordBorder| match edge {
            RecordBorder::After(span) => Some(span),
            RecordBorder::Date(second) => {
                let since = second.saturating_sub(dates?.second_after(Span::ZERO));
                Some(Span::from_secs(u64::try_from(since).unwrap_or(0)))
            }
        };
        let from = self.from.map_or(Some(Span::ZERO), place)?;
        let until = self.until.map_or(Some(length), place)?.min(length);
        (from < until).then(|| (from, Time::ZERO + until.saturating_sub(from)))
    }

    /// Whether each record is used as a whole.
    pub(super) const fn takes_all(&self) -> bool {
        self.from.is_none() && self.until.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[&str]) -> Result<RecordSettings, SweepError> {
        RecordSettings::read(&set.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_job_and_a_part_of_the_record_are_set() {
        let of = read(&["job=100m", "checkpoint=10m", "restart=0s", "look=2m"]).expect("right");
        let minutes = |n: u64| Span::from_secs(60 * n);
        let SpotJob { work, checkpoint, restart, look, .. } = of.job;
        let wanted = [minutes(100), minutes(10), Span::ZERO, minutes(2)];
        assert_eq!([work, checkpoint, restart, look], wanted);
        let day = |n: u64| Span::from_secs(86_400 * n);
        assert_eq!(of.part(None, day(9)), Some((Span::ZERO, Time::ZERO + day(9))));
        let of = read(&["from=1d", "until=3d"]).expect("right");
        assert_eq!(of.part(None, day(9)), Some((day(1), Time::ZERO + day(2))));
        assert_eq!(of.part(None, day(2)), Some((day(1), Time::ZERO + day(1))));
        assert_eq!(of.part(None, day(1)), None, "the record has ended by then");
        // A record without dates is not known to have any part between two.
        assert_eq!(read(&["from=@86400"]).expect("right").part(None, day(9)), None);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_right() {
        for set in ["from=yesterday", "until=@x", "job", "bid=3h", "look=5"] {
            let error = read(&[set]).expect_err(set).to_string();
            assert!(error.contains(set) && error.contains("checkpoint"), "{error}");
        }
        assert!(read(&["job=0s"]).is_err() && read(&["look=56m"]).is_err());
    }
}
