//! The modelled backend of a VM: tasks progress exactly at the speeds they should.

use dormouse_units::{Attempt, Bytes, Credits, Ppm, Span, TaskId, Time};

use crate::{Machine, MachineSpec, Mode, SeatError, Tier};

/// A task's work on a modelled VM.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task.
    pub task: TaskId,
    /// Which life of it.
    pub attempt: Attempt,
    /// Memory it needs.
    pub memory: Bytes,
    /// Time the whole of it takes on this VM at full speed.
    pub runtime: Span,
    /// What part of it is done before.
    pub done: Ppm,
    /// Burst or baseline.
    pub mode: Mode,
    /// At which parts of the work it is checkpointed, ascending.
    pub checkpoints: Vec<Ppm>,
    /// How long it stands still for each.
    pub checkpoint_cost: Span,
}

/// Something that happens on a modelled VM by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkEvent {
    /// A task has done its work.
    Finished {
        /// Which.
        task: TaskId,
        /// Which life of it.
        attempt: Attempt,
    },
    /// A checkpoint is complete.
    Checkpointed {
        /// Which task.
        task: TaskId,
        /// Which life of it.
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
    /// Standing still for a checkpoint for this much longer.
    hold: Option<Span>,
}

impl Running {
    /// Where the next thing happens, in work done.
    fn goal(&self) -> Span {
        self.checkpoints.front().map_or(self.runtime, |&due| self.runtime.part(due))
    }
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
    pub fn start(&mut self, now: Time, work: &Work) -> Result<(), SeatError> {
        self.advance(now);
        self.machine.seat(work.task, work.attempt, work.memory, work.mode, Tier::Foreground)?;
        self.running.push(Running {
            task: work.task,
            attempt: work.attempt,
            runtime: work.runtime,
            done: work.runtime.part(work.done),
            checkpoints: work.checkpoints.iter().copied().filter(|&due| due > work.done).collect(),
            cost: work.checkpoint_cost,
            hold: None,
        });
        Ok(())
    }

    /// A task is taken off; what of its work is done, if it was there.
    pub fn stop(&mut self, now: Time, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        self.advance(now);
        self.machine.leave(task, attempt)?;
        let place = self.running.iter().position(|r| r.task == task && r.attempt == attempt)?;
        let gone = self.running.remove(place);
        Some(gone.done.fraction_of(gone.runtime))
    }

    /// A task changes between burst and baseline.
    pub fn set_mode(&mut self, now: Time, task: TaskId, attempt: Attempt, mode: Mode) {
        self.advance(now);
        self.machine.change(task, attempt, |seat| seat.mode = mode);
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
        if r.hold.is_some() {
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
            if r.hold == Some(Span::ZERO) {
                r.hold = None;
                machine.change(r.task, r.attempt, |seat| seat.held = false);
                let done = r.checkpoints.pop_front().unwrap_or_default();
                events.push(WorkEvent::Checkpointed { task: r.task, attempt: r.attempt, done });
            } else if r.hold.is_none() && r.done >= r.goal() && !r.checkpoints.is_empty() {
                r.hold = Some(r.cost);
                machine.change(r.task, r.attempt, |seat| seat.held = true);
            }
        }
        self.running.retain(|r| {
            let finished = r.hold.is_none() && r.checkpoints.is_empty() && r.done >= r.runtime;
            if finished {
                machine.leave(r.task, r.attempt);
                events.push(WorkEvent::Finished { task: r.task, attempt: r.attempt });
            }
            !finished
        });
        events
    }

    /// Passes time at the present speeds.
    fn advance(&mut self, now: Time) {
        let span = now.since(self.now);
        if span == Span::ZERO {
            return;
        }
        self.now = now;
        if self.machine.is_frozen() {
            return;
        }
        for r in &mut self.running {
            if let Some(left) = &mut r.hold {
                *left = left.saturating_sub(span);
            } else if let Some(seat) =
                self.machine.seats().iter().find(|s| s.task == r.task && s.attempt == r.attempt)
            {
                r.done = (r.done + span.part(self.machine.speed(seat))).min(r.runtime);
            }
        }
        self.machine.pass(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(task: u32, secs: u64, checkpoints: &[u32]) -> Work {
        Work {
            task: TaskId::new(task),
            attempt: Attempt::new(1),
            memory: Bytes::new(10),
            runtime: Span::from_secs(secs),
            done: Ppm::ZERO,
            mode: Mode::Burst,
            checkpoints: checkpoints.iter().map(|&ppm| Ppm::new(ppm)).collect(),
            checkpoint_cost: Span::from_secs(10),
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
        assert!(vm.machine().seats().is_empty());
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
