//! One task on a modelled VM: how far it is, and when something happens to it next.

use dormouse_units::{Attempt, Bytes, Cpus, Mode, Ppm, Span, TaskId, Tier, Time, Usage};

use crate::work::{CheckpointHold, ModelProgress, ModelTask};

/// Work in microseconds of a vCPU of its own × parts per million: at a rate in parts per million,
/// what a microsecond does is a whole number, and nothing is ever rounded.
type Fine = u128;

const FINE: Fine = 1_000_000;

/// A task that has seats.
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
    /// Up to when progress is accounted for.
    since: Time,
    /// The speed at which it goes on when nothing holds it.
    pub(crate) rate: Ppm,
    checkpoints: Vec<Ppm>,
    /// How many of them were due.
    passed: usize,
    cost: Span,
    when: CheckpointHold,
    /// The task stands still, for this much longer than `since`.
    stands: Option<Span>,
    /// The standstill is for a checkpoint, which uses the vCPUs in its place.
    dumped: bool,
    /// Part of the work that a checkpoint keeps which was asked for while the task ran.
    asked: Option<Ppm>,
    /// The time at which its work was done.
    ended: Option<Time>,
    /// Loss of its foreground, once it has had a neighbour.
    pub(crate) loss: Option<Ppm>,
    /// What of the idle cycles each process makes use of, once it was in the background.
    pub(crate) utilisation: Option<Usage>,
    /// Entries of the agenda with another turn are out of date.
    pub(crate) turn: u64,
    /// Whether the agenda's entry of this turn is right, or right not to be there.
    pub(crate) planned: bool,
}

/// What has come for a task whose time it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskOccurrence {
    /// The task's work is done.
    Finished,
    /// A checkpoint that it is to be told to stand still for.
    Due(Ppm),
    /// The task stands still for a checkpoint from now on.
    Held,
    /// The task goes on, after a checkpoint of this much of its work.
    Checkpointed(Ppm),
    /// The task goes on.
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

    /// Accounts for the time up to now, which passed while the VM ran.
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

    /// Time up to now passed while the VM was frozen.
    pub(crate) const fn skip_to(&mut self, now: Time) {
        self.since = now;
    }

    /// How far it is at this time, up to which the VM runs as it does.
    pub(crate) fn progress_at(&self, now: Time) -> ModelProgress {
        let (done, hold) = (self.done_at(now), self.stands_until(now));
        ModelProgress { done, runtime: self.runtime, hold, finished: self.ended }
    }

    /// What of its work is done, as the time that takes at full speed.
    fn done_at(&self, now: Time) -> Span {
        let left = self.left_at(now).div_ceil(FINE);
        self.runtime.saturating_sub(u64::try_from(left).map_or(self.runtime, Span::from_micros))
    }

    /// What of its work is done.
    pub(crate) fn part_done(&self, now: Time) -> Ppm {
        self.done_at(now).fraction_of(self.runtime)
    }

    fn left_at(&self, now: Time) -> Fine {
        let goes_on = self.stands.is_none() && self.ended.is_none();
        let span = if goes_on { now.since(self.since) } else { Span::ZERO };
        self.left.saturating_sub(fine_work(span, self.rate))
    }

    /// The time for which it still stands.
    fn stands_until(&self, now: Time) -> Option<Span> {
        self.stands.map(|left| left.saturating_sub(now.since(self.since)))
    }

    /// From `now` until it has done this much at a rate from now on; `None`: never at this rate.
    pub(crate) fn time_to(&self, now: Time, done: Span, rate: Ppm) -> Option<Span> {
        let missing = self.left_at(now).saturating_sub(left_after(self.runtime, done));
        if missing == 0 {
            return Some(Span::ZERO);
        }
        Some(self.stands_until(now).unwrap_or_default() + time_for_work(missing, rate)?)
    }

    /// The time at which something happens to it if the VM runs on as it does; `None`: never, or it would
    /// outlast time.
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

    /// What was to happen to it happens, at the time up to which it is accounted for.
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

    /// The task stands still for a checkpoint from now on, if it does not already; whether it has not
    /// finished.
    pub(crate) fn checkpoint_now(&mut self) -> bool {
        // One that has done all its work ends at this very instant.
        let is_going_on = self.ended.is_none() && self.left > 0;
        if is_going_on && !self.dumped {
            self.asked = Some(self.part_done(self.since));
            self.stand_still(self.cost, true);
        }
        is_going_on
    }

    /// The task stands still for this much longer, for a checkpoint or not.
    pub(crate) fn stand_still(&mut self, span: Span, for_checkpoint: bool) {
        self.stands = Some(self.stands.unwrap_or_default() + span);
        self.dumped |= for_checkpoint;
        self.ended = None;
        self.planned = false;
    }

    /// The task has this much more to do than was said.
    pub(crate) fn extend(&mut self, more: Span) {
        self.runtime += more;
        self.left += fine_work(more, Ppm::ONE);
        self.ended = None;
        self.planned = false;
    }

    /// Nothing holds it any more.
    pub(crate) fn go_on(&mut self) {
        (self.stands, self.dumped, self.asked) = (None, false, None);
        self.planned = false;
    }

    /// The task should have begun this much earlier.
    pub(crate) fn head_start(&mut self, span: Span) {
        if self.stands.is_none() {
            self.left = self.left.saturating_sub(fine_work(span, self.rate));
            self.planned = false;
        }
    }

    /// For this long it went on at `before`, and should have at its present rate.
    pub(crate) fn make_up(&mut self, span: Span, before: Ppm) {
        if self.stands.is_none() && self.ended.is_none() {
            self.left =
                (self.left + fine_work(span, before)).saturating_sub(fine_work(span, self.rate));
            self.planned = false;
        }
    }

    /// The task has done this much, no more and no less.
    pub(crate) fn set_done(&mut self, done: Ppm) {
        self.left = left_after(self.runtime, self.runtime.part(done));
        self.ended = None;
        self.planned = false;
    }

    /// All its work is done: it keeps its seats and uses nothing.
    pub(crate) const fn is_finished(&self) -> bool {
        self.ended.is_some()
    }

    /// What process `n` uses of what it gets: all of it for a checkpoint, below a foreground what it
    /// would.
    pub(crate) fn usage_now(&self, n: usize) -> Ppm {
        self.uniform_now().unwrap_or_else(|| self.usage.of_process(n))
    }

    /// The same where every process uses as much.
    pub(crate) fn uniform_now(&self) -> Option<Ppm> {
        let is_all = self.dumped && self.tier == Tier::Foreground;
        if is_all { Some(Ppm::ONE) } else { self.usage.uniform_usage() }
    }

    /// What all of it uses now, in ppm of a vCPU, on a VM that runs. A provider charges for
    /// checkpoints as well, and the schedulers reckon with it: the credits that they set aside for
    /// a task are for its checkpoints, too. A task that is moved uses nothing meanwhile.
    pub(crate) fn in_use(&self) -> u64 {
        if self.ended.is_some() || (self.stands.is_some() && !self.dumped) {
            return 0;
        }
        (0..self.on.len()).map(|n| self.usage_now(n).scale_number(u64::from(self.rate.get()))).sum()
    }
}

/// What is left of work once this much of it is done.
fn left_after(runtime: Span, done: Span) -> Fine {
    Fine::from(runtime.saturating_sub(done).as_micros()) * FINE
}

/// What is done in this time at this rate.
fn fine_work(span: Span, rate: Ppm) -> Fine {
    Fine::from(span.as_micros()) * Fine::from(rate.get())
}

/// The time that this work takes at this rate, rounded up to a microsecond.
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
