//! Freezing a VM and thawing it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::report;
use dormouse_vm::life::Event;

use super::Owner;
use crate::agent::{
    host::limit,
    report::{report, took},
    threads::urgent,
};

impl Owner {
    pub(crate) fn say_frozen(&self) {
        self.host.report(report(report::Report::VmFrozen(took(self.id, Duration::ZERO))));
    }

    pub(crate) async fn freeze(&mut self) {
        let asked = &self.commanded.clone();
        let groups = Arc::clone(&self.groups);
        match urgent(move || groups.freeze(limit::FREEZE)).await {
            Ok(Ok(_)) => {
                self.let_happen();
                let now = self.pass();
                self.model.freeze(now);
                let at = self.clock.decided(asked);
                self.clock.freeze(at);
                self.jobs_freeze(asked);
                self.frozen_at = Some(Instant::now());
                let took = took(self.id, asked.came.elapsed());
                self.host.report(report(report::Report::VmFrozen(took)));
                self.report_share();
                self.happen(Event::Frozen);
            }
            Ok(Err(error)) => self.not_frozen(&error),
            Err(error) => self.not_frozen(&error),
        }
    }

    /// A freeze that failed leaves it thawed.
    fn not_frozen(&mut self, error: &dyn std::error::Error) {
        self.gate.open();
        self.fail(error);
        self.happen(Event::NotFrozen);
    }

    fn not_thawed(&mut self, error: &dyn std::error::Error) {
        self.fail(error);
        self.happen(Event::NotThawed);
    }

    pub(crate) async fn thaw(&mut self) {
        let asked = &self.commanded.clone();
        let groups = Arc::clone(&self.groups);
        match urgent(move || groups.thaw(limit::FREEZE)).await {
            Ok(Ok(_)) => {
                self.gate.open();
                self.resumed();
                let at = self.clock.decided(asked);
                self.clock.thaw(at);
                let now = self.pass();
                self.model.thaw(now);
                let stood = self.frozen_at.take().map_or(Duration::ZERO, |at| at.elapsed());
                for attempt in &mut self.attempts {
                    attempt.was_frozen(stood);
                }
                self.refresh_all();
                self.look_again();
                let took = took(self.id, asked.came.elapsed());
                self.host.report(report(report::Report::VmThawed(took)));
                self.jobs_thaw(asked);
                self.report_credits();
                self.happen(Event::Thawed);
            }
            Ok(Err(error)) => self.not_thawed(&error),
            Err(error) => self.not_thawed(&error),
        }
    }
}
