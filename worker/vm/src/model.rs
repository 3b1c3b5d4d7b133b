//! The modelled backend of a VM: tasks progress exactly at the speeds they should.
//!
//! In virtual time the model is the VM. Beside a real VM the model is the reference: what each task should have done by
//! now, and when it should end.
//!
//! Rates are constant between events and are computed again only for the tasks that an event affects. Amounts are whole
//! numbers without rounding, so passing time in pieces changes nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dormouse_units::{Attempt, Bytes, Cpus, Mode, Ppm, Span, TaskId, Time};

use crate::processors::ModelProcessors;
use crate::running::{SeatedTask, TaskOccurrence};
use crate::sharing::times_share;
use crate::{
    MachineSpec, MachineState, ModelProgress, ModelTask, ProcessorSharing, SeatError, WorkEvent,
};

mod checkpoint;
mod rates;
mod seats;

/// A span longer than any run, yet short enough to be added to a time.
const FOREVER: Span = Span::from_micros(u64::MAX / 4);

/// Set of slots of the model whose tasks' rates and plans must be recomputed.
#[derive(Clone, Debug, Default)]
struct TouchedSlots {
    slots: Vec<u32>,
    marks: Vec<bool>,
}

impl TouchedSlots {
    fn add_slot(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.marks[slot as usize], true) {
            self.slots.push(slot);
        }
    }

    fn next(&mut self) -> Option<u32> {
        let slot = self.slots.pop()?;
        self.marks[slot as usize] = false;
        Some(slot)
    }
}

/// Model of one VM: vCPUs of two slots each, and the tasks in them.
///
/// Use: every change is made at a time `now`, which must not go back; [`VmModel::step_until`] returns what has
/// happened by a time, and [`VmModel::next_at`] says when that is next.
#[derive(Clone, Debug)]
pub struct VmModel {
    machine: MachineState,
    /// Law by which two tasks share a vCPU, with the seed of its random draws; `None`: they share it without loss.
    sharing: Option<(ProcessorSharing, u64)>,
    /// True if tasks leave their seats as soon as their work is done.
    leaving: bool,
    processors: ModelProcessors,
    /// The tasks, each in a slot of its own.
    slots: Vec<Option<SeatedTask>>,
    /// Keys of the tasks in `slots`, in a list of its own that is fast to search.
    keys: Vec<Option<(TaskId, Attempt)>>,
    free_slots: Vec<u32>,
    now: Time,
    /// Planned events of tasks as (time, task, slot, number of the plan), the soonest first. The first entry is up to date; later
    /// entries may belong to replaced plans.
    agenda: BinaryHeap<Reverse<(Time, TaskId, u32, u64)>>,
    /// Slots whose task's rate or plan must be recomputed.
    touched: TouchedSlots,
    /// True if the agenda and the credits don't yet reflect a change to the model.
    changed: bool,
    /// Number of plans made so far, so that each plan has its own number.
    turns: u64,
    /// vCPU use of all tasks, in ppm of one vCPU; computed for burstable VMs only.
    used: u64,
    /// Time at which credits change the VM's speed, if nothing else changes; `None`: never.
    credits_turn: Option<Time>,
    /// Events that have happened but weren't returned to the caller yet.
    untold: Vec<WorkEvent>,
}

impl VmModel {
    /// Makes the model of an empty VM, created now.
    #[must_use]
    pub fn new(now: Time, spec: MachineSpec) -> Self {
        let processors = ModelProcessors::new(spec.vcpus);
        Self {
            machine: MachineState::new(spec),
            sharing: None,
            leaving: false,
            processors,
            slots: Vec::new(),
            keys: Vec::new(),
            free_slots: Vec::new(),
            now,
            agenda: BinaryHeap::new(),
            touched: TouchedSlots::default(),
            changed: true,
            turns: 0,
            used: 0,
            credits_turn: None,
            untold: Vec::new(),
        }
    }

    /// Makes tasks share vCPUs by the measured law `sharing`, with random draws of seed `seed`, instead of without loss.
    #[must_use]
    pub fn with_sharing(mut self, sharing: ProcessorSharing, seed: u64) -> Self {
        self.sharing = Some((sharing, seed));
        self
    }

    /// Makes tasks leave their seats as soon as their work is done, so that they need not be stopped.
    #[must_use]
    pub fn leaving_when_done(mut self) -> Self {
        self.leaving = true;
        self
    }

