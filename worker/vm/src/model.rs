//! The modelled backend of a VM: tasks progress exactly at the speeds they should.
//!
//! In virtual time it is the VM. Beside a real VM it is what that is held to: what each task
//! should have done by now, and when it should end.

use dormouse_units::{Attempt, Bytes, Credits, Mode, Ppm, Span, TaskId, Tier, Time};

use crate::{Machine, MachineSpec, Seat, SeatError};

/// A task's work on a modelled VM.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task.
    pub task: TaskId,
    /// The number of this start of the task.
    pub attempt: Attempt,
    /// Memory it needs.
    pub memory: Bytes,
    /// Time the whole of it takes on this VM at full speed.
    pub runtime: Span,
    /// What part of it is done before.
    pub done: Ppm,
    /// Burst or baseline.
    pub mode: Mode,
    /// Its vCPU; if its slot is not free, and with `None`, the first whose slot is.
    pub cpu: Option<u32>,
    /// In which slot of its vCPU.
    pub tier: Tier,
    /// At which parts of the work it is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// How long it stands still for each.
    pub checkpoint_cost: Span,
    /// Whether it stands still as soon as a checkpoint is due, or when it is told to.
    pub hold: Hold,
}

/// When a task stands still for a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// As soon as it is due, for what it costs.
    #[default]
    WhenDue,
    /// When [`Model::hold`] says so, for as long as it says.
    WhenTold,
}

/// Something that happens on a modelled VM by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// A task has done its work. It keeps its seat until it is stopped.
    Finished {
        /// The task that is done.
        task: TaskId,
        /// The attempt that has done it.
        attempt: Attempt,
    },
    /// A checkpoint of a task that stands still when it is told to.
    Due {
        /// The task that is to be checkpointed.
        task: TaskId,
        /// The attempt at it that is under way.
        attempt: Attempt,
        /// What of its work the checkpoint is to hold.
        done: Ppm,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// The task that was checkpointed.
        task: TaskId,
        /// The attempt that was checkpointed.
        attempt: Attempt,
        /// What of the work it holds.
        done: Ppm,
    },
    /// Credits changed how fast it runs.
    CreditsTurned(Credits),
}

#[derive(Clone, Debug)]
struct Running {
    task: TaskId,
    attempt: Attempt,
    runtime: Span,
    done: Span,
    checkpoints: std::collections::VecDeque<Ppm>,
    cost: Span,
    when: Hold,
    /// Standing still for a checkpoint for this much longer.
    hold: Option<Span>,
    /// When its work was done.
    ended: Option<Time>,
    /// That has been said.
    finished: bool,
}

impl Running {
    /// Where the next thing happens, in work done.
    fn goal(&self) -> Span {
        self.checkpoints.front().map_or(self.runtime, |&due| self.runtime.part(due))
    }

    fn is(&self, (task, attempt): (TaskId, Attempt)) -> bool {
        self.task == task && self.attempt == attempt
    }
}

/// How far a task of a [`Model`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Work done, as the time it takes on this VM at full speed.
    pub done: Span,
    /// All of its work, likewise.
    pub runtime: Span,
    /// It stands still for a checkpoint for this much longer.
    pub hold: Option<Span>,
    /// When all its work was done, once [`Model::step`] has said so.
    pub finished: Option<Time>,
}

/// One modelled VM. Time is passed to it; nothing happens between.
#[derive(Clone, Debug)]
pub struct Model {
    machine: Machine,
    running: Vec<Running>,
    now: Time,
}

impl Model {
    /// An empty VM, created now.
    #[must_use]
    pub fn new(now: Time, spec: MachineSpec) -> Self {
        Self { machine: Machine::new(spec), running: Vec::new(), now }
    }

