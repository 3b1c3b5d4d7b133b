//! One task on a modelled VM: its progress, and the time of its next event.

use dormouse_units::{Attempt, Bytes, Cpus, Mode, Ppm, Span, TaskId, Tier, Time, Usage};

use crate::work::{CheckpointHold, ModelProgress, ModelTask};

/// Amount of work in millionths of a vCPU-microsecond: at a rate in parts per million, the work done in a microsecond is a whole
/// number, so that nothing is rounded.
type Fine = u128;

const FINE: Fine = 1_000_000;

/// A task on the vCPU slots that it occupies (its seats), with its progress.
#[derive(Clone, Debug)]
pub(crate) struct SeatedTask {
    pub(crate) task: TaskId,
    pub(crate) attempt: Attempt,
    pub(crate) memory: Bytes,
    pub(crate) mode: Mode,
    pub(crate) tier: Tier,
    pub(crate) on: Cpus,
    pub(crate) usage: Usage,
    runtime: Span,
    left: Fine,
    /// Time up to which the task's progress is accounted for.
    since: Time,
    /// Speed of the task while it isn't stopped, as a share of full speed.
    pub(crate) rate: Ppm,
    checkpoints: Vec<Ppm>,
    /// Number of planned checkpoint positions that the task has passed.
    passed: usize,
    cost: Span,
    when: CheckpointHold,
    /// Rest of the time for which the task is stopped, counted from `since`; `None`: the task isn't stopped.
    stands: Option<Span>,
    /// True if the task is stopped for a checkpoint, which uses the vCPUs in the task's place.
    dumped: bool,
    /// Part of the task's work for which a checkpoint was requested while the task ran; `None`: none was.
    asked: Option<Ppm>,
    /// Time at which the task's work was done; `None`: it isn't done.
    ended: Option<Time>,
    /// Part of its speed that a foreground task loses to neighbours; `None` until it is drawn, when the task first has a neighbour.
    pub(crate) loss: Option<Ppm>,
    /// Part of a foreground's idle cycles that each process can use; `None` until it is drawn, when the task is first in the
    /// background.
    pub(crate) utilisation: Option<Usage>,
    /// Number of the task's current plan: the model's agenda entries with a different number are out of date.
    pub(crate) turn: u64,
    /// True if the agenda contains the current plan, or if the task has no next event.
    pub(crate) planned: bool,
}

/// Planned event of a task that now happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskOccurrence {
    /// The task's work is done.
    Finished,
    /// The task has reached a checkpoint position, at the given part of its work; the caller will stop the task for the checkpoint.
    Due(Ppm),
    /// The task is stopped for a checkpoint from now on.
    Held,
    /// The task runs again after a checkpoint, which holds the given part of the task's work.
    Checkpointed(Ppm),
    /// The task runs again after a stop that wasn't for a checkpoint.
    WentOn,
}

impl SeatedTask {
    pub(crate) fn new(now: Time, work: ModelTask) -> Self {
        let ModelTask { task, attempt, memory, runtime, done, mode, on, tier, usage, .. } = work;
        let mut checkpoints = work.checkpoints;
        checkpoints.retain(|&due| due > done);
        Self {
            task,
            attempt,
            memory,
            mode,
            tier,
            on,
            usage,
            runtime,
            left: left_after(runtime, runtime.part(done)),
            since: now,
            rate: Ppm::ONE,
            checkpoints,
            passed: 0,
            cost: work.checkpoint_cost,
            when: work.hold,
            stands: None,
            dumped: false,
            asked: None,
            ended: None,
            loss: None,
            utilisation: None,
            turn: 0,
            planned: false,
        }
    }

    /// Accounts for the task's progress up to `now` on a VM that ran.
    pub(crate) fn bring_to(&mut self, now: Time) {
        let span = now.since(self.since);
        self.since = now;
        if self.ended.is_some() {
            return;
        }
        match &mut self.stands {
            Some(left) => *left = left.saturating_sub(span),
            None => self.left = self.left.saturating_sub(fine_work(span, self.rate)),
        }
    }

