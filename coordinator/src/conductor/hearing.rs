//! Feeds reports and timers to the run in the order in which they were due.

use dormouse_engine::drive::{AgendaKind, RunAgenda};
use dormouse_model::{Effect, Event, MAX_REPORT_DELAY, Report};
use dormouse_units::{Span, Time};
use tokio::time::Instant;

use super::ConductorState;
use super::inbox::ArrivedReport;

impl ConductorState {
    /// Feeds all reports that were due a moment ago, unless a report that may be earlier is still under way.
    pub(super) fn hear_what_is_due(&mut self) {
        let now = Instant::now();
        let before = |span| self.clock.show_at(now.checked_sub(span).unwrap_or(now));
        let (until, earliest) = (before(self.clock_lag()), before(MAX_REPORT_DELAY));
        self.hear_until(until, Some(earliest));
    }

    /// Feeds all reports and timers up to `until` in the order in which they were due. If `earliest` is given, a
    /// report of that time is still under way, and nothing after it is fed.
    pub(super) fn hear_until(&mut self, until: Time, earliest: Option<Time>) {
        let mut ticked = None;
        while self.broken.is_none() && self.returning.is_none() {
            let under_way =
                earliest.and_then(|earliest| self.outstanding.under_way_since(earliest));
            let just_before = under_way.map(|at| at - Span::from_micros(1));
            let until = just_before.map_or(until, |at| at.min(until));
            let wakes = self.run.next_wakeup();
            // A timer that has just been heard of and is still due can't end an instant.
            let again = wakes.filter(|at| ticked == Some(*at));
            let (outside, follower) = self.next_arrivals();
            let agenda = RunAgenda {
                outside,
                follower,
                tick: if again.is_some() { None } else { wakes },
                machine: self.inbox.first_due(),
                instant: self
                    .run
                    .pending_instant()
                    .filter(|at| again.is_none_or(|again| again > *at)),
                // The user's word is heard as it comes.
                cancel: None,
            };
            let Some((at, turn)) = agenda.first_due().filter(|(at, _)| *at <= until) else {
                return;
            };
            match turn {
                AgendaKind::Outside => self.submit_next(at),
                AgendaKind::Follower => self.submit_follower(at),
                AgendaKind::Tick => {
                    ticked = Some(at);
                    self.feed_event(at, Event::Tick);
                }
                AgendaKind::Machine => match self.inbox.pop_due(until) {
                    Some((due, arrived)) => self.feed_report(due, arrived),
                    None => return,
                },
                AgendaKind::InstantOver => self.feed_event(at, Event::InstantOver),
                AgendaKind::Cancel => return,
            }
        }
    }

    /// Feeds a report, after the account that belongs to it.
    fn feed_report(&mut self, due: Time, arrived: ArrivedReport) {
        let ArrivedReport { host, number, mut report, mut ledger } = arrived;
        let Some(entry) = self.roster.get_mut(host).filter(|e| !e.is_lost()) else { return };
        entry.numbers.mark_heard(number);
        if let Some(ledger) = &mut ledger {
            self.strip_end_of_another(ledger);
        }
        let end = match &ledger {
            Some(Report::Ledger { own, .. }) => own.clone(),
            _ => None,
        };
        let is_in_log = self.parted.remove(&(host, number));
        if let Some(report) = ledger
            && !is_in_log
            && self.is_believable(host, &report)
        {
            self.feed_event(due, Event::Machine { host, number, report });
        }
        if !self.is_believable(host, &report) {
            return;
        }
        self.check_answer(&mut report, end.as_deref());
        self.check_checkpoint(host, &mut report);
        if let Report::VmDestroyed { vm } = report {
            self.outstanding.destroyed(host, vm);
        }
        self.feed_event(due, Event::Machine { host, number, report });
        let is_stale =
            self.batch.steps.last().is_some_and(|it| it.effects.contains(&Effect::Stale));
        if is_stale && let Some(entry) = self.roster.get_mut(host) {
            entry.stale.count_stale();
        }
    }
}
