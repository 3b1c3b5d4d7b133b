//! Messages of one worker's session: their numbers and acknowledgements, and which to send again after a reconnect.
//! Pure.

use std::collections::BTreeSet;

use dormouse_proto::{FalseAck, Gap, Inbox, Outbox, v1};
use tokio::time::Instant;

use crate::system::session_limits::SessionLimits;
use crate::time::clock::DilatedClock;

/// Reasons why a peer can't be trusted any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolViolation {
    #[error("it acknowledged command {}, but only {} were ever sent", .0.ack, .0.said)]
    Ack(FalseAck),
    #[error("it acknowledged command {ack}, but had acknowledged {kept} before")]
    Forgot { ack: u64, kept: u64 },
    #[error("it sent report {} after report {}: the reports between them are missing", .0.came, .0.taken)]
    Gap(Gap),
    #[error("report {number}: {why}")]
    Report { number: u64, why: String },
}

/// The instant from which the delay of a command counts.
#[derive(Clone, Debug)]
pub(crate) enum DecisionInstant {
    /// The command was decided at this instant of the host's clock.
    At(Instant),
    /// The command was decided while the run's clock was stopped: its delay counts from the clock's start.
    Standing(DilatedClock),
}

/// A command to a worker that isn't acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct QueuedCommand {
    pub(crate) command: v1::Command,
    pub(crate) since: DecisionInstant,
}

impl QueuedCommand {
    /// Returns the command to be sent now, with its delay.
    fn command_now(&self, now: Instant) -> v1::Command {
        let since = match &self.since {
            DecisionInstant::At(instant) => *instant,
            DecisionInstant::Standing(clock) => clock.started_at().unwrap_or(now),
        };
        let late = now.saturating_duration_since(since);
        let real_late_us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        v1::Command { real_late_us, ..self.command.clone() }
    }
}

/// Numbering of one session's messages: commands and reports are each numbered from 1.
///
/// Use: `on_connected` for each connection, `take_reports` for each message, `push` for commands whose steps are
/// durable, and `next_batch` to send them.
#[derive(Debug, Default)]
pub(crate) struct SessionLink {
    limits: SessionLimits,
    commands: Outbox<QueuedCommand>,
    reports: Inbox,
    /// Number up to which all reports are durable.
    durable: u64,
    /// Numbers of reports in the log of a resumed session that weren't received again.
    in_log: BTreeSet<u64>,
    /// True if the session is resumed from the log, and the worker hasn't said which messages it sends again.
    restored: bool,
}

