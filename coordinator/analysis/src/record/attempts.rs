//! Attempts at tasks of a bag and at parallel jobs in a record, and the reasons of their failed checkpoints.

use std::sync::Arc;
use std::time::Duration;

use dormouse_model::{Decision, Effect, Notice, Report, StartReason, Step, TenantWork, VmEnd};
use dormouse_units::{Attempt, Mode, Ppm, Span, TaskId, Time, VmId};
use thin_vec::{ThinVec, thin_vec};

use super::{
    AttemptEnd, AttemptHistory, CheckpointMark, RecordChange, RestoreFallback, RunRecord,
    TaskHistory,
};
use crate::outcome::ProgramFailure;

impl RunRecord {
    fn task_mut(&mut self, id: TaskId) -> Option<&mut TaskHistory> {
        match self.tasks.get_mut(id.get() as usize) {
            Some(task) => Some(task),
            None => self.jobs.get_mut(id).map(|job| &mut job.task),
        }
    }

    /// Whether the id is that of a task of the bag, not of a parallel job.
    fn is_of_bag(&self, id: TaskId) -> bool {
        (id.get() as usize) < self.tasks.len()
    }

    /// For each stop that a step carries out, whether it stops an attempt from before the step; the
    /// others stop attempts that start in the same step.
    pub(super) fn stops_of_before(&self, done: &[&Decision]) -> Vec<bool> {
        let is_stop = |decision: &&&Decision| matches!(decision, Decision::Stop { .. });
        let stops = done.iter().filter(is_stop);
        stops.map(|stop| self.stopped_attempt(stop).is_some()).collect()
    }

    /// The attempt that a decision stops; `None` if the decision stops no attempt.
    fn stopped_attempt(&self, decision: &Decision) -> Option<&AttemptHistory> {
        let Decision::Stop { task, vm, .. } = *decision else { return None };
        self.task(task)?.last().filter(|a| a.ended.is_none() && a.vm == vm)
    }

    /// Ends the attempts that this step's stop decisions end at once: attempts from before the step
    /// if `are_of_before`, else attempts that start in this step. An attempt stopped with a
    /// checkpoint ends when the checkpoint is reported, unless the scheduler learns of the stop at
    /// once because the VM was frozen.
    pub(super) fn stop(
        &mut self,
        step: &Step,
        done: &[&Decision],
        of_before: &[bool],
        are_of_before: bool,
    ) {
        let is_heard = |task: TaskId, vm: VmId| {
            let is_it = |it: &Notice| matches!(it, Notice::TaskStopped { task: t, vm: v, .. } if (*t, *v) == (task, vm));
            step.notices.iter().any(is_it)
        };
        let stops = done.iter().filter(|decision| matches!(decision, Decision::Stop { .. }));
        for (stop, is_of_before) in stops.zip(of_before) {
            if *is_of_before == are_of_before
                && let Decision::Stop { task, vm, keep } = **stop
                && (!keep || is_heard(task, vm))
                && self.stopped_attempt(stop).is_some()
            {
                self.end_attempt(step.at, task, AttemptEnd::Dropped);
            }
        }
    }

    pub(super) fn has_mode(&mut self, now: Time, task: TaskId, mode: Mode) {
        if let Some(attempt) = self.task_mut(task).and_then(TaskHistory::open) {
            attempt.modes.push((now, mode));
        }
    }

    pub(super) fn end_attempt(&mut self, now: Time, task: TaskId, end: AttemptEnd) {
        let Some(attempt) = self.task_mut(task).and_then(TaskHistory::open) else { return };
        attempt.ended = Some((now, end));
        let (vm, number) = (attempt.vm, attempt.attempt);
        self.changes.push(RecordChange::Left(task, number, vm));
        self.on_vm(vm, |vm| vm.lanes.leave(task));
    }

    /// Notes that a VM got notice of its end, for its programs that save their work at a notice:
    /// what these compute afterwards is not saved.
    pub(super) fn notice_on(&mut self, now: Time, vm: VmId) {
        let Self { tasks, savers, .. } = self;
        for task in savers.iter() {
            let Some(task) = tasks.get_mut(task.get() as usize) else { continue };
            if let Some(attempt) = task.open().filter(|it| it.vm == vm && it.started.is_some()) {
                attempt.noticed = Some(now);
            }
        }
    }