    /// Advances the task's time to `now` without progress, as the VM was frozen.
    pub(crate) const fn skip_to(&mut self, now: Time) {
        self.since = now;
    }

    /// Returns the task's progress at the time `now`, if the VM runs unchanged until then.
    pub(crate) fn progress_at(&self, now: Time) -> ModelProgress {
        let (done, hold) = (self.done_at(now), self.stands_until(now));
        ModelProgress { done, runtime: self.runtime, hold, finished: self.ended }
    }

    /// Returns the work that the task has done by `now`, as time at full speed.
    fn done_at(&self, now: Time) -> Span {
        let left = self.left_at(now).div_ceil(FINE);
        self.runtime.saturating_sub(u64::try_from(left).map_or(self.runtime, Span::from_micros))
    }

    /// Returns the part of the task's work that is done by `now`.
    pub(crate) fn part_done(&self, now: Time) -> Ppm {
        self.done_at(now).fraction_of(self.runtime)
    }

    fn left_at(&self, now: Time) -> Fine {
        let goes_on = self.stands.is_none() && self.ended.is_none();
        let span = if goes_on { now.since(self.since) } else { Span::ZERO };
        self.left.saturating_sub(fine_work(span, self.rate))
    }

    /// Returns the time for which the task is still stopped, seen from `now`; `None`: the task isn't stopped.
    fn stands_until(&self, now: Time) -> Option<Span> {
        self.stands.map(|left| left.saturating_sub(now.since(self.since)))
    }

    /// Returns the time from `now` until the task has done the work `done`, if its rate is `rate` from now on; `None`: never.
    pub(crate) fn time_to(&self, now: Time, done: Span, rate: Ppm) -> Option<Span> {
        let missing = self.left_at(now).saturating_sub(left_after(self.runtime, done));
        if missing == 0 {
            return Some(Span::ZERO);
        }
        Some(self.stands_until(now).unwrap_or_default() + time_for_work(missing, rate)?)
    }

    /// Returns the time of the task's next event if the VM runs unchanged; `None`: never, or beyond the end of time.
    pub(crate) fn next_at(&self) -> Option<Time> {
        if self.ended.is_some() {
            return None;
        }
        let goal = self.checkpoints.get(self.passed);
        let at_goal = goal.map_or(0, |&due| left_after(self.runtime, self.runtime.part(due)));
        let span =
            self.stands.or_else(|| time_for_work(self.left.saturating_sub(at_goal), self.rate))?;
        self.since.as_micros().checked_add(span.as_micros()).map(Time::from_micros)
    }

    /// Carries out the task's planned event, at the time up to which its progress is accounted for; returns the event.
    pub(crate) fn take_due(&mut self) -> TaskOccurrence {
        self.planned = false;
        if self.stands.take().is_some() {
            let dumped = std::mem::take(&mut self.dumped);
            if let Some(done) = self.asked.take() {
                return TaskOccurrence::Checkpointed(done);
            }
            return match self.checkpoints.get(self.passed) {
                Some(&done) if dumped && self.when == CheckpointHold::WhenDue => {
                    self.passed += 1;
                    TaskOccurrence::Checkpointed(done)
                }
                _ => TaskOccurrence::WentOn,
            };
        }
        match self.checkpoints.get(self.passed) {
            Some(&done) if self.when == CheckpointHold::WhenTold => {
                self.passed += 1;
                TaskOccurrence::Due(done)
            }
            Some(_) => {
                (self.stands, self.dumped) = (Some(self.cost), true);
                TaskOccurrence::Held
            }
            None => {
                self.ended = Some(self.since);
                TaskOccurrence::Finished
            }
        }
    }

    /// Stops the task for a checkpoint from now on, unless the task is stopped already; false if the task has finished.
    pub(crate) fn checkpoint_now(&mut self) -> bool {
        // One that has done all its work ends at this very instant.
        let is_going_on = self.ended.is_none() && self.left > 0;
        if is_going_on && !self.dumped {
            self.asked = Some(self.part_done(self.since));
            self.stand_still(self.cost, true);
        }
        is_going_on
    }

