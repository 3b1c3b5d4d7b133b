//! The explanation of one thing in a run, as text and as JSON.

use std::fmt::{self, Display, Formatter};

use dormouse_model::Calendar;
use dormouse_units::{Span, Time};
use serde::Serialize;

use crate::VmHistory;

/// Explanation of a task, VM, host, request or parallel job. `Display` writes lines without a last
/// line break; in JSON its times are seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Heading that names the explained thing, such as `vm3 (spot c3.large at $0.032/h, on host0)`.
    pub of: String,
    /// The explained events, in order of time.
    pub happened: Vec<ExplainedEvent>,
    /// Closing sentences of the explanation, on the outcome.
    pub came_to: Vec<String>,
    /// Whether `Display` writes times as hours, minutes and seconds instead of seconds.
    #[serde(skip)]
    pub(super) has_hours: bool,
}

/// One event of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExplainedEvent {
    /// Emulated time of the event; `None` if it belongs to the previous event.
    #[serde(rename = "at_s", serialize_with = "crate::in_seconds::maybe_time")]
    pub at: Option<Time>,
    /// Date and time (UTC) of the event; `None` if no date is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The event and its reason, as a sentence.
    pub what: String,
}

impl Explanation {
    pub(super) fn about(of: String) -> Self {
        Self { of, ..Self::default() }
    }

    /// Adds the dates of all events, if the run's calendar knows dates.
    #[must_use]
    pub fn on(mut self, calendar: Calendar) -> Self {
        for line in &mut self.happened {
            line.date = line.at.and_then(|at| calendar.date_at(at));
        }
        self
    }

    /// Adds an event at this time.
    pub(super) fn say(&mut self, at: Time, what: impl Into<String>) {
        self.happened.push(ExplainedEvent { at: Some(at), date: None, what: what.into() });
    }

    /// Adds a remark on the last event.
    pub(super) fn add(&mut self, what: impl Into<String>) {
        self.happened.push(ExplainedEvent { at: None, date: None, what: what.into() });
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)?;
        let has_dates = self.happened.iter().any(|line| line.date.is_some());
        if has_dates {
            f.write_str(" (dates: UTC)")?;
        }
        for ExplainedEvent { at, date, what } in &self.happened {
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

/// A remark if the VM is charged from `at` on; else an empty text.
pub(super) fn charged_from(vm: &VmHistory, at: Time) -> &'static str {
    if vm.meter().first_started() == Some(at) { "; charged from here" } else { "" }
}

/// Formats a time in seconds with one decimal and the unit.
pub(super) fn seconds(span: Span) -> String {
    format!("{:.1} s", span.as_secs_f64())
}
