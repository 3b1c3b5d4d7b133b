//! Workers' reports about their VMs and tasks, and how they change the run.

use std::collections::VecDeque;

use dormouse_cloud::{ProviderVm, ProviderVmState};
use dormouse_model::{Command, Effect, Notice, Report, VmEnd};
use dormouse_policies::Moment;
use dormouse_units::{Attempt, HostId, TaskId, Time, VmId};

use super::Run;
use crate::images::FellBack;
use crate::tasks::TaskState;
use crate::timers::RunTimer;
use crate::vm_record::VmUse;

impl Run {
    pub(super) fn apply_report(
        &mut self,
        now: Time,
        host: HostId,
        report: &Report,
        notices: &mut VecDeque<Notice>,
    ) {
        let vm = report.vm();
        // For whoever reads the log.
        if let Report::Ledger { .. } | Report::JobAccount { .. } = report {
            return;
        }
        if let Report::Share { real_promised_us, real_received_us, .. } = *report {
            // Kept for VMs that have ended, too: their last word is often this.
            if let Some(record) = self.vms.get_mut(vm) {
                record.record_usage(VmUse { real_promised_us, real_received_us });
            }
            return;
        }
        if self.host_of(vm) != Some(host) {
            self.effects.push(Effect::Stale);
            return;
        }
        match *report {
            Report::VmCreated { .. } => {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.mark_made();
                }
                self.ready_if_booted(now, vm, notices);
            }
            Report::VmFrozen { .. } => {
                if self.provider.vm_hibernated(now, vm) {
                    self.counts.hibernations += 1;
                    // It has left its processors.
                    self.there_is_room();
                    if self.provider.find_vm(vm).is_some_and(ProviderVm::is_displaced) {
                        let resumes = now + self.setup.catalogue.hibernation;
                        self.timers.set_timer(resumes, RunTimer::Resume(vm));
                    }
                    self.supplies.processors_left(vm);
                    self.charge_surplus(now, vm);
                    self.place_came_free(vm);
                    let asked = self.asked_at(vm);
                    self.effects.push(Effect::VmHibernated { vm, asked });
                    notices.push_back(Notice::VmHibernated { vm });
                }
            }
            Report::VmThawed { .. } => {
                if self.provider.vm_resumed(now, vm) {
                    self.counts.resumes += 1;
                    let asked = self.asked_at(vm);
                    self.effects.push(Effect::VmResumed { vm, asked });
                    let record = self.vms.get_mut(vm);
                    let starts = record.map(|record| record.take_held());
                    for mut start in starts.into_iter().flatten() {
                        if let Some(task) = self.tasks.get_mut(start.task) {
                            task.sent = now;
                        }
                        start.checkpoints = self.checkpoints_of_attempt(now, start.task, vm);
                        self.commands.push(Command::StartTask(start));
                    }
                    self.take_what_is_due_on(vm);
                    notices.push_back(Notice::VmResumed { vm });
                    // What can be had may have fallen while it was about to run.
                    let kind = self.provider.find_vm(vm).map(|vm| vm.kind.clone());
                    let excess = kind.map(|kind| self.provider.reclaim_vms(&kind));
                    self.vms_reclaimed(now, excess.unwrap_or_default(), notices);
                }
            }
            Report::VmFailed { .. } => {
                self.end_vm(now, vm, VmEnd::Failed);
                self.commands.push(Command::DestroyVm { host, vm });
                notices.push_back(Notice::VmLost { vm });
            }
            Report::Credits { balance, .. } => {
                let balance = self.surpluses.record_balance(now, vm, balance);
                notices.push_back(Notice::Credits { vm, balance });
            }
            Report::VmDestroyed { .. }
            | Report::Share { .. }
            | Report::Ledger { .. }
            | Report::JobAccount { .. } => {}
            _ => {
                self.task_report(now, vm, report, notices);
                self.freeze_once_kept(vm);
            }
        }
    }

    fn asked_at(&self, vm: VmId) -> Time {
        self.vms.get(vm).map_or(Time::ZERO, |record| record.asked_at())
    }

    /// Returns whether this is the task's current attempt, on this VM.
    fn is_current(&self, vm: VmId, task: TaskId, attempt: Attempt) -> bool {
        self.tasks.get(task).is_some_and(|t| t.attempt == attempt && t.vm() == Some(vm))
    }

    fn task_report(
        &mut self,
        now: Time,
        vm: VmId,
        report: &Report,
        notices: &mut VecDeque<Notice>,
    ) {
        let (task, attempt, cpu) = match *report {
            Report::TaskFinished { task, attempt, real_cpu_us, .. }
            | Report::TaskFailed { task, attempt, real_cpu_us, .. }
            | Report::TaskStopped { task, attempt, real_cpu_us, .. } => {
                (task, attempt, real_cpu_us)
            }
            Report::TaskStarted { task, attempt, .. }
            | Report::TaskPromoted { task, attempt, .. }
            | Report::TaskMoved { task, attempt, .. }
            | Report::CheckpointTaken { task, attempt, .. }
            | Report::CheckpointFailed { task, attempt, .. }
            | Report::TaskIdle { task, attempt, .. }
            | Report::TaskCompared { task, attempt, .. } => (task, attempt, 0),
            _ => return,
        };
        if let Some(record) = self.task_mut(task) {
            // CPU time of a former life was spent all the same.
            record.real_cpu_us = record.real_cpu_us.saturating_add(cpu);
        }
        if !self.is_current(vm, task, attempt) {
            self.effects.push(Effect::Stale);
            return;
        }
        match report {
            Report::TaskStarted { done, .. } => {
                let Some(record) = self.tasks.get_mut(task) else { return };
                let (state, since) = (record.state, record.sent);
                record.ran_on = Some(vm);
                if !matches!(state, TaskState::Running(_)) {
                    // It goes on from what was kept when it was sent: nothing has been since.
                    let older = record.images.note_begun(*done);
                    self.counts.restores += u32::from(record.images.newest_image().is_some());
                    self.fell_back(task, older, "its worker could not have a newer one");
                }
                if matches!(state, TaskState::Sent(_)) {
                    self.set_state(task, TaskState::Running(vm));
                    self.take_if_due(task);
                }
                notices.push_back(Notice::TaskStarted { task, vm, done: *done, since });
            }
            Report::TaskFinished { verified: true, .. }
            | Report::TaskFinished { program_failed: true, .. } => {
                self.set_state(task, TaskState::Finished);
                if let Some(record) = self.task_mut(task) {
                    record.finished = Some(now);
                }
                self.note_finish(now, task);
                self.tasks.forget_ended();
                self.followers_are_due(now, task, notices);
                notices.push_back(Notice::TaskFinished { task, vm });
            }
            Report::TaskFinished { verified: false, .. } => {
                // What its checkpoints hold may be what made it wrong.
                if let Some(record) = self.task_mut(task) {
                    record.images.clear();
                }
                self.task_failed(task, vm, "its answer is wrong", notices);
            }
            Report::TaskFailed { why, could_not_restore, .. } => {
                if *could_not_restore
                    && let Some(host) = self.host_of(vm)
                    && let Some(record) = self.task_mut(task)
                    && matches!(record.state, TaskState::Sent(_))
                    && record.images.newest_image().is_some_and(|image| image.by != attempt)
                {
                    let fell_back = record.images.refuse_newest(host);
                    self.fell_back(task, fell_back, why);
                }
                self.task_failed(task, vm, why, notices);
            }
            Report::TaskStopped { kept, .. } => {
                let is_asked =
                    self.tasks.get(task).is_some_and(|t| t.state == TaskState::Stopping(vm));
                self.set_state(task, TaskState::Waiting);
                let mut done = dormouse_units::Ppm::ZERO;
                if let Some(record) = self.task_mut(task) {
                    if let Some((seq, done)) = *kept {
                        record.keep_checkpoint(seq, done);
                    }
                    done = record.kept_checkpoint().map(|(_, done)| done).unwrap_or_default();
                }
                if is_asked {
                    notices.push_back(Notice::TaskStopped { task, vm, done });
                } else {
                    // A scheduler that never stops a task would wait for it for ever.
                    self.task_failed(
                        task,
                        vm,
                        "it was stopped, and nobody had asked for that",
                        notices,
                    );
                }
            }
            Report::CheckpointTaken { checkpoint, done, .. } => {
                self.counts.checkpoints += 1;
                if let Some(record) = self.task_mut(task) {
                    record.keep_checkpoint(*checkpoint, *done);
                }
                self.after_checkpoint(now, task, vm, Moment::Kept);
                notices.push_back(Notice::Checkpointed { task, vm, done: *done });
            }
            Report::CheckpointFailed { .. } => {
                self.counts.checkpoints_failed += 1;
                self.after_checkpoint(now, task, vm, Moment::Failed);
            }
            _ => {}
        }
    }

    /// Records the checkpoint with which a task begins after it couldn't begin with its newest one.
    pub(super) fn fell_back(&mut self, task: TaskId, how: Option<FellBack>, why: &str) {
        if let Some(FellBack { from, to, not_on }) = how {
            self.effects.push(Effect::RestoreFellBack {
                task,
                from,
                to,
                not_on,
                why: why.to_owned(),
                given_up: false,
            });
        }
    }

    fn task_failed(&mut self, task: TaskId, vm: VmId, why: &str, notices: &mut VecDeque<Notice>) {
        self.counts.attempts_failed += 1;
        self.set_state(task, TaskState::Waiting);
        let alive = self
            .provider
            .find_vm(vm)
            .is_some_and(|v| !matches!(v.state, ProviderVmState::Terminated { .. }));
        if alive {
            notices.push_back(Notice::TaskFailed { task, vm, why: why.to_owned() });
        }
    }
}