    /// Ends the attempts of parallel jobs on a machine that is gone.
    pub(super) fn end_jobs_on(&mut self, now: Time, vm: VmId, why: VmEnd) {
        if !self.tenants.owns_vm(TenantWork::Jobs, vm) {
            return;
        }
        let there =
            |task: &TaskHistory| task.last().is_some_and(|a| a.ended.is_none() && a.vm == vm);
        let on_it = self.jobs.iter().filter(|(_, job)| there(&job.task));
        let on_it: Vec<_> = on_it.map(|(id, _)| id).collect();
        for id in on_it {
            self.end_attempt(now, id, AttemptEnd::VmGone(why));
        }
    }

    /// Adds an effect on an attempt, in a step that carried out the decisions `done`.
    pub(super) fn attempt_effect(&mut self, now: Time, effect: &Effect, done: &[&Decision]) {
        match effect {
            Effect::TaskSent { task, attempt, vm, reason, from, vcpu } => {
                let mode = done.iter().rev().find_map(|decision| match decision {
                    Decision::Start { task: of, mode, .. } if of == task => Some(*mode),
                    _ => None,
                });
                let mode = mode.unwrap_or_default();
                // A parallel job that is killed starts again at once.
                if !self.is_of_bag(*task) {
                    self.end_attempt(now, *task, AttemptEnd::Dropped);
                }
                let lane = match self.is_of_bag(*task) {
                    true => self.vms.get_mut(vm).map_or(0, |vm| vm.lanes.take(*task, *vcpu)),
                    false => 0,
                };
                let history = AttemptHistory {
                    attempt: *attempt,
                    vm: *vm,
                    lane,
                    reason: *reason,
                    sent_with: *from,
                    from: *from,
                    said_to_have: None,
                    fell_back: ThinVec::new(),
                    sent: now,
                    started: None,
                    modes: thin_vec![(now, mode)],
                    asked: ThinVec::new(),
                    checkpoints: ThinVec::new(),
                    checkpoint_reports: 0,
                    unsaved: None,
                    ended: None,
                    real_cpu_us: 0,
                    real_start_us: 0,
                    real_inputs_us: 0,
                    ledger: None,
                    noticed: None,
                    own: None,
                    idle: None,
                    changed: None,
                };
                if let Some(of) = self.task_mut(*task) {
                    of.attempts.push(history);
                    self.changes.push(RecordChange::Sent(*task, *attempt, *vm));
                    self.counts_start(*task, *reason, *vm, mode);
                }
            }
            &Effect::CheckpointAsked { task, .. } => {
                let is_it =
                    |d: &&Decision| matches!(d, Decision::Checkpoint { task: t, .. } if *t == task);
                let decided = done.iter().any(is_it);
                if let Some(attempt) = self.task_mut(task).and_then(TaskHistory::open) {
                    attempt.asked.push((now, decided));
                }
            }
            &Effect::RestoreFellBack { task, from, to, not_on, given_up, .. } => {
                if let Some(attempt) = self.task_mut(task).and_then(|t| t.attempts.last_mut()) {
                    attempt.fell_back.push(RestoreFallback { at: now, from, to, not_on, given_up });
                }
            }
            _ => {}
        }
    }

    fn counts_start(&mut self, id: TaskId, reason: StartReason, vm: VmId, mode: Mode) {
        self.counts.steals += u32::from(reason == StartReason::Stolen);
        let task = self.tasks.get(id.get() as usize);
        let migrates = task.is_some_and(|task| {
            let last = task.attempts.len().saturating_sub(1);
            task.migrated_from(last).is_some()
        });
        if migrates {
            self.counts.migrations += 1;
            let kind = self.vms.get(&vm).map(|vm| &vm.kind);
            let is_burstable = kind.is_some_and(|kind| self.burstable.contains(kind));
            self.counts.burst_starts += u32::from(mode == Mode::Burst && is_burstable);
        }
    }

