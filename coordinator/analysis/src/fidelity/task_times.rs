//! Times that tasks took, compared with the times that their VMs promised.

use std::time::Duration;

use dormouse_model::{AttemptLedger, MAX_REPORT_DELAY, Setup};
use dormouse_policies::{Begun, CheckpointPlanning};
use dormouse_units::{Attempt, Ppm, Span, Speedup, TaskId, VmId};
use serde::{Deserialize, Serialize};

use super::figures::{note_first, percent, ratio, seconds, total_us};
use super::{AllowedErrors, background};
use crate::{AttemptEnd, AttemptHistory, RunRecord, VmHistory, cut_short};

/// Fraction by which a worker's promised time of an attempt may differ from the experiment's, and its measured time from the log's.
const PROMISE_TOLERANCE: f64 = 0.01;
/// Additional real time by which the promised and the actual time of an attempt may differ: the time between two readings of a
/// clock.
const PROMISE_SLACK: Duration = Duration::from_millis(20);

/// Number of slices of its quota by which a task may also be ahead of its promise, or behind if it is interrupted:
/// workers keep a task two slices ahead.
const SLICES: f64 = 4.0;

/// Greatest number of tasks that a note names.
const NAMED: usize = 5;

/// Promised and actual time of a finished attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskTime {
    /// Task that was attempted.
    pub task: TaskId,
    /// Number of the attempt that finished.
    pub attempt: Attempt,
    /// Emulated time that the attempt's VM promised.
    pub promised: Span,
    /// Emulated time that the attempt took by its worker's clock, without hibernations.
    pub took: Span,
    /// Emulated time that the attempt took by the run's log, which the scheduler and the bill use.
    pub logged: Span,
}

impl TaskTime {
    /// Fraction of the promised time by which the attempt took longer; negative if it took less.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.took.as_secs_f64() / self.promised.as_secs_f64().max(1e-6) - 1.0
    }

    /// The error beyond a tolerance: the time by which the attempt took longer than promised plus
    /// `slack`, or less than promised minus `slack`, as a part of the promised time.
    fn error_beyond(&self, slack: Span) -> f64 {
        let (promised, took) = (self.promised, self.took);
        let nearest = took.max(promised.saturating_sub(slack)).min(promised + slack);
        let beyond = took.as_secs_f64() - nearest.as_secs_f64();
        beyond / promised.as_secs_f64().max(1e-6)
    }
}

/// Errors of a run's tasks against the promises of their VMs. An error of a time is a part of the
/// promised time; an error of work is a part of the task's work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskTimes {
    /// Number of attempts that finished.
    pub tasks_finished: usize,
    /// Number of finished attempts with an account of their CPU time; only their times are judged.
    pub tasks_judged: usize,
    /// Number of attempts that did not finish, whose work until their end is judged.
    pub attempts_unfinished: usize,
    /// The error of a finished attempt that is furthest from zero: its extra time as a fraction of its promised time.
    pub worst_task_error: f64,
    /// Mean error (the bias) of the finished attempts; an error is an attempt's extra time as a fraction of its promised time.
    pub mean_task_error: f64,
    /// The 5 %, 50 % and 95 % quantiles of the tasks' errors, which are fractions of the promised times.
    pub task_error_quantiles: [f64; 3],
    /// The error of the work of an unfinished attempt that is furthest from zero, as a part of the whole work of its
    /// task.
    pub worst_unfinished_error: f64,
    /// Greatest lead of an attempt's CPU time over its promised CPU time at any moment, as a fraction of the attempt's whole work.
    pub worst_ahead: f64,
    /// Greatest observed lag of an attempt's CPU time behind its promised CPU time, as a fraction of the attempt's whole work.
    pub worst_behind: f64,
    /// CPU time of the tasks' own work, in real seconds.
    pub worked_s: f64,
    /// CPU time that starting the tasks' processes took, in real seconds.
    pub births_s: f64,
    /// CPU time of CRIU in and around the tasks, in real seconds.
    pub criu_s: f64,
    /// The rest of the CPU time that was charged for the tasks, in real seconds.
    pub rest_s: f64,
    /// Number of checkpoints for which tasks were stopped, but which were complete only after the end of the task.
    pub checkpoints_missed: u32,
}

