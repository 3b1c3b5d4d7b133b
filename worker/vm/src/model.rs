//! The modelled backend of a VM: tasks progress exactly at the speeds they should.
//!
//! In virtual time it is the VM. Beside a real VM it is what that is held to: what each task
//! should have done by now, and when it should end.
//!
//! Rates are constant between what happens and are made anew only for the tasks that it touches.
//! Amounts are whole numbers that nothing rounds, so that passing time in pieces changes nothing.

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

/// Longer than any run, and short enough to be added to.
const FOREVER: Span = Span::from_micros(u64::MAX / 4);

/// Slots to look at again, each once.
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

/// One modelled VM: vCPUs of two slots each, and the tasks in them.
#[derive(Clone, Debug)]
pub struct VmModel {
    machine: MachineState,
    /// What two tasks do to each other on a vCPU, and the seed of its chance.
    sharing: Option<(ProcessorSharing, u64)>,
    /// Tasks leave as soon as their work is done.
    leaving: bool,
    processors: ModelProcessors,
    /// The tasks, each at a place of its own while it is here.
    slots: Vec<Option<SeatedTask>>,
    /// Who is at each place: short to search.
    keys: Vec<Option<(TaskId, Attempt)>>,
    free_slots: Vec<u32>,
    now: Time,
    /// (when, task, slot, turn) of what happens to tasks, soonest first. The first is current.
    agenda: BinaryHeap<Reverse<(Time, TaskId, u32, u64)>>,
    /// Slots whose rate or plan has to be worked out again.
    touched: TouchedSlots,
    /// Something has changed that the agenda and the credits do not know of yet.
    changed: bool,
    /// The number of times that a plan was made: no two of them have the same number.
    turns: u64,
    /// vCPUs in use, in ppm of one; known of burstable VMs.
    used: u64,
    /// The time at which the credits change how fast it runs.
    credits_turn: Option<Time>,
    /// What happened while time was passed, and was not told yet.
    untold: Vec<WorkEvent>,
}

impl VmModel {
    /// An empty VM, created now.
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

    /// Two tasks on one of its vCPUs share it as was measured, by chance of this seed, and not
    /// perfectly.
    #[must_use]
    pub fn with_sharing(mut self, sharing: ProcessorSharing, seed: u64) -> Self {
        self.sharing = Some((sharing, seed));
        self
    }

    /// Tasks leave their seats as soon as their work is done, and need not be stopped.
    #[must_use]
    pub fn leaving_when_done(mut self) -> Self {
        self.leaving = true;
        self
    }

    /// The time that has been passed.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The machine, to look at.
    #[must_use]
    pub const fn machine(&self) -> &MachineState {
        &self.machine
    }

    /// Whether nobody sits on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free_slots.len()
    }

    /// How far a task is, as of the time that has been passed.
    #[must_use]
    pub fn task_progress(&self, task: TaskId, attempt: Attempt) -> Option<ModelProgress> {
        let progress = self.find_task(task, attempt)?.progress_at(self.model_time());
        let finished = WorkEvent::Finished { task, attempt };
        let is_told = !self.untold.contains(&finished);
        Some(ModelProgress { finished: progress.finished.filter(|_| is_told), ..progress })
    }

    /// The vCPUs of a task.
    #[must_use]
    pub fn task_cpus(&self, task: TaskId, attempt: Attempt) -> Option<&Cpus> {
        self.find_task(task, attempt).map(|running| &running.on)
    }

    /// The speed at which a task goes on now if nothing holds it: the share of its vCPUs that it gets where
    /// it uses all of them.
    #[must_use]
    pub fn task_speed(&self, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        let running = self.find_task(task, attempt)?;
        Some(if self.machine.is_frozen() { Ppm::ZERO } else { self.task_rate(running) })
    }

    /// How fast it would if no other task were on its vCPUs.
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

    /// From the time that has been passed until a task has done this much of its work; `None`:
    /// never, at the present speeds.
    #[must_use]
    pub fn time_to(&self, task: TaskId, attempt: Attempt, done: Span) -> Option<Span> {
        let running = self.find_task(task, attempt)?;
        let span = running.time_to(self.model_time(), done, self.task_rate(running))?;
        (span == Span::ZERO || !self.machine.is_frozen()).then_some(span)
    }

    /// The time at which something happens by itself next.
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

    /// The time up to which tasks have gone on: a frozen VM's have been brought to its freeze.
    fn model_time(&self) -> Time {
        if self.machine.is_frozen() { Time::ZERO } else { self.now }
    }
}

/// What is done to it. All of it passes time up to `now` first.
impl VmModel {
    /// A task starts.
    ///
    /// # Errors
    ///
    /// There are no seats for it, or not enough memory; nothing has changed then.
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

    /// A task is taken off; what of its work is done, if it was there.
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