    /// Returns the time to which the model has advanced.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Returns the state of the VM's machine: whether it is frozen, and its credits.
    #[must_use]
    pub const fn machine(&self) -> &MachineState {
        &self.machine
    }

    /// Returns whether the VM has no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free_slots.len()
    }

    /// Returns a task's progress at the time to which the model was advanced; `None`: the task isn't on the VM.
    #[must_use]
    pub fn task_progress(&self, task: TaskId, attempt: Attempt) -> Option<ModelProgress> {
        let progress = self.find_task(task, attempt)?.progress_at(self.model_time());
        let finished = WorkEvent::Finished { task, attempt };
        let is_told = !self.untold.contains(&finished);
        Some(ModelProgress { finished: progress.finished.filter(|_| is_told), ..progress })
    }

    /// Returns the vCPUs of a task; `None`: the task isn't on the VM.
    #[must_use]
    pub fn task_cpus(&self, task: TaskId, attempt: Attempt) -> Option<&Cpus> {
        self.find_task(task, attempt).map(|running| &running.on)
    }

    /// Returns the current speed of a task, as if it weren't stopped: the share of its vCPUs that it gets while it uses all of
    /// them; `None`: the task isn't on the VM.
    #[must_use]
    pub fn task_speed(&self, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        let running = self.find_task(task, attempt)?;
        Some(if self.machine.is_frozen() { Ppm::ZERO } else { self.task_rate(running) })
    }

    /// Returns the speed that a task would have with no other task on its vCPUs; `None`: the task isn't on the VM.
    #[must_use]
    pub fn speed_ceiling(&self, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        let running = self.find_task(task, attempt)?;
        if self.machine.is_frozen() {
            return Some(Ppm::ZERO);
        }
        Some(times_share(
            self.machine.speed_ceiling(running.mode),
            self.processors.least_supply(&running.on),
        ))
    }

    /// Returns the time from now until a task has done the work `done` (as time at full speed); `None`: never at the current
    /// speeds.
    #[must_use]
    pub fn time_to(&self, task: TaskId, attempt: Attempt, done: Span) -> Option<Span> {
        let running = self.find_task(task, attempt)?;
        let span = running.time_to(self.model_time(), done, self.task_rate(running))?;
        (span == Span::ZERO || !self.machine.is_frozen()).then_some(span)
    }

    /// Returns the time of the model's next event if nothing is changed until then; `None`: there is no such event.
    #[must_use]
    pub fn next_at(&mut self) -> Option<Time> {
        self.settle_touched();
        if self.untold.is_empty() { self.next_due() } else { Some(self.now) }
    }

    fn next_due(&self) -> Option<Time> {
        let work = self.agenda.peek().map(|Reverse((at, ..))| *at);
        match (work, self.credits_turn) {
            (Some(work), Some(credits)) => Some(work.min(credits)),
            (work, credits) => work.or(credits),
        }
    }

    fn slot_of(&self, task: TaskId, attempt: Attempt) -> Option<u32> {
        let place = self.keys.iter().position(|key| *key == Some((task, attempt)))?;
        u32::try_from(place).ok()
    }

    fn find_task(&self, task: TaskId, attempt: Attempt) -> Option<&SeatedTask> {
        self.slots[self.slot_of(task, attempt)? as usize].as_ref()
    }

    /// Returns the time up to which tasks have progressed: the current time, or if the VM is frozen the time of the freeze.
    fn model_time(&self) -> Time {
        if self.machine.is_frozen() { Time::ZERO } else { self.now }
    }
}

/// Changes to the model, each of which passes time up to `now` first.
impl VmModel {
    /// Starts a task.
    ///
    /// # Errors
    ///
    /// Its seats or its memory aren't free; nothing has changed then.
    pub fn start_task(&mut self, now: Time, mut work: ModelTask) -> Result<(), SeatError> {
        self.pass_until(now);
        if work.memory > Bytes::ZERO {
            let taken = self.slots.iter().flatten().map(|r| r.memory).sum();
            let free = self.machine.spec().memory.saturating_sub(taken);
            if work.memory > free {
                return Err(SeatError::NoMemory { need: work.memory, free });
            }
        }
        if let Some(on) = self.processors.instead_of(&work.on, work.tier)? {
            work.on = on;
        }
        let key = (work.task, work.attempt);
        let running = SeatedTask::new(self.now, work);
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                self.keys.push(None);
                self.touched.marks.push(false);
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.keys[slot as usize] = Some(key);
        self.slots[slot as usize] = Some(running);
        self.note_use(slot);
        self.changed = true;
        Ok(())
    }