/// Time from a task's start to its end, hibernations included; `None` unless the task had exactly
/// one attempt and finished. In a live run this is the worker's measurement, since the log has the
/// time at which the end was due.
#[must_use]
pub fn span_of(record: &RunRecord, task: TaskId) -> Option<Span> {
    let history = record.tasks.get(task.get() as usize)?;
    let [only] = history.attempts.as_slice() else { return None };
    let span = history.finished?.since(only.started?);
    let time = time_of(record, task, only, record.vms.get(&only.vm)?);
    let time = time.filter(|_| record.speedup.is_some());
    Some(time.map_or(span, |t| (span + t.took).saturating_sub(t.logged)))
}

/// Promised and actual times of all finished attempts.
#[must_use]
pub fn task_times(record: &RunRecord) -> Vec<TaskTime> {
    attempts_in(record)
        .filter_map(|(task, attempt, vm)| time_of(record, task, attempt, vm))
        .collect()
}

fn attempts_in(record: &RunRecord) -> impl Iterator<Item = (TaskId, &AttemptHistory, &VmHistory)> {
    (0..).map(TaskId::new).zip(&record.tasks).flat_map(move |(task, history)| {
        history.attempts.iter().filter_map(move |a| record.vms.get(&a.vm).map(|vm| (task, a, vm)))
    })
}

/// Promised and actual time of an attempt; `None` if the attempt did not finish or has no account of its CPU time.
fn time_of(
    record: &RunRecord,
    task: TaskId,
    attempt: &AttemptHistory,
    vm: &VmHistory,
) -> Option<TaskTime> {
    let (ended, AttemptEnd::Finished) = attempt.ended.as_ref()? else { return None };
    let logged = vm.awake(attempt.started?, *ended);
    let (promised, took) = match record.speedup {
        // The model keeps its promises.
        None => (logged, logged),
        // The worker's measurement: the log has an end when it was due, if it came soon after.
        Some(speedup) => {
            let ledger = attempt.ledger?;
            let emulated = |real_us| speedup.to_emulated(Duration::from_micros(real_us));
            (emulated(ledger.real_promised_us), emulated(ledger.real_took_us))
        }
    };
    Some(TaskTime { task, attempt: attempt.attempt, promised, took, logged })
}

