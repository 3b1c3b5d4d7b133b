//! Saves that aren't complete when their VM is gone, and how far they got.

use std::sync::atomic::Ordering;

use dormouse_proto::v1::{CheckpointFailed, report};
use dormouse_vm::life::AttemptPhase;

use super::VmOwner;
use crate::agent::{
    report::{make_report, task_ref},
    vm::attempt::VmAttempt,
};

impl VmOwner {
    /// Reports how far each checkpoint under way has come that won't be completed, as the VM is about to end.
    pub(super) fn say_unsaved(&self) {
        for attempt in &self.attempts {
            let Some(far) = self.how_far(attempt) else { continue };
            let why = format!("its VM was gone before its work was kept: {far}");
            let failed = CheckpointFailed { task: task_ref(self.id, attempt.key), why };
            self.context.send_report(make_report(report::Report::CheckpointFailed(failed)));
        }
    }

    /// Describes the progress of an attempt's checkpoint, worded to follow a colon; `None` if no checkpoint is under way, or the
    /// coordinator has it.
    fn how_far(&self, attempt: &VmAttempt) -> Option<String> {
        if attempt.last_save.as_ref().is_some_and(|save| save.put_off_until().is_some()) {
            return Some("its program was still saving it by itself".to_owned());
        }
        if let Some(pending) = &attempt.pending {
            let (sent, all) = (pending.sent.load(Ordering::Relaxed), pending.bytes);
            return pending.stored.is_err().then(|| {
                let (sent, all) = (to_mib(sent.min(all)), to_mib(all));
                format!(
                    "{sent} of the {all} MiB of its checkpoint had been sent to the coordinator"
                )
            });
        }
        if attempt.snapshot.is_some() {
            return Some("its checkpoint was complete here, and nothing of it sent".to_owned());
        }
        if !self.lives.is_being_checkpointed(attempt.key) {
            return None;
        }
        if self.lives.attempt_phase(attempt.key) != Some(AttemptPhase::Dumping) {
            return Some("its turn at CRIU had not come".to_owned());
        }
        let written = to_mib(self.context.machine.unfinished_bytes(&attempt.name));
        let memory = attempt.process.as_ref().and_then(|process| process.resident_bytes());
        Some(match memory {
            Some(memory) => {
                let memory = to_mib(memory);
                format!(
                    "its checkpoint was being taken, {written} MiB written of {memory} MiB of memory and its files"
                )
            }
            None => format!("its checkpoint was being taken, {written} MiB written"),
        })
    }
}

fn to_mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}
