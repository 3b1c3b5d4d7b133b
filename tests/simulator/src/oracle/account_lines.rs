//! Checks that the account of each attempt is in the log once, before the report of the attempt's end, even if a crash
//! separates the two.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Report, Step};
use dormouse_units::{Attempt, HostId, TaskId};

use super::Broken;
use super::hosts::LyingHosts;
use crate::invariant::Invariant;

/// The accounts in a run's log, and the reports of the ends of attempts.
#[derive(Debug, Default)]
pub(super) struct AccountLines {
    accounts: BTreeSet<(TaskId, Attempt)>,
    reported: BTreeSet<(HostId, u64)>,
    /// Reports that the log does not have yet, although it has their accounts.
    awaited: BTreeSet<(HostId, u64)>,
    parted: u64,
}

impl AccountLines {
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::default();
    }

    /// How often a crash separated an account from its report.
    pub(super) const fn parted(&self) -> u64 {
        self.parted
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step, lying: &LyingHosts) -> Result<(), Broken> {
        if let Event::Resumed { .. } = step.event {
            self.parted += self.awaited.len() as u64;
        }
        let Event::Machine { host, number, report } = &step.event else { return Ok(()) };
        let said_by = (*host, *number);
        let (Report::Ledger { task, attempt, .. } | Report::JobAccount { task, attempt, .. }) =
            report
        else {
            self.awaited.remove(&said_by);
            self.reported.insert(said_by);
            return Ok(());
        };
        if step.effects.contains(&Effect::Stale) || lying.says(step) {
            return Ok(());
        }
        let wrong = |what: &str| {
            let why = format!("the account of {task}, {attempt} at step {} {what}", step.seq);
            Err((Invariant::AccountOnce, why))
        };
        if self.reported.contains(&said_by) {
            return wrong("comes after its report");
        }
        if !self.accounts.insert((*task, *attempt)) {
            return wrong("was there before");
        }
        self.awaited.insert(said_by);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::AttemptLedger;
    use dormouse_units::{Span, Time, VmId};

    use super::*;

    fn step(number: u64, report: Report) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, Event::Machine { host: HostId::new(1), number, report });
        step
    }

    fn account(task: u32) -> Report {
        Report::Ledger {
            vm: VmId::new(1),
            task: TaskId::new(task),
            attempt: Attempt::new(1),
            ledger: Box::new(AttemptLedger::default()),
            own: None,
        }
    }

    #[test]
    fn an_account_is_there_once_and_before_its_report() {
        let honest = LyingHosts::default();
        let mut resumed = Step::blank();
        resumed.begin_step(0, Time::ZERO, Event::Resumed { outage: Span::ZERO, away_real_us: 0 });
        let mut all = AccountLines::default();
        assert_eq!(all.see(&step(7, account(2)), &honest), Ok(()));
        assert_eq!(all.see(&resumed, &honest), Ok(()));
        assert_eq!(all.parted(), 1);
        assert!(all.see(&step(7, account(2)), &honest).is_err(), "a crash is no reason");
        let created = |number| step(number, Report::VmCreated { vm: VmId::new(1) });
        assert_eq!(all.see(&created(7), &honest), Ok(()));
        assert_eq!(all.see(&resumed, &honest), Ok(()));
        assert_eq!(all.parted(), 1, "its report is there");
        assert_eq!(all.see(&created(9), &honest), Ok(()));
        assert!(all.see(&step(9, account(3)), &honest).is_err(), "its report is there");
    }
}