impl TaskTimes {
    /// Compares all attempts with their promises. Errors past `live.worst-error` and
    /// `live.mean-error`, and disagreements between the worker, the log and the experiment, are
    /// added to `notes`.
    #[must_use]
    pub fn compare(
        setup: &Setup,
        allowed: &AllowedErrors,
        record: &RunRecord,
        notes: &mut Vec<String>,
    ) -> Self {
        let mut times = Self::default();
        let mut errors = Vec::new();
        let (mut unlike, mut ahead, mut interrupted) = (Vec::new(), Vec::new(), Vec::new());
        for (task, attempt, vm) in attempts_in(record) {
            let is_finished = matches!(attempt.ended, Some((_, AttemptEnd::Finished)));
            times.tasks_finished += usize::from(is_finished);
            let Some(ledger) = attempt.ledger else { continue };
            times.add_cpu(&ledger);
            let whole = ledger.real_whole_work_us;
            times.worst_ahead = times.worst_ahead.max(ratio(ledger.real_ahead_us, whole));
            let bearable =
                allowed.worst_error * whole_f64(whole) + SLICES * ledger.real_slice_us as f64;
            // The promise to a user's own program shrinks once it is known that the program waited.
            if attempt.own.is_none() && ledger.real_ahead_us as f64 > bearable {
                ahead.push(format!(
                    "{task} was {} of its work ahead of its promise for a while",
                    percent(ratio(ledger.real_ahead_us, whole))
                ));
            }
            times.worst_behind = times.worst_behind.max(ratio(ledger.real_behind_us, whole));
            match time_of(record, task, attempt, vm) {
                Some(time) => {
                    // The time owed to a user's own program is what it computes, which nobody knew
                    // before.
                    if attempt.own.is_none()
                        && let Some(owed) = owed(setup, task, attempt, vm)
                        && !times_agree(time.promised, owed, allowed.speedup)
                    {
                        unlike.push(format!(
                            "{task} was promised {:.1} s by its worker and {:.1} s by the experiment",
                            time.promised.as_secs_f64(),
                            owed.as_secs_f64()
                        ));
                    }
                    if !times_agree(time.logged, time.took, allowed.speedup) {
                        unlike.push(format!(
                            "{task} took {:.1} s on its worker and {:.1} s in the log",
                            time.took.as_secs_f64(),
                            time.logged.as_secs_f64()
                        ));
                    }
                    // Nobody steers the end of a user's own program, which begins a little late.
                    let slack = match attempt.own {
                        Some(_) => allowed.speedup.to_emulated(MAX_REPORT_DELAY),
                        None => Span::ZERO,
                    };
                    errors.push((time.error_beyond(slack), task));
                }
                None => {
                    times.attempts_unfinished += 1;
                    let missing =
                        signed_difference(ledger.real_worked_us, ledger.real_promised_work_us);
                    let error = missing / whole_f64(whole);
                    if error.abs() > times.worst_unfinished_error.abs() {
                        times.worst_unfinished_error = error;
                    }
                    if missing.abs() > bearable {
                        interrupted.push(format!(
                            "{task} was interrupted when it had worked {} {} than promised by then",
                            percent(error.abs()),
                            if error > 0.0 { "more" } else { "less" }
                        ));
                    }
                }
            }
        }
        if times.tasks_finished == 0 && !setup.bag.tasks.is_empty() {
            notes.push("no task finished: there is no time to be judged".to_owned());
        }
        times.judge_errors(allowed, errors, notes);
        for found in [&unlike, &ahead, &interrupted] {
            note_first(found, "tasks", notes);
        }
        short_holds(record, notes);
        times
    }

    fn add_cpu(&mut self, of: &AttemptLedger) {
        let named = total_us([of.real_worked_us, of.real_birth_us, of.real_criu_us].into_iter());
        self.worked_s += seconds(of.real_worked_us);
        self.births_s += seconds(of.real_birth_us);
        self.criu_s += seconds(of.real_criu_us);
        self.rest_s += seconds(of.real_charged_us.saturating_sub(named));
        self.checkpoints_missed = self.checkpoints_missed.saturating_add(of.missed_checkpoints);
    }

    fn judge_errors(
        &mut self,
        allowed: &AllowedErrors,
        mut errors: Vec<(f64, TaskId)>,
        notes: &mut Vec<String>,
    ) {
        let (worst, mean) = (allowed.worst_error, allowed.mean_error);
        errors.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.tasks_judged = errors.len();
        if !errors.is_empty() {
            let at = |part: f64| errors[((errors.len() - 1) as f64 * part).round() as usize].0;
            self.task_error_quantiles = [at(0.05), at(0.5), at(0.95)];
            self.mean_task_error =
                errors.iter().map(|(error, _)| error).sum::<f64>() / errors.len() as f64;
            let (low, high) = (at(0.0), at(1.0));
            self.worst_task_error = if -low > high { low } else { high };
        }
        if self.tasks_judged < self.tasks_finished {
            let (judged, of) = (self.tasks_judged, self.tasks_finished);
            notes.push(format!(
                "judged {judged} of {of}: of the others no worker gave an account of what they got"
            ));
        }
        if self.mean_task_error.abs() > mean {
            notes.push(format!(
                "tasks took {} than promised on average; at most {} is allowed",
                error_in_words(self.mean_task_error),
                percent(mean)
            ));
        }
        errors.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let past: Vec<_> = errors.iter().take_while(|(error, _)| error.abs() > worst).collect();
        if !past.is_empty() {
            let named: Vec<_> = past
                .iter()
                .take(NAMED)
                .map(|(error, task)| format!("{task} {}", error_in_words(*error)))
                .collect();
            let more = if past.len() > NAMED { ", …" } else { "" };
            notes.push(format!(
                "{} of {} tasks took more or less than promised by over {}: {}{more}",
                past.len(),
                errors.len(),
                percent(worst),
                named.join(", ")
            ));
        }
        if self.checkpoints_missed > 0 {
            notes.push(format!(
                "{} checkpoints came after their task's end: CRIU's turn, or the store's word that they are kept",
                self.checkpoints_missed
            ));
        }
    }
}

