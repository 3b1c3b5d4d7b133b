//! What there is to say of one thing in a run.

use std::fmt::{self, Display, Formatter};

use dormouse_model::Calendar;
use dormouse_units::{Span, Time};
use serde::Serialize;

use crate::VmHistory;

/// What there is to say of a task, a VM or a parallel job. Displayed it is lines without a last line
/// break; as JSON its times are seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What it is, such as `vm3 (spot c3.large at $0.032/h, on host0)`.
    pub of: String,
    /// What happened to it, in order.
    pub happened: Vec<Line>,
    /// What it came to, sentence by sentence.
    pub came_to: Vec<String>,
    /// Times are written as hours, minutes and seconds for people, and not as seconds alone.
    #[serde(skip)]
    pub(super) has_hours: bool,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// When, in emulated time; `None`: it belongs to the line before.
    #[serde(rename = "at_s", serialize_with = "crate::in_seconds::maybe_time")]
    pub at: Option<Time>,
    /// Date and time (UTC) of that; `None`: no date is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// What happened, and why.
    pub what: String,
}

impl Explanation {
    pub(super) fn about(of: String) -> Self {
        Self { of, ..Self::default() }
    }

    /// This explanation with the dates of what happened, as far as the run's calendar has them.
    #[must_use]
    pub fn on(mut self, calendar: Calendar) -> Self {
        for line in &mut self.happened {
            line.date = line.at.and_then(|at| calendar.date(at));
        }
        self
    }

    /// Adds what happened at this time.
    pub(super) fn say(&mut self, at: Time, what: impl Into<String>) {
        self.happened.push(Line { at: Some(at), date: None, what: what.into() });
    }

    /// More about what was said last.
    pub(super) fn add(&mut self, what: impl Into<String>) {
        self.happened.push(Line { at: None, date: None, what: what.into() });
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)?;
        let has_dates = self.happened.iter().any(|line| line.date.is_some());
        if has_dates {
            f.write_str(" (dates: UTC)")?;
        }
        for Line { at, date, what } in &self.happened {
            match at {
                Some(at) if self.has_hours => write!(f, "\n{:>16}", at.to_string())?,
                Some(at) => write!(f, "\n  {:9.1} s", at.as_secs_f64())?,
                None => write!(f, "\n  {:11}", "")?,
            }
            if has_dates {
                write!(f, "  {:19}", date.as_deref().unwrap_or_default())?;
            }
            write!(f, "  {what}")?;
        }
        self.came_to.iter().try_for_each(|sentence| write!(f, "\n  {sentence}"))
    }
}

/// What is added to what happened to a VM at this time: whether its bill begins.
pub(super) fn charged_from(vm: &VmHistory, at: Time) -> &'static str {
    if vm.meter().first_started() == Some(at) { "; charged from here" } else { "" }
}

/// Seconds with one decimal and their unit, for people.
pub(super) fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}