    /// Adds a machine's report, in a step with these effects.
    pub(super) fn machine_reports(&mut self, now: Time, report: &Report, effects: &[Effect]) {
        match *report {
            Report::Ledger { task, attempt, ref ledger, ref own, .. } => {
                return self.on_attempt(task, attempt, |attempt| {
                    attempt.ledger = Some(**ledger);
                    attempt.own.clone_from(own);
                });
            }
            Report::Share { vm, real_promised_us, real_received_us } => {
                let share = Some((real_promised_us, real_received_us));
                return self.on_vm(vm, |vm| vm.share = share);
            }
            // An attempt begins with another checkpoint than it was sent with, if the effects tell
            // so.
            Report::TaskStarted { task: id, .. } => {
                for effect in effects {
                    if let Effect::RestoreFellBack { task, to, .. } = *effect
                        && task == id
                        && let Some(attempt) = self.task_mut(task).and_then(TaskHistory::open)
                    {
                        attempt.from = to;
                    }
                }
            }
            // A checkpoint of an ended attempt counts as well.
            Report::CheckpointTaken { task, attempt, .. } => {
                self.on_attempt(task, attempt, |attempt| attempt.checkpoint_reports += 1);
            }
            Report::CheckpointFailed { task, attempt, ref why, .. } => {
                self.on_attempt(task, attempt, |attempt| {
                    attempt.checkpoint_reports += 1;
                    if matches!(attempt.ended, Some((_, AttemptEnd::VmGone(_)))) {
                        attempt.unsaved.get_or_insert_with(|| why.clone());
                    }
                });
            }
            // CPU time of an ended attempt was used all the same.
            Report::TaskFinished { task, attempt, real_cpu_us, .. }
            | Report::TaskFailed { task, attempt, real_cpu_us, .. }
            | Report::TaskStopped { task, attempt, real_cpu_us, .. } => {
                self.on_attempt(task, attempt, |attempt| attempt.real_cpu_us = real_cpu_us);
            }
            _ => {}
        }
        if effects.contains(&Effect::Stale) {
            self.stale += 1;
        } else {
            self.present_report(now, report);
        }
    }

    fn on_attempt(
        &mut self,
        task: TaskId,
        attempt: Attempt,
        change: impl FnOnce(&mut AttemptHistory),
    ) {
        if let Some(attempt) = self.task_mut(task).and_then(|task| task.current(attempt)) {
            change(attempt);
        }
    }

    /// Adds a report of an attempt that is still under way.
    fn present_report(&mut self, now: Time, report: &Report) {
        match report {
            Report::Credits { vm, balance, .. } => {
                let forgets = self.forgets;
                if let Some(vm) = self.vms.get_mut(vm) {
                    if forgets {
                        vm.credits.clear();
                    }
                    let burstable = self.unlimited.get(&vm.kind);
                    let balance = burstable.map_or(*balance, |of| of.of_vm(*balance));
                    vm.credits.push((now, balance));
                }
            }
            Report::TaskStarted { task, attempt, done, real_took_us, real_inputs_us, .. } => {
                self.begin_attempt((now, *task, *attempt), *done, (*real_took_us, *real_inputs_us));
            }
            Report::TaskFinished { task, verified: true, reported, .. } => {
                self.end_attempt(now, *task, AttemptEnd::Finished);
                self.finish_task(now, *task, |task| task.reported = *reported);
            }
            Report::TaskFinished { task, program_failed: true, .. } => {
                self.counts.attempts_failed += 1;
                let own = self.task_mut(*task).and_then(|it| it.open()?.own.clone());
                let how = ProgramFailure::from_end(own.as_deref());
                self.end_attempt(now, *task, AttemptEnd::Failed(format!("its program {how}")));
                self.finish_task(now, *task, |task| task.program_failed = true);
            }
            Report::TaskFinished { task, verified: false, .. } => {
                self.counts.attempts_failed += 1;
                self.end_attempt(now, *task, AttemptEnd::Failed("its answer is wrong".into()));
            }
            Report::TaskFailed { task, why, .. } => {
                self.counts.attempts_failed += 1;
                self.end_attempt(now, *task, AttemptEnd::Failed(why.clone()));
            }
            Report::TaskStopped { task, kept, .. } => {
                let end = kept.map_or(AttemptEnd::Dropped, |(_, done)| AttemptEnd::Stopped(done));
                self.end_attempt(now, *task, end);
            }
            Report::CheckpointTaken {
                task,
                attempt,
                checkpoint,
                done,
                bytes,
                real_held_us,
                real_owed_us,
                ..
            } => {
                self.counts.checkpoints += 1;
                let mark = CheckpointMark {
                    at: now,
                    seq: *checkpoint,
                    done: *done,
                    bytes: *bytes,
                    real_held_us: *real_held_us,
                    real_owed_us: *real_owed_us,
                };
                self.on_attempt(*task, *attempt, |attempt| attempt.checkpoints.push(mark));
            }
            &Report::TaskIdle { task, attempt, real_for_us, .. } => {
                self.on_attempt(task, attempt, |attempt| attempt.idle = Some((now, real_for_us)));
            }
            Report::TaskCompared { task, attempt, changes, .. } => {
                let changed = Some((now, Arc::clone(changes))).filter(|_| !changes.is_empty());
                self.on_attempt(*task, *attempt, |attempt| attempt.changed = changed);
            }
            Report::CheckpointFailed { why, .. } => {
                self.counts.checkpoints_failed += 1;
                *self.checkpoint_failures.entry(reason(why)).or_default() += 1;
            }
            _ => {}
        }
    }