    /// Stops a task; returns the part of its work that is done, or `None` if the task isn't on the VM.
    pub fn stop_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        self.pass_until(now);
        let slot = self.slot_of(task, attempt)?;
        let (frozen, now) = (self.machine.is_frozen(), self.now);
        let running = self.slots[slot as usize].as_mut()?;
        bring_up_to(running, now, frozen);
        let done = running.part_done(now);
        self.vacate_slot(slot);
        self.untold.retain(|event| event.about_attempt() != Some((task, attempt)));
        self.changed = true;
        Some(done)
    }

    /// Stops a task for `span` from now on, for a checkpoint. A task that is stopped already is stopped for that much
    /// longer; a task that has finished finishes again afterwards.
    pub fn hold_task(&mut self, now: Time, task: TaskId, attempt: Attempt, span: Span) {
        self.pass_until(now);
        self.untell_end(task, attempt);
        self.change_task(now, task, attempt, |running| running.stand_still(span, true));
    }

    /// Makes a seated task wait for its input: until it is released the task makes no progress and uses no vCPU.
    pub fn wait_for_release(&mut self, now: Time, task: TaskId, attempt: Attempt) {
        self.pass_until(now);
        self.change_task(now, task, attempt, |running| running.stand_still(FOREVER, false));
    }

    /// Lets a stopped task run again.
    pub fn release_task(&mut self, now: Time, task: TaskId, attempt: Attempt) {
        self.change_task(now, task, attempt, SeatedTask::go_on);
    }

    /// Sets a task's CPU mode; returns whether the task is on the VM.
    pub fn set_mode(&mut self, now: Time, task: TaskId, attempt: Attempt, mode: Mode) -> bool {
        self.change_task(now, task, attempt, |running| running.mode = mode)
    }

    /// Counts a task's start as `span` earlier: the task is promised the work of that time, and CPU credits are spent for it.
    pub fn head_start(&mut self, task: TaskId, attempt: Attempt, span: Span) {
        if self.machine.is_frozen() {
            return;
        }
        // Its rate has to be known.
        self.settle_touched();
        let used = self.find_task(task, attempt).map_or(0, SeatedTask::in_use);
        self.change_task(self.now, task, attempt, |running| running.head_start(span));
        if self.machine.spend_late(span, used) {
            self.credits_turned();
        }
    }

    /// Sets the part of a task's work that is done.
    pub fn set_done(&mut self, task: TaskId, attempt: Attempt, done: Ppm) {
        self.untell_end(task, attempt);
        self.change_task(self.now, task, attempt, |running| running.set_done(done));
    }

    /// Adds work, as time at full speed, to a task beyond its announced run time.
    pub fn extend(&mut self, now: Time, task: TaskId, attempt: Attempt, more: Span) {
        self.pass_until(now);
        self.untell_end(task, attempt);
        self.change_task(now, task, attempt, |running| running.extend(more));
    }

    /// Promotes a background task to the foreground of its vCPUs; false if the task isn't on the VM or the foreground
    /// isn't free.
    pub fn promote_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        let on = self.find_task(task, attempt).map(|r| r.on.clone()).unwrap_or_default();
        self.reseat_task(now, task, attempt, on, Span::ZERO)
    }

    /// Moves a task to the foreground of the vCPUs `on`, one for each of its processes; the task makes no progress for as long as
    /// the move takes. Returns false if the task isn't on the VM or the vCPUs aren't free.
    pub fn move_to(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: Attempt,
        on: Cpus,
        takes: Span,
    ) -> bool {
        self.reseat_task(now, task, attempt, on, takes)
    }

    /// Hibernates the VM: nothing runs, and no credits are earned.
    pub fn freeze_vm(&mut self, now: Time) {
        self.set_frozen(now, true);
    }

    /// Ends the VM's hibernation.
    pub fn thaw_vm(&mut self, now: Time) {
        self.set_frozen(now, false);
    }

    /// Sets the share of a real processor that a vCPU has, at most one: tasks on it run that much slower and use that
    /// much less.
    pub fn set_supply(&mut self, now: Time, cpu: u32, share: Ppm) {
        self.set_supply_since(now, now, cpu, share);
    }

    /// Sets the share of a real processor that a vCPU has had since an earlier time: the progress of the tasks on it is
    /// corrected.
    pub fn set_supply_since(&mut self, now: Time, since: Time, cpu: u32, share: Ppm) {
        self.pass_until(now);
        self.settle_touched();
        let rate = |slot| Some((slot, self.slots[slot as usize].as_ref()?.rate));
        let slots = self.processors.set_supply(cpu, share.min(Ppm::ONE));
        let rates: Vec<(u32, Ppm)> = slots.filter_map(rate).collect();
        for (slot, _) in &rates {
            self.touched.add_slot(*slot);
        }
        self.changed = true;
        let late = self.now.since(since);
        if late == Span::ZERO || self.machine.is_frozen() {
            return;
        }
        self.settle_touched();
        for (slot, before) in rates {
            if let Some(running) = self.slots[slot as usize].as_mut() {
                running.make_up(late, before);
            }
            self.touched.add_slot(slot);
        }
        self.changed = true;
    }

    /// Advances the time to `now`. [`Self::step_until`] returns the events that happen until then.
    pub fn pass_until(&mut self, now: Time) {
        if now <= self.now {
            return;
        }
        self.settle_touched();
        if self.next_due().is_some_and(|at| at < now) {
            let mut untold = std::mem::take(&mut self.untold);
            self.let_happen(&mut untold, |at| at < now);
            self.untold = untold;
            self.settle_touched();
        }
        self.go_to(now);
    }

    /// Advances the time to `now`, and appends the events until then in order of time; at one instant, changes of speed
    /// by credits come first, then tasks in order.
    pub fn step_until(&mut self, now: Time, told: &mut Vec<WorkEvent>) {
        self.settle_touched();
        told.append(&mut self.untold);
        self.let_happen(told, |at| at <= now);
        if now > self.now {
            self.settle_touched();
            self.go_to(now);
        }
    }
}

