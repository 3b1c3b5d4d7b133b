//! Freezing a VM and thawing it.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::report;
use dormouse_vm::life::Event;

use tokio::time::Instant;

use super::Owner;
use crate::agent::report::{report, took};

impl Owner {
    pub(crate) fn say_frozen(&self) {
        self.context.report(report(report::Report::VmFrozen(took(self.id, Duration::ZERO))));
    }

    pub(crate) async fn freeze(&mut self) {
        let asked = &self.commanded.clone();
        match Arc::clone(&self.machine).freeze().await {
            Ok(()) => {
                self.let_happen();
                let now = self.pass();
                self.model.freeze(now);
                let at = self.clock.decided(asked);
                self.clock.freeze(at);
                self.jobs_freeze(asked);
                self.frozen_at = Some(Instant::now());
                let took = took(self.id, asked.came.elapsed());
                self.context.report(report(report::Report::VmFrozen(took)));
                self.report_share();
                self.happen(Event::Frozen);
            }
            Err(why) => self.not_frozen(&why),
        }
    }

    /// A freeze that failed leaves it thawed.
    fn not_frozen(&mut self, why: &str) {
        self.gate.open();
        self.broken(why);
        self.happen(Event::NotFrozen);
    }

    fn not_thawed(&mut self, why: &str) {
        self.broken(why);
        self.happen(Event::NotThawed);
    }

    pub(crate) async fn thaw(&mut self) {
        let asked = &self.commanded.clone();
        match Arc::clone(&self.machine).thaw().await {
            Ok(()) => {
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
                self.context.report(report(report::Report::VmThawed(took)));
                self.jobs_thaw(asked);
                self.report_credits();
                self.happen(Event::Thawed);
            }
            Err(why) => self.not_thawed(&why),
        }
    }
}
