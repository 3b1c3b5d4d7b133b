//! CPU time that attempts and the VM were promised and received, in the wire format.

use std::time::Duration;

use dormouse_proto::v1::{Ledger, VmShare, report};

use tokio::time::Instant;

use crate::agent::{
    report::{make_report, whole_micros},
    verdict::CpuTime,
    vm::{account::CpuAccount, attempt::VmAttempt, owner::VmOwner, task::TaskPromise},
};

impl VmOwner {
    /// Returns the CPU time charged to an attempt's slot since its start, in nanoseconds.
    pub(crate) fn charged_ns(&self, attempt: &VmAttempt, promise: &TaskPromise) -> u64 {
        if attempt.process.is_none() {
            return 0;
        }
        if let Some(charged) = attempt.own.as_ref().and_then(|own| own.charged) {
            return charged;
        }
        match self.machine.slot_cpu_ns(attempt.first_cpu(), promise.slot) {
            Ok(ns) => ns.saturating_sub(promise.charges.base),
            Err(error) => {
                tracing::warn!(%error, "the CPU time of {} can't be read", attempt.name);
                0
            }
        }
    }

    /// Returns the CPU time that a task of one process was charged, and that its work takes; `None`: the kernel doesn't report it.
    pub(crate) fn work_of(&self, attempt: &VmAttempt) -> Option<CpuTime> {
        let promise = attempt.task_promise().filter(|_| attempt.process.is_some())?;
        let charged = self.machine.slot_cpu_ns(attempt.first_cpu(), promise.slot).ok()?;
        let charged = charged.saturating_sub(promise.charges.base);
        // What a checkpoint held is no work of this attempt's.
        Some(CpuTime {
            charged,
            due: promise.ledger.whole_work().saturating_sub(promise.came_with),
        })
    }

    /// Returns the most CPU time that the kernel hands out at a time under an attempt's quota.
    fn slice_of(&self, attempt: &VmAttempt) -> Duration {
        self.machine.quota(self.quota_of(attempt)).period_slice().max(self.context.tick)
    }

    /// Returns the ledger (promised and received time) of an attempt that ends now. The model's time must have been advanced to
    /// now.
    pub(crate) fn ledger_of(
        &self,
        attempt: &VmAttempt,
        of: &TaskPromise,
        finished: bool,
    ) -> Ledger {
        let now = Instant::now();
        let frozen = attempt.frozen + self.frozen_for(now);
        let took = now.saturating_duration_since(attempt.asked).saturating_sub(frozen);
        let took = took.saturating_sub(attempt.waited_for_inputs);
        // What it left is kept after its end, which is none of its time.
        let took = attempt.own.as_ref().and_then(|own| own.took).unwrap_or(took);
        let stood = attempt.standing.map_or_else(Default::default, |at| now - at.min(now));
        let own = |ns: u64| ns.saturating_sub(of.came_with) / 1000;
        let is_all = finished && attempt.own.is_none();
        let worked = if is_all { of.ledger.whole_work() } else { of.worked_time(attempt) };
        Ledger {
            real_promised_us: whole_micros(of.promised.filter(|_| finished).unwrap_or(took)),
            real_took_us: whole_micros(took),
            real_promised_work_us: own(self.promised_time(attempt.key, of)),
            real_worked_us: own(worked),
            real_charged_us: self.charged_ns(attempt, of) / 1000,
            real_birth_us: of.charges.birth / 1000,
            real_criu_us: of.charges.criu / 1000,
            real_ahead_us: of.ledger.most_ahead() / 1000,
            real_behind_us: of.ledger.most_behind() / 1000,
            real_stood_us: whole_micros(attempt.stood + stood),
            // One that is still on its way comes too late as well, however short a time ago it was wanted: nothing is
            // said of it after the end, and when it was due only the coordinator's clock says.
            missed_checkpoints: attempt.missed_checkpoints
                + u32::from(
                    finished && attempt.pending.as_ref().is_some_and(|it| it.stored.is_err()),
                ),
            real_whole_work_us: of.ledger.whole_work() / 1000,
            real_slice_us: whole_micros(self.slice_of(attempt)),
        }
    }

    /// Returns the CPU time that a task of one process was promised and received so far, without starts and CRIU.
    pub(crate) fn share_of(&self, attempt: &VmAttempt) -> CpuAccount {
        let Some(promise) = attempt.task_promise().filter(|_| attempt.process.is_some()) else {
            return CpuAccount::default();
        };
        let apart = promise.charges.birth + promise.charges.criu;
        CpuAccount {
            promised: self.promised_time(attempt.key, promise).saturating_sub(promise.came_with),
            received: self.charged_ns(attempt, promise).saturating_sub(apart),
        }
    }

    /// Reports the CPU time that the VM was promised and received since it was created, without jobs, which have their
    /// own accounts.
    pub(crate) fn report_share(&mut self) {
        if self.report_cell_share() || self.core_ppm.is_some() {
            return;
        }
        self.pass_time();
        let mut sum = self.share;
        for attempt in &self.attempts {
            let CpuAccount { promised, received } = self.share_of(attempt);
            sum.promised += promised;
            sum.received += received;
        }
        self.context.send_report(make_report(report::Report::VmShare(VmShare {
            vm: self.id,
            real_promised_us: sum.promised / 1000,
            real_received_us: sum.received / 1000,
        })));
    }
}