impl VmModel {
    /// Handles the events that are due, in order of time.
    fn let_happen(&mut self, told: &mut Vec<WorkEvent>, is_due: impl Fn(Time) -> bool) {
        loop {
            if self.may_be_due() {
                self.settle_touched();
            }
            let next = self.next_due().filter(|at| is_due(*at));
            if self.changed && next != Some(self.now) {
                // Before time goes on; what is done to it at this instant comes first.
                if !is_due(self.now + Span::from_micros(1)) {
                    return;
                }
                self.settle_touched();
                continue;
            }
            let Some(at) = next else { return };
            self.go_to(at);
            told.append(&mut self.untold);
            self.changed = true;
            while let Some(&Reverse((at, _, slot, turn))) = self.agenda.peek()
                && at <= self.now
            {
                self.agenda.pop();
                if self.is_current(slot, turn) {
                    told.extend(self.task_due(slot));
                }
            }
        }
    }

    /// Returns whether an event may happen at the current time without an advance. Tasks whose rate just changed don't count: an
    /// event that wasn't due before isn't due at once.
    #[must_use]
    pub fn may_be_due(&self) -> bool {
        let has_plan = |slot: &u32| {
            let running = self.slots[*slot as usize].as_ref();
            running.is_none_or(|running| running.planned || running.is_finished())
        };
        let plans_hold = !self.machine.is_burstable() && self.touched.slots.iter().all(has_plan);
        !self.untold.is_empty() || (self.changed && !plans_hold)
    }

    /// Carries out the planned event of the task in `slot`; returns the event for the caller, or `None` if the caller needn't know
    /// of it.
    fn task_due(&mut self, slot: u32) -> Option<WorkEvent> {
        let running = self.slots[slot as usize].as_mut()?;
        running.bring_to(self.now);
        let (task, attempt, memory) = (running.task, running.attempt, running.memory);
        let come = running.take_due();
        match come {
            TaskOccurrence::Due(_) => self.touched.add_slot(slot),
            TaskOccurrence::Finished if self.leaving => self.vacate_slot(slot),
            // What it uses of its vCPUs has changed.
            TaskOccurrence::Finished
            | TaskOccurrence::Held
            | TaskOccurrence::Checkpointed(_)
            | TaskOccurrence::WentOn => self.note_use(slot),
        }
        match come {
            TaskOccurrence::Finished => Some(WorkEvent::Finished { task, attempt }),
            TaskOccurrence::Due(done) => Some(WorkEvent::Due { task, attempt, done }),
            TaskOccurrence::Checkpointed(done) => {
                Some(WorkEvent::Checkpointed { task, attempt, done, memory })
            }
            TaskOccurrence::Held | TaskOccurrence::WentOn => None,
        }
    }