    /// The time that has been passed.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The machine, to look at.
    #[must_use]
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A task starts.
    ///
    /// # Errors
    ///
    /// There is no seat for it.
    pub fn start(&mut self, now: Time, work: &Work) -> Result<Seat, SeatError> {
        self.advance(now);
        let Work { task, attempt, memory, mode, tier, cpu, .. } = *work;
        let seat = self.machine.seat(task, attempt, memory, mode, (tier, cpu))?;
        self.running.push(Running {
            task: work.task,
            attempt: work.attempt,
            runtime: work.runtime,
            done: work.runtime.part(work.done),
            checkpoints: work.checkpoints.iter().copied().filter(|&due| due > work.done).collect(),
            cost: work.checkpoint_cost,
            when: work.hold,
            hold: None,
            ended: None,
            finished: false,
        });
        Ok(seat)
    }

    /// How far a task is, as of the time that has been passed.
    #[must_use]
    pub fn progress(&self, task: TaskId, attempt: Attempt) -> Option<Progress> {
        let r = self.running.iter().find(|r| r.is((task, attempt)))?;
        let Running { done, runtime, hold, ended, .. } = *r;
        Some(Progress { done, runtime, hold, finished: ended.filter(|_| r.finished) })
    }

    /// From the time that has been passed until a task has done this much of its work; `None`:
    /// never, at the present speeds.
    #[must_use]
    pub fn time_to(&self, task: TaskId, attempt: Attempt, done: Span) -> Option<Span> {
        let r = self.running.iter().find(|r| r.is((task, attempt)))?;
        let missing = done.saturating_sub(r.done);
        if missing == Span::ZERO || self.machine.is_frozen() {
            return (missing == Span::ZERO).then_some(Span::ZERO);
        }
        let seat = self.machine.seats().iter().find(|s| s.task == task && s.attempt == attempt)?;
        let speed = self.machine.speed(&Seat { held: false, ..*seat });
        Some(r.hold.unwrap_or_default() + missing.at_speed(speed)?)
    }

    /// A task stands still for `span` from now on; one that already does, for that much longer.
    /// One that has finished first does so again after it.
    pub fn hold(&mut self, now: Time, task: TaskId, attempt: Attempt, span: Span) {
        self.advance(now);
        let Some(r) = self.running.iter_mut().find(|r| r.is((task, attempt))) else { return };
        r.hold = Some(r.hold.unwrap_or_default() + span);
        (r.ended, r.finished) = (None, false);
        self.machine.change(task, attempt, |seat| (seat.held, seat.dumped) = (true, true));
    }

    /// A task that stands still goes on.
    pub fn release(&mut self, now: Time, task: TaskId, attempt: Attempt) {
        self.advance(now);
        let Some(r) = self.running.iter_mut().find(|r| r.is((task, attempt))) else { return };
        r.hold = None;
        self.machine.change(task, attempt, |seat| (seat.held, seat.dumped) = (false, false));
    }

    /// Passes time up to `now`.
    pub fn pass(&mut self, now: Time) {
        self.advance(now);
    }

    /// A task is taken off; what of its work is done, if it was there.
    pub fn stop(&mut self, now: Time, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        self.advance(now);
        self.machine.leave(task, attempt)?;
        let place = self.running.iter().position(|r| r.is((task, attempt)))?;
        let gone = self.running.remove(place);
        Some(gone.done.fraction_of(gone.runtime))
    }

    /// A task changes between burst and baseline; whether it was there.
    pub fn set_mode(&mut self, now: Time, task: TaskId, attempt: Attempt, mode: Mode) -> bool {
        self.advance(now);
        self.machine.change(task, attempt, |seat| seat.mode = mode)
    }

    /// A task should have started this much earlier: it is promised what it would have done.
    pub fn head_start(&mut self, task: TaskId, attempt: Attempt, span: Span) {
        let seat = self.machine.seats().iter().find(|s| s.task == task && s.attempt == attempt);
        let Some(speed) = seat.map(|seat| self.machine.speed(seat)) else { return };
        if let Some(r) = self.running.iter_mut().find(|r| r.is((task, attempt))) {
            r.done = (r.done + span.part(speed)).min(r.runtime);
        }
    }