impl SessionLink {
    /// Makes a session that sends no more in one message than these limits allow.
    pub(crate) fn new(limits: SessionLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Makes a session resumed from the log. `commands` are all commands that were ever to be sent to the worker;
    /// `in_log` are the numbers of the reports that the log has. Not every report becomes a line of the log, nor are
    /// the lines in the order of the reports.
    pub(crate) fn restored_link(
        commands: Vec<QueuedCommand>,
        in_log: BTreeSet<u64>,
        limits: SessionLimits,
    ) -> Self {
        let mut link = Self { in_log, restored: true, ..Self::new(limits) };
        link.push(commands);
        link
    }

    /// Adds commands to be sent.
    pub(crate) fn push(&mut self, commands: Vec<QueuedCommand>) {
        self.commands.extend(commands);
    }

    /// Begins a connection, on which all commands that the worker hasn't acknowledged are sent again.
    pub(crate) fn on_connected(&mut self, ack: u64) -> Result<(), ProtocolViolation> {
        self.on_acknowledged(ack)?;
        let kept = self.commands.acknowledged();
        if ack < kept {
            return Err(ProtocolViolation::Forgot { ack, kept });
        }
        self.commands.rewind();
        // Reports heard but not durable yet come again: they are dropped by number.
        Ok(())
    }

    /// Records that the worker has taken all commands up to `ack`.
    pub(crate) fn on_acknowledged(&mut self, ack: u64) -> Result<(), ProtocolViolation> {
        self.commands.take_ack(ack).map_err(ProtocolViolation::Ack)
    }

    /// Returns the reports of a message that this session has not received before, with their numbers. A report that comes twice
    /// is dropped by its number.
    pub(crate) fn take_reports(
        &mut self,
        reports: v1::Reports,
    ) -> Result<Vec<(u64, v1::Report)>, ProtocolViolation> {
        if std::mem::take(&mut self.restored) {
            // It has forgotten what was acknowledged, and only what is durable was.
            self.reports = Inbox::after(reports.first.saturating_sub(1));
        }
        let new =
            self.reports.take(reports.first, reports.reports).map_err(ProtocolViolation::Gap)?;
        let first = self.reports.taken() + 1 - new.len() as u64;
        let numbered = (first..).zip(new);
        Ok(numbered.filter(|(number, _)| !self.in_log.remove(number)).collect())
    }

    /// Returns whether the session was restored from the log, and its worker has only connected since.
    pub(crate) const fn is_fresh_from_log(&self) -> bool {
        self.restored
    }

    pub(crate) const fn heard_through(&self) -> u64 {
        self.reports.taken()
    }

    /// Records that reports up to `through` are durable, so that they may be acknowledged.
    pub(crate) fn made_durable(&mut self, through: u64) {
        self.durable = self.durable.max(through);
    }

    /// Returns the number up to which the next message to the worker acknowledges reports: all of them are durable.
    pub(crate) const fn next_ack(&self) -> u64 {
        self.durable
    }

    /// Takes the next commands to be sent now; `None`: there are none.
    pub(crate) fn next_batch(&mut self, now: Instant) -> Option<v1::Commands> {
        if !self.commands.has_news() {
            return None;
        }
        let (first, commands) = self.commands.next(self.limits.batch);
        Some(v1::Commands { first, commands: commands.map(|owed| owed.command_now(now)).collect() })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use dormouse_units::{Speedup, Time};
    use proptest::prelude::*;

    use super::*;

    fn command(vm: u32) -> v1::Command {
        let command = Some(v1::command::Command::FreezeVm(v1::VmRef { vm }));
        v1::Command { command, ..v1::Command::default() }
    }

    fn owed(vm: u32, since: Instant) -> QueuedCommand {
        QueuedCommand { command: command(vm), since: DecisionInstant::At(since) }
    }

    fn reports(first: u64, n: u32) -> v1::Reports {
        let reports = (0..n)
            .map(|i| v1::Report {
                report: Some(v1::report::Report::VmCreated(v1::VmRef {
                    vm: u32::try_from(first).expect("small") + i,
                })),
            })
            .collect();
        v1::Reports { first, reports }
    }

    #[test]
    fn what_was_not_acknowledged_is_sent_again_and_nothing_else() {
        let (mut link, now) = (SessionLink::default(), Instant::now());
        link.push([1, 2, 3].map(|vm| owed(vm, now)).into());
        assert_eq!(link.next_batch(now).map(|b| (b.first, b.commands.len())), Some((1, 3)));
        assert_eq!(link.next_batch(now), None);
        link.on_acknowledged(1).expect("it was sent");
        link.on_connected(2).expect("it was sent");
        // How late it is counts what the reconnect took.
        let later = now + Duration::from_millis(70);
        let again = link.next_batch(later).expect("command 3 was not taken");
        let late = v1::Command { real_late_us: 70_000, ..command(3) };
        assert_eq!((again.first, again.commands), (3, vec![late]));
        assert_eq!(
            link.on_acknowledged(9),
            Err(ProtocolViolation::Ack(FalseAck { ack: 9, said: 3 }))
        );
        assert_eq!(link.on_connected(1), Err(ProtocolViolation::Forgot { ack: 1, kept: 2 }));
    }

    #[test]
    fn a_command_is_not_late_as_long_as_the_clock_of_its_run_stands_still() {
        let clock = DilatedClock::standing_at(Speedup::times_real(73), Time::ZERO);
        let mut link = SessionLink::default();
        let since = DecisionInstant::Standing(clock.clone());
        link.push(vec![QueuedCommand { command: command(1), since }]);
        let (began, ms) = (Instant::now(), Duration::from_millis);
        let mut late_at = |after| {
            link.on_connected(0).expect("it acknowledges nothing");
            let batch = link.next_batch(began + after).expect("it is sent again");
            batch.commands[0].real_late_us
        };
        assert_eq!(late_at(ms(2_500)), 0);
        clock.run_since(began + ms(2_600), Time::ZERO);
        assert_eq!([ms(2_600), ms(2_670)].map(late_at), [0, 70_000]);
    }

    #[test]
    fn duplicates_are_dropped_and_gaps_are_nonsense() {
        let mut link = SessionLink::default();
        let mut numbers = |first, n| {
            link.take_reports(reports(first, n))
                .map(|new| new.iter().map(|(number, _)| *number).collect())
        };
        assert_eq!(numbers(1, 3), Ok(vec![1, 2, 3]));
        assert_eq!(numbers(2, 3), Ok(vec![4]));
        assert_eq!(numbers(1, 2), Ok(vec![]));
        assert_eq!(
            link.take_reports(reports(6, 1)),
            Err(ProtocolViolation::Gap(Gap { taken: 4, came: 6 }))
        );
        assert_eq!(
            link.take_reports(reports(0, 1)),
            Err(ProtocolViolation::Gap(Gap { taken: 4, came: 0 }))
        );
        assert_eq!(link.next_ack(), 0);
        link.made_durable(3);
        assert_eq!(link.next_ack(), 3);
    }

    #[test]
    fn a_restored_session_takes_what_its_log_has_not() {
        let mut link =
            SessionLink::restored_link(Vec::new(), [1, 2, 5, 7].into(), SessionLimits::default());
        let mut numbers = |first, n| {
            link.take_reports(reports(first, n))
                .map(|new| new.iter().map(|(number, _)| *number).collect())
        };
        assert_eq!(numbers(3, 3), Ok(vec![3, 4]));
        assert_eq!(numbers(6, 3), Ok(vec![6, 8]));
        assert_eq!(numbers(10, 1), Err(ProtocolViolation::Gap(Gap { taken: 8, came: 10 })));
    }

    #[test]
    fn numbers_that_run_over_are_nonsense() {
        for first in [u64::MAX - 2, u64::MAX] {
            // What a restored session hears first it can't doubt.
            let mut link =
                SessionLink::restored_link(Vec::new(), BTreeSet::new(), SessionLimits::default());
            let reports = v1::Reports { first, reports: vec![v1::Report::default(); 2] };
            let taken = first - 1;
            assert_eq!(
                link.take_reports(reports),
                Err(ProtocolViolation::Gap(Gap { taken, came: first }))
            );
        }
    }

    proptest! {
        /// However often the connection breaks, the worker takes every command once, in order.
        #[test]
        fn every_command_arrives_once(steps in prop::collection::vec((0_u32..4, 0_usize..4), 1..60)) {
            let (mut link, mut made, mut taken) = (SessionLink::default(), 0_u32, Vec::new());
            let now = Instant::now();
            let mut flight: VecDeque<v1::Commands> = VecDeque::new();
            let take = |batch: v1::Commands, taken: &mut Vec<v1::Command>| {
                let known = taken.len() as u64 + 1 - batch.first;
                taken.extend(batch.commands.into_iter().skip(usize::try_from(known).expect("small")));
            };
            for (what, n) in steps {
                match what {
                    0 => for _ in 0..n { made += 1; link.push(vec![owed(made, now)]); },
                    1 => flight.extend(link.next_batch(now)),
                    2 => if let Some(batch) = flight.pop_front() { take(batch, &mut taken); },
                    _ => {
                        // Some of what was under way arrives, the rest is lost with the connection.
                        for _ in 0..n { if let Some(b) = flight.pop_front() { take(b, &mut taken); } }
                        flight.clear();
                        link.on_connected(taken.len() as u64).expect("an honest worker");
                    }
                }
            }
            link.on_connected(taken.len() as u64).expect("an honest worker");
            while let Some(batch) = link.next_batch(now) { take(batch, &mut taken); }
            prop_assert_eq!(taken, (1..=made).map(command).collect::<Vec<_>>());
        }
    }
}
