//! Who sits where on a VM and how fast each may run now.

use dormouse_units::{Attempt, Bytes, Credits, Mode, Ppm, Span, TaskId, Tier};

use crate::{Bucket, CreditSpec};

/// What a VM is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSpec {
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory.
    pub memory: Bytes,
    /// Set for burstable VMs.
    pub credits: Option<CreditSpec>,
}

/// A task on a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The task.
    pub task: TaskId,
    /// The number of this start of the task.
    pub attempt: Attempt,
    /// Memory it may use.
    pub memory: Bytes,
    /// The vCPU's index.
    pub cpu: u32,
    /// The slot.
    pub tier: Tier,
    /// Burst or baseline.
    pub mode: Mode,
    /// It stands still: it is checkpointed, or has finished.
    pub held: bool,
    /// It is checkpointed: that uses the processor in its place, as fast as it would.
    pub dumped: bool,
}

/// Why a task can't be seated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SeatError {
    /// Every vCPU's slot of that tier is taken.
    #[error("all {0} vCPUs are taken")]
    NoCpu(u32),
    /// Its memory isn't free.
    #[error("it needs {need}, {free} is free")]
    NoMemory {
        /// The memory that the task needs.
        need: Bytes,
        /// The VM's memory that no other task has.
        free: Bytes,
    },
}

/// One VM: seats, credits, frozen or not.
#[derive(Clone, Debug)]
pub struct Machine {
    spec: MachineSpec,
    seats: Vec<Seat>,
    bucket: Option<Bucket>,
    frozen: bool,
    /// Out of credits: everything runs at the baseline until a whole credit is earned.
    throttled: bool,
}

impl Machine {
    /// An empty, running VM.
    #[must_use]
    pub fn new(spec: MachineSpec) -> Self {
        let bucket = spec.credits.map(Bucket::new);
        let throttled = bucket.as_ref().is_some_and(Bucket::is_empty);
        Self { spec, seats: Vec::new(), bucket, frozen: false, throttled }
    }

    /// Its vCPUs, its memory and, if it is burstable, how it earns credits.
    #[must_use]
    pub const fn spec(&self) -> &MachineSpec {
        &self.spec
    }

    /// Who sits on it.
    #[must_use]
    pub fn seats(&self) -> &[Seat] {
        &self.seats
    }

    /// The credit balance, if burstable.
    #[must_use]
    pub fn credits(&self) -> Option<Credits> {
        self.bucket.as_ref().map(Bucket::balance)
    }

    /// Frozen by a hibernation.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Out of credits: at the baseline until a whole one is earned.
    #[must_use]
    pub const fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// Seats a task in the slot of this tier on this vCPU, or on the first where it is free.
    ///
    /// # Errors
    ///
    /// No such slot, or not enough memory; nothing has changed then.
    pub fn seat(
        &mut self,
        task: TaskId,
        attempt: Attempt,
        memory: Bytes,
        mode: Mode,
        (tier, wanted): (Tier, Option<u32>),
    ) -> Result<Seat, SeatError> {
        let taken: Bytes = self.seats.iter().map(|s| s.memory).sum();
        let free = self.spec.memory.saturating_sub(taken);
        if memory > free {
            return Err(SeatError::NoMemory { need: memory, free });
        }
        let vcpus = self.spec.vcpus;
        let is_free = |cpu: u32| !self.seats.iter().any(|s| s.cpu == cpu && s.tier == tier);
        let cpu = match wanted {
            Some(cpu) if cpu < vcpus && is_free(cpu) => cpu,
            // It may still be left by another.
            _ => (0..vcpus).find(|&cpu| is_free(cpu)).ok_or(SeatError::NoCpu(vcpus))?,
        };
        let seat = Seat { task, attempt, memory, cpu, tier, mode, held: false, dumped: false };
        self.seats.push(seat);
        Ok(seat)
    }

    /// A task leaves; its seat, if it had one.
    pub fn leave(&mut self, task: TaskId, attempt: Attempt) -> Option<Seat> {
        let place = self.seats.iter().position(|s| s.task == task && s.attempt == attempt)?;
        Some(self.seats.remove(place))
    }

    /// Changes a seat in place: its mode, tier or hold.
    pub fn change(
        &mut self,
        task: TaskId,
        attempt: Attempt,
        change: impl FnOnce(&mut Seat),
    ) -> bool {
        let seat = self.seats.iter_mut().find(|s| s.task == task && s.attempt == attempt);
        seat.map(change).is_some()
    }

    /// Swaps foreground and background on a vCPU; nothing restarts.
    pub fn swap_tiers(&mut self, cpu: u32) {
        for seat in self.seats.iter_mut().filter(|s| s.cpu == cpu) {
            seat.tier = match seat.tier {
                Tier::Foreground => Tier::Background,
                Tier::Background => Tier::Foreground,
            };
        }
    }

    /// Hibernates: nothing runs, no credits are earned.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Runs again.
    pub fn thaw(&mut self) {
        self.frozen = false;
    }

    /// What share of its vCPU a seat should get now, were its vCPU its own.
    #[must_use]
    pub fn ceiling(&self, seat: &Seat) -> Ppm {
        match &self.bucket {
            _ if self.frozen || seat.held => Ppm::ZERO,
            Some(bucket) if self.throttled || seat.mode == Mode::Baseline => bucket.spec().baseline,
            _ => Ppm::ONE,
        }
    }

