//! Unit of the times on the page of a run.

use dormouse_units::{Span, Time};
use dormouse_view::TimeUnit;

use super::outcome::RunResults;

impl RunResults<'_> {
    /// Unit of all times on the page and in the chart: seconds, or hours in a long run.
    pub(super) fn time_unit(&self) -> TimeUnit {
        let record = self.record.as_ref().or(self.of_hosts.as_ref());
        let of_jobs = self.jobs.as_ref().map(|jobs| jobs.figures.end());
        let of_requests = self.requests.as_ref().map(|own| own.figures.usage.until());
        let ends = record.map(dormouse_analysis::RunRecord::end).into_iter();
        let end = ends.chain(of_jobs).chain(of_requests).max().unwrap_or_default();
        TimeUnit::for_longest(end.as_secs_f64())
    }
}

/// A formatter of times since the beginning of a run, with their unit.
pub(super) fn at(unit: TimeUnit) -> impl Fn(Time) -> String {
    move |at| unit.words(at.as_secs_f64(), 1)
}

/// A duration rounded to seconds, with its unit.
pub(super) fn round(unit: TimeUnit, span: Span) -> String {
    unit.words(span.as_secs_f64(), 0)
}