    /// A task turns out to have done this much of its work, no more and no less.
    pub fn set_done(&mut self, task: TaskId, attempt: Attempt, done: Ppm) {
        if let Some(r) = self.running.iter_mut().find(|r| r.is((task, attempt))) {
            r.done = r.runtime.part(done);
            r.ended = None;
            if std::mem::take(&mut r.finished) {
                self.machine.change(task, attempt, |seat| seat.held = false);
            }
        }
    }

    /// Hibernates.
    pub fn freeze(&mut self, now: Time) {
        self.advance(now);
        self.machine.freeze();
    }

    /// Runs again.
    pub fn thaw(&mut self, now: Time) {
        self.advance(now);
        self.machine.thaw();
    }

    /// When something happens by itself next.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        if self.machine.is_frozen() {
            return None;
        }
        let work = self.running.iter().filter_map(|r| self.time_to_goal(r)).min();
        [work, self.machine.credits_turn_after()]
            .into_iter()
            .flatten()
            .min()
            .map(|span| self.now + span)
    }

    fn time_to_goal(&self, r: &Running) -> Option<Span> {
        if r.hold.is_some() || r.finished {
            return r.hold;
        }
        let seat =
            self.machine.seats().iter().find(|s| s.task == r.task && s.attempt == r.attempt)?;
        r.goal().saturating_sub(r.done).at_speed(self.machine.speed(seat))
    }

    /// Passes time up to `now`, and gives what has happened by then. Call it at
    /// [`Model::next_at`], or earlier.
    pub fn step(&mut self, now: Time) -> Vec<WorkEvent> {
        let was = self.machine.credits_turn_after().map(|span| self.now + span);
        self.advance(now);
        let mut events = Vec::new();
        if let (Some(balance), true) = (self.machine.credits(), was.is_some_and(|at| at <= now)) {
            events.push(WorkEvent::CreditsTurned(balance));
        }
        let machine = &mut self.machine;
        for r in &mut self.running {
            let (task, attempt) = (r.task, r.attempt);
            if r.hold == Some(Span::ZERO) {
                r.hold = None;
                machine.change(task, attempt, |seat| (seat.held, seat.dumped) = (false, false));
                if r.when == Hold::WhenDue {
                    let done = r.checkpoints.pop_front().unwrap_or_default();
                    events.push(WorkEvent::Checkpointed { task, attempt, done });
                }
            } else if r.hold.is_none() && r.done >= r.goal() && !r.checkpoints.is_empty() {
                match r.when {
                    Hold::WhenDue => {
                        r.hold = Some(r.cost);
                        machine
                            .change(task, attempt, |seat| (seat.held, seat.dumped) = (true, true));
                    }
                    Hold::WhenTold => {
                        let done = r.checkpoints.pop_front().unwrap_or_default();
                        events.push(WorkEvent::Due { task, attempt, done });
                    }
                }
            }
        }
        for r in &mut self.running {
            let (task, attempt) = (r.task, r.attempt);
            let done = r.hold.is_none() && r.checkpoints.is_empty() && r.done >= r.runtime;
            if done && !std::mem::replace(&mut r.finished, true) {
                r.ended.get_or_insert(self.now);
                machine.change(task, attempt, |seat| seat.held = true);
                events.push(WorkEvent::Finished { task, attempt });
            }
        }
        events
    }

    /// Passes time at the present speeds.
    fn advance(&mut self, now: Time) {
        let span = now.since(self.now);
        self.progress_by(now);
        self.machine.pass(span);
    }

    /// What the tasks do up to `now`.
    fn progress_by(&mut self, now: Time) {
        let span = now.since(self.now);
        self.now += span;
        if span == Span::ZERO || self.machine.is_frozen() {
            return;
        }
        for r in self.running.iter_mut().filter(|r| !r.finished) {
            // It goes on at the end of its hold, whenever that is looked at.
            let held = r.hold.unwrap_or_default().min(span);
            if let Some(left) = &mut r.hold {
                *left = left.saturating_sub(span);
            }
            let free = span.saturating_sub(held);
            let at = (r.task, r.attempt);
            let seat = self.machine.seats().iter().find(|s| (s.task, s.attempt) == at);
            let (Some(seat), true) = (seat, r.hold.unwrap_or_default() == Span::ZERO) else {
                continue;
            };
            let speed = self.machine.speed(&Seat { held: false, ..*seat });
            let missing = r.runtime.saturating_sub(r.done);
            let worked = free.part(speed);
            if worked >= missing {
                let needed = missing.at_speed(speed).unwrap_or_default();
                r.ended.get_or_insert(self.now - free.saturating_sub(needed));
            }
            r.done = (r.done + worked).min(r.runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CreditSpec;

    fn work(task: u32, secs: u64, checkpoints: &[u32]) -> Work {
        Work {
            task: TaskId::new(task),
            attempt: Attempt::new(1),
            memory: Bytes::new(10),
            runtime: Span::from_secs(secs),
            done: Ppm::ZERO,
            mode: Mode::Burst,
            cpu: None,
            tier: Tier::Foreground,
            checkpoints: checkpoints.iter().map(|&ppm| Ppm::new(ppm)).collect(),
            checkpoint_cost: Span::from_secs(10),
            hold: Hold::WhenDue,
        }
    }

    fn run(vm: &mut Model, until: Time) -> Vec<(u64, WorkEvent)> {
        let mut all = Vec::new();
        while let Some(at) = vm.next_at().filter(|&at| at <= until) {
            all.extend(vm.step(at).into_iter().map(|e| (at.as_micros() / 1_000_000, e)));
        }
        all
    }

    fn regular() -> Model {
        Model::new(Time::ZERO, MachineSpec { vcpus: 2, memory: Bytes::new(100), credits: None })
    }

    #[test]
    fn a_task_takes_its_time_and_its_checkpoints() {
        let mut vm = regular();
        vm.start(Time::ZERO, &work(1, 100, &[250_000, 500_000])).expect("room");
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        let events = run(&mut vm, Time::from_secs(1_000));
        assert_eq!(
            events,
            [
                (35, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(250_000) }),
                (70, WorkEvent::Checkpointed { task, attempt, done: Ppm::new(500_000) }),
                (120, WorkEvent::Finished { task, attempt }),
            ]
        );
        assert!(
            vm.progress(task, attempt).is_some_and(|p| p.finished.is_some() && p.done == p.runtime)
        );
        assert!(vm.stop(Time::from_secs(1_000), task, attempt).is_some());
        assert!(vm.machine().seats().is_empty());
    }

    /// 36 credits an hour are .6 a minute, and a vCPU that is used takes 1 a minute: 10 + 3.6 - 6
    /// after a task of 300 s and its checkpoint of 60 s. What has finished uses nothing.
    #[test]
    fn a_checkpoint_uses_the_processor() {
        let credits = CreditSpec {
            baseline: Ppm::new(200_000),
            earned_per_hour: Credits::whole(36),
            initial: Credits::whole(10),
            cap: Credits::whole(100),
        };
        let spec = MachineSpec { vcpus: 2, memory: Bytes::new(100), credits: Some(credits) };
        let minute = Span::from_secs(60);
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        let finished = WorkEvent::Finished { task, attempt };
        let mut due = Model::new(Time::ZERO, spec.clone());
        due.start(Time::ZERO, &Work { checkpoint_cost: minute, ..work(1, 300, &[500_000]) })
            .expect("room");
        assert_eq!(run(&mut due, Time::from_secs(400)).last(), Some(&(360, finished)));
        // As a worker has it.
        let mut told = Model::new(Time::ZERO, spec);
        told.start(Time::ZERO, &Work { hold: Hold::WhenTold, ..work(1, 300, &[]) }).expect("room");
        told.hold(Time::from_secs(100), task, attempt, minute);
        assert_eq!(run(&mut told, Time::from_secs(400)).last(), Some(&(360, finished)));
        for mut vm in [due, told] {
            let tenths =
                |vm: &Model| vm.machine().credits().map(|c| c.as_vcpu_micros() / 6_000_000);
            assert_eq!(tenths(&vm), Some(76));
            vm.pass(Time::from_secs(960));
            assert_eq!(tenths(&vm), Some(136));
        }
    }

    #[test]
    fn a_task_stands_still_when_it_is_told_to() {
        let mut vm = regular();
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        let told = Work { hold: Hold::WhenTold, ..work(1, 100, &[250_000]) };
        vm.start(Time::ZERO, &told).expect("room");
        let due = WorkEvent::Due { task, attempt, done: Ppm::new(250_000) };
        assert_eq!(run(&mut vm, Time::from_secs(30)), [(25, due)]);
        vm.hold(Time::from_secs(30), task, attempt, Span::from_secs(10));
        vm.step(Time::from_secs(35));
        let at = |vm: &Model| vm.progress(task, attempt).map(|p| (p.done, p.hold));
        assert_eq!(at(&vm), Some((Span::from_secs(30), Some(Span::from_secs(5)))));
        let time_to = |done| vm.time_to(task, attempt, Span::from_secs(done));
        assert_eq!((time_to(30), time_to(40)), (Some(Span::ZERO), Some(Span::from_secs(15))));
        let finished = WorkEvent::Finished { task, attempt };
        assert_eq!(run(&mut vm, Time::from_secs(110)), [(110, finished)]);
        let finished_at = vm.progress(task, attempt).and_then(|p| p.finished);
        assert_eq!(finished_at, Some(Time::from_secs(110)));
        // It should have stood still once more: it finishes that much later.
        vm.hold(Time::from_secs(112), task, attempt, Span::from_secs(10));
        assert_eq!(run(&mut vm, Time::from_secs(200)), [(122, finished)]);
        assert_eq!(run(&mut vm, Time::from_secs(300)), []);
        // A hold that came to nothing.
        vm.hold(Time::from_secs(300), task, attempt, Span::from_secs(10));
        vm.release(Time::from_secs(301), task, attempt);
        assert_eq!(run(&mut vm, Time::from_secs(400)), [(301, finished)]);
    }

    #[test]
    fn a_late_start_is_promised_what_it_missed() {
        let mut vm = regular();
        let (task, attempt) = (TaskId::new(1), Attempt::new(1));
        vm.start(Time::from_secs(7), &work(1, 100, &[])).expect("room");
        vm.head_start(task, attempt, Span::from_secs(7));
        let finished = WorkEvent::Finished { task, attempt };
        assert_eq!(run(&mut vm, Time::from_secs(200)), [(100, finished)]);
    }

    #[test]
    fn nothing_moves_while_hibernated() {
        let mut vm = regular();
        vm.start(Time::ZERO, &work(1, 100, &[])).expect("room");
        vm.freeze(Time::from_secs(40));
        assert_eq!(vm.next_at(), None);
        vm.thaw(Time::from_secs(1_000));
        assert_eq!(vm.next_at(), Some(Time::from_secs(1_060)));
        assert_eq!(
            vm.stop(Time::from_secs(1_010), TaskId::new(1), Attempt::new(1)),
            Some(Ppm::new(500_000))
        );
        assert_eq!(vm.next_at(), None);
    }

    #[test]
    fn a_task_taken_over_goes_on_from_what_was_kept() {
        let mut vm = regular();
        vm.start(
            Time::ZERO,
            &Work { done: Ppm::new(500_000), ..work(1, 100, &[250_000, 500_000, 750_000]) },
        )
        .expect("room");
        let at: Vec<_> = run(&mut vm, Time::from_secs(1_000)).iter().map(|e| e.0).collect();
        assert_eq!(at, [35, 60]);
    }
}