    /// Advances the time to `now`, before which no event may be planned. All rates and plans must be up to date.
    fn go_to(&mut self, now: Time) {
        let span = now.since(self.now);
        self.now = now;
        if !self.machine.is_burstable() || span == Span::ZERO {
            return;
        }
        if self.machine.pass_time(span, self.used) {
            self.credits_turned();
            self.settle_touched();
        }
    }

    fn credits_turned(&mut self) {
        self.untold.extend(self.machine.credits().map(WorkEvent::CreditsTurned));
        self.touch_all();
    }

    /// Advances the time to `now` and applies `change` to a task; returns whether the task is on the VM.
    fn change_task(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: Attempt,
        change: impl FnOnce(&mut SeatedTask),
    ) -> bool {
        self.pass_until(now);
        let Some(slot) = self.slot_of(task, attempt) else { return false };
        let (frozen, now) = (self.machine.is_frozen(), self.now);
        let Some(running) = self.slots[slot as usize].as_mut() else { return false };
        bring_up_to(running, now, frozen);
        change(running);
        self.note_use(slot);
        self.changed = true;
        true
    }

    fn set_frozen(&mut self, now: Time, frozen: bool) {
        self.pass_until(now);
        let was = self.machine.is_frozen();
        for running in self.slots.iter_mut().flatten() {
            bring_up_to(running, self.now, was);
            running.planned = false;
        }
        self.machine.set_frozen(frozen);
        self.touch_all();
    }

    /// Removes the event of a task's finish that wasn't returned yet, as the task turned out to have more work.
    fn untell_end(&mut self, task: TaskId, attempt: Attempt) {
        self.untold.retain(|event| *event != WorkEvent::Finished { task, attempt });
    }

    fn touch_all(&mut self) {
        for slot in (0..).take(self.slots.len()) {
            self.touched.add_slot(slot);
        }
        self.changed = true;
    }

    /// Computes anew the rates and plans of the slots in `touched`, before time passes.
    fn settle_touched(&mut self) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let (now, frozen) = (self.now, self.machine.is_frozen());
        while let Some(slot) = self.touched.next() {
            let loss = self.draw_loss(slot);
            let Some(running) = &self.slots[slot as usize] else { continue };
            let rate = self.rate_at(running, loss);
            if rate == running.rate && running.planned {
                continue;
            }
            let Some(running) = self.slots[slot as usize].as_mut() else { continue };
            bring_up_to(running, now, frozen);
            self.turns += 1;
            (running.rate, running.planned, running.turn) = (rate, true, self.turns);
            if let Some(at) = running.next_at().filter(|_| !frozen) {
                self.agenda.push(Reverse((at, running.task, slot, running.turn)));
            }
        }
        if self.agenda.len() > 64 + 4 * self.slots.len() {
            let mut agenda = std::mem::take(&mut self.agenda);
            agenda.retain(|Reverse((.., slot, turn))| self.is_current(*slot, *turn));
            self.agenda = agenda;
        }
        while let Some(&Reverse((_, _, slot, turn))) = self.agenda.peek()
            && !self.is_current(slot, turn)
        {
            self.agenda.pop();
        }
        if self.machine.is_burstable() {
            let running = self.slots.iter().flatten();
            self.used = if frozen { 0 } else { running.map(SeatedTask::in_use).sum() };
            self.credits_turn = self.machine.credits_turn_after(self.used).map(|span| now + span);
        }
    }

    /// Removes the task in `slot` of the model from the VM.
    fn vacate_slot(&mut self, slot: u32) {
        self.leave_seats(slot);
        self.slots[slot as usize] = None;
        self.keys[slot as usize] = None;
        self.free_slots.push(slot);
    }

    fn is_current(&self, slot: u32, turn: u64) -> bool {
        self.slots[slot as usize].as_ref().is_some_and(|r| r.turn == turn)
    }
}

/// Accounts for a task's progress up to now.
fn bring_up_to(running: &mut SeatedTask, now: Time, frozen: bool) {
    if frozen {
        running.skip_to(now);
    } else {
        running.bring_to(now);
    }
}

#[cfg(test)]
mod tests;