/// CPU time by which a VM's supply may differ from its promise because of slices, in real
/// microseconds: the slices of one task, and of each task that was interrupted there.
pub(super) fn vm_slices_us(record: &RunRecord, vm: VmId) -> u64 {
    let ledgers = attempts_in(record).filter(|(_, attempt, _)| attempt.vm == vm);
    let of = |(_, attempt, _): (TaskId, &AttemptHistory, &VmHistory)| {
        let finished = matches!(attempt.ended, Some((_, AttemptEnd::Finished)));
        Some((attempt.ledger?.real_slice_us, u64::from(!finished)))
    };
    let (slice, interrupted) =
        ledgers.filter_map(of).fold((0, 1), |all, one| (all.0.max(one.0), all.1 + one.1));
    slice.saturating_mul(SLICES as u64).saturating_mul(interrupted)
}

/// Time that an undisturbed attempt should take on its VM, for its work and its checkpoints: on a
/// VM of constant speed, or, on a background VM, given its supply. `None` for a burstable VM, whose
/// speed depends on its credits.
#[must_use]
pub fn owed(setup: &Setup, task: TaskId, attempt: &AttemptHistory, vm: &VmHistory) -> Option<Span> {
    if setup.catalogue.get(&vm.kind)?.burstable.is_some() {
        return None;
    }
    let spec = setup.bag.tasks.get(task.get() as usize)?;
    let (said, runtime) = (*spec.runtime.get(&vm.kind)?, setup.task_runtime(task, &vm.kind)?);
    let done = attempt.from.map_or(Ppm::ZERO, |(_, done)| done);
    let age = vm.ready.map_or(Span::ZERO, |ready| attempt.sent.since(ready));
    let begun = Begun { kind: &vm.kind, market: vm.market, age, kept: done };
    let plan = setup.checkpoint.known_on(&begun, spec.memory, said);
    let mut points = plan.points();
    // Checkpoints that were asked for while it ran are owed as well; others that its worker took
    // are not.
    let kept = attempt.checkpoints.iter().map(|mark| mark.done);
    let others: Vec<_> = kept.filter(|done| !points.contains(done)).collect();
    points.extend(others.into_iter().take(attempt.asked.len()));
    points.sort_unstable();
    points.retain(|point| *point > done);
    if vm.is_background {
        return background::owed((runtime, done), (points, plan.cost), attempt, vm);
    }
    Some(runtime.part(done.rest_of_whole()) + plan.cost.times(points.len() as u64))
}

fn times_agree(one: Span, other: Span, speedup: Speedup) -> bool {
    let slack = speedup.to_emulated(PROMISE_SLACK).as_secs_f64();
    let (one, other) = (one.as_secs_f64(), other.as_secs_f64());
    (one - other).abs() <= other * PROMISE_TOLERANCE + slack
}

/// Adds a note on checkpoints for which a task was stopped too briefly.
fn short_holds(record: &RunRecord, notes: &mut Vec<String>) {
    let mut short = Vec::new();
    for (task, attempt, _) in attempts_in(record) {
        for mark in &attempt.checkpoints {
            let (held_us, owed_us) = (mark.real_held_us, mark.real_owed_us);
            short.extend(cut_short(held_us, owed_us).map(|how| format!("{task} {how}")));
        }
    }
    note_first(&short, "checkpoints", notes);
}

fn signed_difference(a: u64, b: u64) -> f64 {
    a as f64 - b as f64
}

fn whole_f64(whole: u64) -> f64 {
    whole.max(1) as f64
}

fn error_in_words(error: f64) -> String {
    format!("{} {}", percent(error.abs()), if error < 0.0 { "less" } else { "more" })
}
