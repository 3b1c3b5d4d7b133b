//! Times and dates in the view of a run: their unit and rounding, and nothing where no date is known.

use dormouse_model::Calendar;
use dormouse_units::{Span, Time};
use dormouse_view::TimeUnit;
use dormouse_view::plot::{AxisScale, PlotAxis};
use serde_json::json;

use super::outcome::RunResults;
use super::{RunView, SummaryLine};

/// The beginning of the run in words; `None` if it is unknown.
pub(super) fn begins(calendar: Calendar) -> Option<String> {
    match (calendar.beginning_date(), calendar.log_time) {
        (date, Span::ZERO) => date,
        (Some(date), _) => Some(format!("{date}, with the first submission")),
        // The workload's log has it in seconds.
        (None, at) => {
            let s = at.as_micros() / 1_000_000;
            Some(format!("with the first submission, at {s} s of its log"))
        }
    }
}

/// End of the line of figures in a chart: the date from which the chart's times count.
pub(super) fn from_date(calendar: Calendar) -> String {
    calendar.beginning_date().map(|date| format!(" · from {date}")).unwrap_or_default()
}

/// Axis for figures over the time of a run.
pub(super) fn time_axis(calendar: Calendar, unit: TimeUnit) -> PlotAxis {
    PlotAxis::new(calendar.time_axis(), AxisScale::Time(unit))
}

/// Adds the beginning of the run to the lines and the summary.
pub(super) fn add(view: &mut RunView, calendar: Calendar) {
    let Some(begins) = begins(calendar) else { return };
    view.lines.insert(1.min(view.lines.len()), SummaryLine::plain("begins", begins));
    let mut clock = json!({});
    if let Some(date) = calendar.beginning_date() {
        clock["begins"] = json!(date);
    }
    if calendar.log_time > Span::ZERO {
        clock["log_time_s"] = json!(calendar.log_time.as_secs_f64());
    }
    view.summary["clock"] = clock;
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_said() {
        let of = |began, s| Calendar { began, log_time: Span::from_secs(s) };
        assert_eq!(begins(of(None, 0)), None);
        assert_eq!(from_date(of(None, 40)), "");
        let dated = of(Some(1_356_996_147), 0);
        assert_eq!(begins(dated).as_deref(), Some("2012-12-31 23:22:27 UTC"));
        assert_eq!(from_date(dated), " · from 2012-12-31 23:22:27 UTC");
        let far = begins(of(None, 36_000_007)).expect("it is said");
        assert_eq!(far, "with the first submission, at 36000007 s of its log");
    }
}