    /// A task stands still for `span` from now on, for a checkpoint; one that already does, for
    /// that much longer. One that has finished first does so again after it.
    pub fn hold_task(&mut self, now: Time, task: TaskId, attempt: Attempt, span: Span) {
        self.pass_until(now);
        self.untell_end(task, attempt);
        self.change_task(now, task, attempt, |running| running.stand_still(span, true));
    }

    /// A task that has its seat waits for what it begins with: it does nothing and uses nothing until it is released.
    pub fn wait_for_release(&mut self, now: Time, task: TaskId, attempt: Attempt) {
        self.pass_until(now);
        self.change_task(now, task, attempt, |running| running.stand_still(FOREVER, false));
    }

    /// A task that stands still goes on.
    pub fn release_task(&mut self, now: Time, task: TaskId, attempt: Attempt) {
        self.change_task(now, task, attempt, SeatedTask::go_on);
    }

    /// A task changes between burst and baseline; whether it was there.
    pub fn set_mode(&mut self, now: Time, task: TaskId, attempt: Attempt, mode: Mode) -> bool {
        self.change_task(now, task, attempt, |running| running.mode = mode)
    }

    /// A task should have started this much earlier: it is promised what it would have done, and has
    /// used the credits for that.
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

    /// A task turns out to have done this much of its work, no more and no less.
    pub fn set_done(&mut self, task: TaskId, attempt: Attempt, done: Ppm) {
        self.untell_end(task, attempt);
        self.change_task(self.now, task, attempt, |running| running.set_done(done));
    }

    /// A task turns out to have this much more to do than was said, as time at full speed.
    pub fn extend(&mut self, now: Time, task: TaskId, attempt: Attempt, more: Span) {
        self.pass_until(now);
        self.untell_end(task, attempt);
        self.change_task(now, task, attempt, |running| running.extend(more));
    }

    /// A background task comes to the foreground of its vCPUs; whether it was there and that is
    /// free.
    pub fn promote_task(&mut self, now: Time, task: TaskId, attempt: Attempt) -> bool {
        let on = self.find_task(task, attempt).map(|r| r.on.clone()).unwrap_or_default();
        self.reseat_task(now, task, attempt, on, Span::ZERO)
    }

    /// A task goes on in the foreground of these vCPUs, as many as it has, which it holds without
    /// progress for as long as the move takes; whether it was there and they are free.
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

    /// Hibernates: nothing runs, no credits are earned.
    pub fn freeze_vm(&mut self, now: Time) {
        self.set_frozen(now, true);
    }

    /// Ends a hibernation: the VM runs again.
    pub fn thaw_vm(&mut self, now: Time) {
        self.set_frozen(now, false);
    }

    /// A vCPU has this share of a real processor from now on, at most one: what runs on it is that
    /// much slower, and uses as much less.
    pub fn set_supply(&mut self, now: Time, cpu: u32, share: Ppm) {
        self.set_supply_since(now, now, cpu, share);
    }

    /// As [`Self::set_supply`] of one that was so since earlier: what runs there is brought to where
    /// it would be.
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

    /// Passes time up to `now`. What happens before it is told by [`Self::step_until`].
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

    /// Passes time up to `now`, and tells what has happened by then, in order of time; at one
    /// instant the turn of the credits first, and then in the order of the tasks.
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
    /// Lets happen what is due, from one instant to the next.
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

    /// Whether something may happen at this very instant. Not to those who go on at another rate:
    /// what was not due yet is not due at once.
    #[must_use]
    pub fn may_be_due(&self) -> bool {
        let has_plan = |slot: &u32| {
            let running = self.slots[*slot as usize].as_ref();
            running.is_none_or(|running| running.planned || running.is_finished())
        };
        let plans_hold = !self.machine.is_burstable() && self.touched.slots.iter().all(has_plan);
        !self.untold.is_empty() || (self.changed && !plans_hold)
    }

    /// The time of what was planned for a task has come.
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

    /// Time goes on up to `now`, before which nothing is due. All must be settled.
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

    /// Changes a task; whether it was there.
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

    /// Takes back an end that was not told yet: it has not come after all.
    fn untell_end(&mut self, task: TaskId, attempt: Attempt) {
        self.untold.retain(|event| *event != WorkEvent::Finished { task, attempt });
    }

    fn touch_all(&mut self) {
        for slot in (0..).take(self.slots.len()) {
            self.touched.add_slot(slot);
        }
        self.changed = true;
    }

    /// Works out what has changed for those that were touched, before time goes on.
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

    /// The task in `slot` leaves its seats and its place.
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

/// Accounts for the time up to now.
fn bring_up_to(running: &mut SeatedTask, now: Time, frozen: bool) {
    if frozen {
        running.skip_to(now);
    } else {
        running.bring_to(now);
    }
}

#[cfg(test)]
mod tests;