    /// What share of its vCPU a seat gets now if all seats compute without pause:
    /// the foreground all it may, the background the rest.
    #[must_use]
    pub fn speed(&self, seat: &Seat) -> Ppm {
        let ceiling = self.ceiling(seat);
        if seat.tier == Tier::Foreground {
            return ceiling;
        }
        let before = self.seats.iter().find(|s| s.cpu == seat.cpu && s.tier == Tier::Foreground);
        ceiling.min(before.map_or(Ppm::ONE, |s| self.speed(s).rest()))
    }

    /// vCPUs in use now, in ppm of one: by tasks that compute and by checkpoints that are taken.
    /// A provider charges whoever uses them, and the schedulers reckon with it: the credits that
    /// they set aside for a task are for its checkpoints, too.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        let uses = |s: &Seat| match s.dumped {
            true => self.ceiling(&Seat { held: false, ..*s }),
            false => self.speed(s),
        };
        self.seats.iter().map(|s| u64::from(uses(s).get())).sum()
    }

    /// `span` passes at the present speeds.
    pub fn pass(&mut self, span: Span) {
        let used = self.in_use();
        self.with_bucket(|bucket| bucket.pass(span, used));
    }

    fn with_bucket(&mut self, pass: impl FnOnce(&mut Bucket)) {
        let Some(bucket) = self.bucket.as_mut().filter(|_| !self.frozen) else { return };
        pass(bucket);
        if bucket.is_empty() {
            self.throttled = true;
        } else if bucket.balance() >= Credits::ONE.min(bucket.spec().cap) {
            self.throttled = false;
        }
    }

    /// From now until the credits change how fast it runs: they run out, or a whole one is
    /// earned again. `None`: not at the present speeds.
    #[must_use]
    pub fn credits_turn_after(&self) -> Option<Span> {
        let bucket = self.bucket.as_ref().filter(|_| !self.frozen)?;
        if self.throttled {
            bucket.reaches_after(Credits::ONE, self.in_use())
        } else {
            bucket.empty_after(self.in_use())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burstable(initial: u64) -> Machine {
        Machine::new(MachineSpec {
            vcpus: 2,
            memory: Bytes::new(100),
            credits: Some(CreditSpec {
                baseline: Ppm::new(200_000),
                earned_per_hour: Credits::whole(36),
                initial: Credits::whole(initial),
                cap: Credits::whole(864),
            }),
        })
    }

    fn seat(vm: &mut Machine, task: u32, mode: Mode, tier: Tier) -> Result<Seat, SeatError> {
        vm.seat(TaskId::new(task), Attempt::new(1), Bytes::new(30), mode, (tier, None))
    }

    #[test]
    fn one_task_a_slot_and_memory_for_all() {
        let mut vm = burstable(1);
        assert_eq!(seat(&mut vm, 1, Mode::Burst, Tier::Foreground).map(|s| s.cpu), Ok(0));
        assert_eq!(seat(&mut vm, 2, Mode::Burst, Tier::Foreground).map(|s| s.cpu), Ok(1));
        assert_eq!(seat(&mut vm, 3, Mode::Burst, Tier::Foreground), Err(SeatError::NoCpu(2)));
        assert_eq!(seat(&mut vm, 3, Mode::Burst, Tier::Background).map(|s| s.cpu), Ok(0));
        let (need, free) = (Bytes::new(30), Bytes::new(10));
        assert_eq!(
            seat(&mut vm, 4, Mode::Burst, Tier::Background),
            Err(SeatError::NoMemory { need, free })
        );
        assert!(vm.leave(TaskId::new(1), Attempt::new(2)).is_none());
        assert!(vm.leave(TaskId::new(1), Attempt::new(1)).is_some());
        assert_eq!(seat(&mut vm, 4, Mode::Burst, Tier::Foreground).map(|s| s.cpu), Ok(0));
    }

    #[test]
    fn out_of_credits_is_the_baseline_until_a_whole_one_is_earned() {
        let mut vm = burstable(4);
        let sat = seat(&mut vm, 1, Mode::Burst, Tier::Foreground).expect("room");
        assert_eq!(vm.speed(&sat), Ppm::ONE);
        let out = vm.credits_turn_after().expect("it runs out");
        assert_eq!(out, Span::from_secs(600));
        vm.pass(out);
        assert_eq!(vm.speed(&sat), Ppm::new(200_000));
        // .6 earned a minute, .2 spent: a whole credit after 2.5 minutes.
        assert_eq!(vm.credits_turn_after(), Some(Span::from_secs(150)));
        vm.pass(Span::from_secs(149));
        assert_eq!(vm.speed(&sat), Ppm::new(200_000));
        vm.pass(Span::from_secs(1));
        assert_eq!(vm.speed(&sat), Ppm::ONE);
    }

    #[test]
    fn the_background_gets_what_the_foreground_leaves() {
        let mut vm = burstable(4);
        let front = seat(&mut vm, 1, Mode::Baseline, Tier::Foreground).expect("room");
        let back = seat(&mut vm, 2, Mode::Burst, Tier::Background).expect("room");
        assert_eq!((vm.speed(&front), vm.speed(&back)), (Ppm::new(200_000), Ppm::new(800_000)));
        vm.swap_tiers(0);
        let speeds: Vec<_> = vm.seats().iter().map(|s| vm.speed(s)).collect();
        assert_eq!(speeds, [Ppm::ZERO, Ppm::ONE]);
        vm.freeze();
        assert_eq!(vm.in_use(), 0);
    }
}
