//! Sources of the run's time: the host's clock times a factor, or requests that advance the clock.

use std::time::Instant;

use dormouse_ec2_wire::write_instant;
use dormouse_units::{Span, Speedup, Time};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::CloudSession;

/// The longest time by which one request may advance the clock.
const LONGEST_ADVANCE: Span = Span::from_secs(10 * 366 * 86_400);

/// The way in which the run's time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClockMode {
    /// The clock runs this many times as fast as the host's.
    Paced(Speedup),
    /// The clock is stopped until a request advances it.
    Manual,
    /// The clock is that of a live run, which runs this many times as fast as the host's.
    Live(Speedup),
}

/// How far the clock is to be advanced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdvanceRequest {
    /// Seconds by which the clock advances; `None`: the request has `until`.
    by: Option<f64>,
    /// The word `next-event`: the clock advances to the next event; `None`: the request has `by`.
    until: Option<String>,
}

/// A simulated cloud together with its clock.
pub(crate) struct ClockedCloud<S> {
    session: S,
    mode: ClockMode,
    /// Instant of the host's clock, and time of the run's clock, at which the server began.
    began: (Instant, Time),
}

impl<S> std::fmt::Debug for ClockedCloud<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClockedCloud").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl<S: CloudSession> ClockedCloud<S> {
    pub(crate) fn new(session: S, mode: ClockMode) -> Self {
        // A live run has a clock of its own.
        let from = if matches!(mode, ClockMode::Live(_)) { Time::ZERO } else { session.now() };
        let began = (Instant::now(), from);
        Self { session, mode, began }
    }

    /// The cloud, advanced to the present time of its clock.
    pub(crate) fn session(&mut self) -> &mut S {
        if let ClockMode::Paced(speedup) = self.mode {
            let (began, from) = self.began;
            self.session.advance_to(from + speedup.to_emulated(began.elapsed()));
        }
        &mut self.session
    }

    /// Returns the cloud, after the last call.
    pub(crate) fn into_session(mut self) -> S {
        self.session();
        self.session
    }

    /// The records of services beside EC2 that the run has kept.
    pub(crate) fn kept_records(&self) -> Vec<String> {
        self.session.kept_records()
    }

    /// The present date, in microseconds since 1970.
    pub(crate) fn date(&mut self) -> i64 {
        let session = self.session();
        date_of(session, session.now())
    }

    /// The answer to `/_dormouse/now`.
    pub(crate) fn now_document(&mut self) -> Value {
        let clock = match self.mode {
            ClockMode::Paced(_) => "paced",
            ClockMode::Manual => "manual",
            ClockMode::Live(_) => "live",
        };
        let session = self.session();
        let micros = date_of(session, session.now());
        let next = session.next_event_at();
        json!({
            "clock": clock,
            "now_s": session.now().as_secs_f64(),
            "date": write_instant(micros),
            "unix_us": micros,
            "next_event_s": next.map(Time::as_secs_f64),
            "next_event_unix_us": next.map(|at| date_of(session, at)),
        })
    }

    /// Advances the clock as a request in JSON says.
    ///
    /// # Errors
    ///
    /// The reason why the clock can't be advanced as requested, with the remedy.
    pub(crate) fn advance(&mut self, body: &[u8]) -> Result<(), String> {
        const REMEDY: &str = "send {\"by\": SECONDS} or {\"until\": \"next-event\"}";
        if self.mode != ClockMode::Manual {
            return Err("this clock follows the host's; start with --clock manual".to_owned());
        }
        let wanted: AdvanceRequest =
            serde_json::from_slice(body).map_err(|error| format!("{error}; {REMEDY}"))?;
        let now = self.session.now();
        let to = match (wanted.by, wanted.until.as_deref()) {
            (Some(by), None) => {
                let by = Span::from_secs_f64(by).filter(|by| *by <= LONGEST_ADVANCE);
                now + by.ok_or_else(|| "'by' has to be from 0 to 316224000 seconds".to_owned())?
            }
            (None, Some("next-event")) => self
                .session
                .next_event_at()
                .ok_or_else(|| "no event is due: give 'by', a number of seconds".to_owned())?,
            _ => return Err(REMEDY.to_owned()),
        };
        self.session.advance_to(to);
        Ok(())
    }
}

/// The date of an instant of the run, in microseconds since 1970.
fn date_of(session: &dyn CloudSession, at: Time) -> i64 {
    session.begins_at().saturating_add(i64::try_from(at.as_micros()).unwrap_or(i64::MAX))
}