    /// Stops the task for a further `span`; `for_checkpoint` says whether a checkpoint is the cause.
    pub(crate) fn stand_still(&mut self, span: Span, for_checkpoint: bool) {
        self.stands = Some(self.stands.unwrap_or_default() + span);
        self.dumped |= for_checkpoint;
        self.ended = None;
        self.planned = false;
    }

    /// Adds work, as time at full speed, to the task beyond its announced run time.
    pub(crate) fn extend(&mut self, more: Span) {
        self.runtime += more;
        self.left += fine_work(more, Ppm::ONE);
        self.ended = None;
        self.planned = false;
    }

    /// Lets the stopped task run again.
    pub(crate) fn go_on(&mut self) {
        (self.stands, self.dumped, self.asked) = (None, false, None);
        self.planned = false;
    }

    /// Adds the progress that the task makes in `span` at its current rate, as if it had started earlier.
    pub(crate) fn head_start(&mut self, span: Span) {
        if self.stands.is_none() {
            self.left = self.left.saturating_sub(fine_work(span, self.rate));
            self.planned = false;
        }
    }

    /// Corrects the task's progress: during `span` it was counted at the rate `before`, and should have been at its
    /// current rate.
    pub(crate) fn make_up(&mut self, span: Span, before: Ppm) {
        if self.stands.is_none() && self.ended.is_none() {
            self.left =
                (self.left + fine_work(span, before)).saturating_sub(fine_work(span, self.rate));
            self.planned = false;
        }
    }

    /// Sets the part of the task's work that is done.
    pub(crate) fn set_done(&mut self, done: Ppm) {
        self.left = left_after(self.runtime, self.runtime.part(done));
        self.ended = None;
        self.planned = false;
    }

    /// Returns whether all work is done: the task keeps its seats and uses nothing.
    pub(crate) const fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns the part of its share of a vCPU that process `n` uses: the whole share during a checkpoint, else the process's own
    /// usage, in the background too.
    pub(crate) fn usage_now(&self, n: usize) -> Ppm {
        self.uniform_now().unwrap_or_else(|| self.usage.of_process(n))
    }

    /// Returns the part of its share of a vCPU that each process uses; `None`: the processes differ.
    pub(crate) fn uniform_now(&self) -> Option<Ppm> {
        let is_all = self.dumped && self.tier == Tier::Foreground;
        if is_all { Some(Ppm::ONE) } else { self.usage.uniform_usage() }
    }

    /// Returns the vCPU use of the task now, in ppm of a vCPU, on a running VM. Checkpoints count, since a provider
    /// charges for them and schedulers set credits aside for them. A task that is being moved uses nothing.
    pub(crate) fn in_use(&self) -> u64 {
        if self.ended.is_some() || (self.stands.is_some() && !self.dumped) {
            return 0;
        }
        (0..self.on.len()).map(|n| self.usage_now(n).scale_number(u64::from(self.rate.get()))).sum()
    }
}

/// Returns the work that is left of a run time at full speed once `done` of it is done.
fn left_after(runtime: Span, done: Span) -> Fine {
    Fine::from(runtime.saturating_sub(done).as_micros()) * FINE
}

/// Returns the work done in `span` at the rate `rate`.
fn fine_work(span: Span, rate: Ppm) -> Fine {
    Fine::from(span.as_micros()) * Fine::from(rate.get())
}

/// Returns the time that work takes at the rate `rate`, rounded up to a microsecond; `None`: for ever.
fn time_for_work(work: Fine, rate: Ppm) -> Option<Span> {
    // Most of it fits in 64 bits, whose division is a machine's own.
    let us = match (u64::try_from(work), rate.get()) {
        (Ok(0), _) => 0,
        (_, 0) => return None,
        // By a number that the compiler knows it is no division.
        (Ok(work), 1_000_000) => work.div_ceil(1_000_000),
        (Ok(work), rate) => work.div_ceil(u64::from(rate)),
        (Err(_), rate) => u64::try_from(work.div_ceil(Fine::from(rate))).ok()?,
    };
    Some(Span::from_micros(us))
}