    fn begin_attempt(
        &mut self,
        (now, id, number): (Time, TaskId, Attempt),
        done: Ppm,
        (real_took_us, real_inputs_us): (u64, u64),
    ) {
        let is_of_bag = self.is_of_bag(id);
        let vm = self.task(id).and_then(|task| task.attempt(number)).map(|attempt| attempt.vm);
        let Some(vm) = vm else { return };
        // An attempt that was sent to a VM which froze meanwhile began with its resume.
        let resumes = self.vms.get(&vm).into_iter().flat_map(|vm| &vm.hibernations);
        let resumed = resumes.filter_map(|h| h.resumed.map(|(_, at)| at)).max();
        let inputs = Duration::from_micros(real_inputs_us);
        let waited = self.speedup.map_or(Span::ZERO, |speedup| speedup.to_emulated(inputs));
        let (mut is_first, mut is_restored) = (false, false);
        self.on_attempt(id, number, |attempt| {
            (is_first, is_restored) = (attempt.started.is_none(), attempt.from.is_some());
            let from = resumed.map_or(attempt.sent, |at| at.max(attempt.sent));
            // No later than its report, whatever its worker says.
            let from = from.max((from + waited).min(now));
            attempt.started.get_or_insert(from);
            attempt.said_to_have = Some(done);
            (attempt.real_start_us, attempt.real_inputs_us) = (real_took_us, real_inputs_us);
        });
        if is_first {
            self.counts.restores += u32::from(is_restored && is_of_bag);
            self.changes.push(RecordChange::Began(id, number));
        }
    }

    /// Marks a task as finished, well or not.
    fn finish_task(&mut self, now: Time, id: TaskId, how: impl FnOnce(&mut TaskHistory)) {
        let is_of_bag = self.is_of_bag(id);
        let Some(task) = self.task_mut(id) else { return };
        how(task);
        let is_first = task.finished.replace(now).is_none();
        self.finished += usize::from(is_first && is_of_bag);
    }
}

/// The reason for a failed checkpoint, without the details that differ between failures: the task,
/// its process and the path of its log.
pub(super) fn reason(why: &str) -> String {
    let first = why.lines().next().unwrap_or_default();
    let said = first.split_once("; its log ").map_or(first, |(said, _)| said);
    // "the checkpoint of run/7 failed in criu: …"
    let said =
        match said.strip_prefix("the checkpoint of ").and_then(|of| of.split_once(" failed in ")) {
            Some((_, rest)) => rest.split_once(": ").map_or(rest, |(_, rest)| rest),
            None => said,
        };
    let words: Vec<_> = said.split(' ').map(without_number).collect();
    words.join(" ").trim().to_owned()
}

/// The word itself, or "…" for a number (of a process, or a duration).
fn without_number(word: &str) -> &str {
    let bare = word.trim_end_matches([',', ':', ';', '.']);
    let is_number = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
    if is_number { "…" } else { word }
}

/// Fraction of the time that a task should be stopped for a checkpoint by which the stop may always be too short.
const TOLERANCE: f64 = 0.25;
/// Real microseconds by which the stop of a task for a checkpoint may always be too short.
const SLACK_US: u64 = 20_000;

/// The end of a sentence on a checkpoint for which a task was stopped too briefly; `None` if
/// `held_us` is long enough. Times are real microseconds.
#[must_use]
pub fn cut_short(held_us: u64, owed_us: u64) -> Option<String> {
    let missing = owed_us.saturating_sub(held_us);
    let short = missing as f64 > owed_us as f64 * TOLERANCE && missing > SLACK_US;
    let (held, owed) = (held_us / 1000, owed_us / 1000);
    short.then(|| format!("was stopped for {held} ms instead of {owed} ms for a checkpoint"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_task_to_task_is_left_out() {
        let dump = |task: u32, pid: u32| {
            format!(
                "the checkpoint of j60-18eb/{task} failed in criu: criu dump failed: Error \
                 (compel/src/infect.c:417): Unable to detach from {pid}: No such process; its log \
                 /run/dormouse/{task}/dump.log ends\n  (00.1{task}) Error (criu/x.c:1): no"
            )
        };
        assert_eq!(reason(&dump(7, 60)), reason(&dump(41, 1234)));
        let expected = "criu dump failed: Error (compel/src/infect.c:417): Unable to detach from … No \
                        such process";
        assert_eq!(reason(&dump(7, 60)), expected);
        let late = "criu dump did not finish within 30000 ms and was killed";
        assert_eq!(reason(late), "criu dump did not finish within … ms and was killed");
        assert_eq!(reason("this worker has no working CRIU"), "this worker has no working CRIU");
        assert_eq!(reason(""), "");
    }
}
