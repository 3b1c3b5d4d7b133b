//! Freezing a VM and thawing it.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::report;
use dormouse_vm::life::VmEvent;

use tokio::time::Instant;

use super::VmOwner;
use crate::agent::report::{make_report, vm_took};

impl VmOwner {
    pub(crate) fn say_frozen(&self) {
        self.context
            .send_report(make_report(report::Report::VmFrozen(vm_took(self.id, Duration::ZERO))));
    }

    pub(crate) async fn freeze_vm(&mut self) {
        let asked = &self.commanded.clone();
        match Arc::clone(&self.machine).freeze().await {
            Ok(()) => {
                self.let_happen();
                let now = self.pass_time();
                self.model.freeze_vm(now);
                let at = self.clock.note_decided(asked);
                self.clock.freeze_at(at);
                self.jobs_freeze(asked);
                self.frozen_at = Some(Instant::now());
                self.cell_freezes();
                let took = vm_took(self.id, asked.came.elapsed());
                self.context.send_report(make_report(report::Report::VmFrozen(took)));
                self.report_share();
                self.apply_event(VmEvent::Frozen);
            }
            Err(why) => self.not_frozen(&why),
        }
    }

    /// Handles a failed freeze, after which the VM is thawed.
    fn not_frozen(&mut self, why: &str) {
        self.gate.open();
        self.vm_broken(why);
        self.apply_event(VmEvent::NotFrozen);
    }

    fn not_thawed(&mut self, why: &str) {
        self.vm_broken(why);
        self.apply_event(VmEvent::NotThawed);
    }

    pub(crate) async fn thaw_vm(&mut self) {
        let asked = &self.commanded.clone();
        match Arc::clone(&self.machine).thaw().await {
            Ok(()) => {
                self.gate.open();
                self.vm_resumed();
                let at = self.clock.note_decided(asked);
                self.clock.thaw_at(at);
                let now = self.pass_time();
                self.model.thaw_vm(now);
                let stood = self.frozen_at.take().map_or(Duration::ZERO, |at| at.elapsed());
                for attempt in &mut self.attempts {
                    attempt.was_frozen(stood);
                }
                self.refresh_all();
                self.look_again();
                self.cell_thaws();
                let took = vm_took(self.id, asked.came.elapsed());
                self.context.send_report(make_report(report::Report::VmThawed(took)));
                self.jobs_thaw(asked);
                self.report_credits();
                self.apply_event(VmEvent::Thawed);
            }
            Err(why) => self.not_thawed(&why),
        }
    }
}
