//! Freezing a VM and thawing it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::report;

use super::{clock::Asked, owner::Owner};
use crate::agent::{
    host::limit,
    report::{report, took},
    threads::urgent,
};

impl Owner {
    pub(crate) async fn freeze(&mut self, asked: &Asked) {
        if self.is_frozen() {
            self.host.report(report(report::Report::VmFrozen(took(self.id, Duration::ZERO))));
            return;
        }
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
            }
            Ok(Err(error)) => self.not_frozen(&error),
            Err(error) => self.not_frozen(&error),
        }
    }

    /// A freeze that failed leaves it thawed.
    fn not_frozen(&mut self, error: &dyn std::error::Error) {
        self.gate.open();
        self.fail(error);
    }

    pub(crate) async fn thaw(&mut self, asked: &Asked) {
        let groups = Arc::clone(&self.groups);
        match urgent(move || groups.thaw(limit::FREEZE)).await {
            Ok(Ok(_)) => {
                self.gate.open();
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
                self.report_credits();
                for (key, result) in std::mem::take(&mut self.held) {
                    self.launched(key, result);
                }
                self.jobs_thaw(asked);
            }
            Ok(Err(error)) => self.fail(&error),
            Err(error) => self.fail(&error),
        }
    }
}
