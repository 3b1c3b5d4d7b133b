//! The vCPUs of a VM: who has which of their two slots.

use dormouse_units::{Cpus, Ppm, Tier, find_repeated};

use crate::SeatError;

/// A process in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessSeat {
    /// Place in the model of the task that sits here.
    pub(crate) slot: u32,
    /// What of the vCPU it uses of what it gets.
    pub(crate) usage: Ppm,
    /// The task has finished: its vCPU is its neighbour's alone.
    pub(crate) is_idle: bool,
}

/// One vCPU with its two seats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelProcessor {
    seats: [Option<ProcessSeat>; 2],
    /// The share of a real processor that it has.
    pub(crate) supply: Ppm,
}

impl ModelProcessor {
    /// Who uses the slot of this tier.
    pub(crate) fn seat_user(&self, tier: Tier) -> Option<&ProcessSeat> {
        self.seats[tier as usize].as_ref().filter(|seat| !seat.is_idle)
    }
}

const fn other_tier(tier: Tier) -> Tier {
    match tier {
        Tier::Foreground => Tier::Background,
        Tier::Background => Tier::Foreground,
    }
}

/// All of a VM's.
#[derive(Clone, Debug)]
pub(crate) struct ModelProcessors {
    all: Vec<ModelProcessor>,
    /// How many have less than a real processor.
    short: usize,
    /// How many have somebody in the background.
    shared: usize,
}

impl ModelProcessors {
    pub(crate) fn new(vcpus: u32) -> Self {
        let one = ModelProcessor { seats: [None; 2], supply: Ppm::ONE };
        Self { all: vec![one; vcpus as usize], short: 0, shared: 0 }
    }

    /// The processor of this number, of which somebody has a seat.
    pub(crate) fn processor_at(&self, cpu: u32) -> &ModelProcessor {
        &self.all[cpu as usize]
    }

    /// Puts a task into the slots of this tier on these vCPUs, which it has or nobody, `seat(n)` on
    /// the n-th; or nobody, in its place;
    /// `beside` gets the slots in the model of those who use the other tier where this one was used
    /// or is now.
    pub(crate) fn put_task(
        &mut self,
        on: &[u32],
        tier: Tier,
        seat: impl Fn(usize) -> Option<ProcessSeat>,
        mut beside: impl FnMut(u32),
    ) {
        if tier == Tier::Foreground && self.shared == 0 {
            // Nobody is beside.
            for (n, &cpu) in on.iter().enumerate() {
                self.all[cpu as usize].seats[tier as usize] = seat(n);
            }
            return;
        }
        // All seats of a task are alike in it.
        let had = on.first().and_then(|&cpu| self.processor_at(cpu).seats[tier as usize]);
        let (has, other) = (on.first().and_then(|_| seat(0)), other_tier(tier));
        let is_used = [had, has].iter().flatten().any(|seat| !seat.is_idle);
        for (n, &cpu) in on.iter().enumerate() {
            let processor = &mut self.all[cpu as usize];
            processor.seats[tier as usize] = seat(n);
            if let Some(user) = processor.seat_user(other).filter(|_| is_used) {
                beside(user.slot);
            }
        }
        if tier == Tier::Background {
            let count = |seat: Option<ProcessSeat>| if seat.is_some() { on.len() } else { 0 };
            self.shared = self.shared + count(has) - count(had);
        }
    }

    /// Gives one, if there is one of this number, this share of a real processor; the slots in the
    /// model of those who sit there.
    pub(crate) fn set_supply(&mut self, cpu: u32, share: Ppm) -> impl Iterator<Item = u32> + use<> {
        let processor = self.all.get_mut(cpu as usize);
        let seats = processor.map_or([None; 2], |processor| {
            processor.supply = share;
            processor.seats
        });
        self.short = self.all.iter().filter(|processor| processor.supply < Ppm::ONE).count();
        seats.into_iter().flatten().map(|seat| seat.slot)
    }

    /// The least that any of these has of a real processor.
    pub(crate) fn least_supply(&self, on: &[u32]) -> Ppm {
        if self.short == 0 {
            return Ppm::ONE;
        }
        on.iter().map(|&cpu| self.processor_at(cpu).supply).min().unwrap_or(Ppm::ONE)
    }

    /// Whether the background of any of these is used.
    pub(crate) fn have_background(&self, on: &[u32]) -> bool {
        self.shared > 0
            && on.iter().any(|&cpu| self.processor_at(cpu).seat_user(Tier::Background).is_some())
    }

    /// Whether the task of slot `own` may have the slots of this tier on these vCPUs: what it has
    /// there itself is free.
    ///
    /// # Errors
    ///
    /// The first that it can't have.
    pub(crate) fn check_free(
        &self,
        on: &[u32],
        tier: Tier,
        own: Option<u32>,
    ) -> Result<(), SeatError> {
        let is_taken = |cpu: &u32| {
            self.all.get(*cpu as usize).is_none_or(|processor| {
                processor.seats[tier as usize].is_some_and(|seat| Some(seat.slot) != own)
            })
        };
        if let Some(&cpu) = on.iter().find(|cpu| is_taken(cpu)) {
            return Err(SeatError::Taken(cpu));
        }
        find_repeated(on, self.all.len()).map_or(Ok(()), |cpu| Err(SeatError::Taken(cpu)))
    }

    /// The seats that a new task may have instead of those it names: none, as it may have these,
    /// or, of one process, the first that is free where the one that it names is not (it may still be
    /// left by another).
    ///
    /// # Errors
    ///
    /// They are not free, or none is.
    pub(crate) fn instead_of(&self, on: &[u32], tier: Tier) -> Result<Option<Cpus>, SeatError> {
        match self.check_free(on, tier, None) {
            Ok(()) if !on.is_empty() => Ok(None),
            Err(taken) if on.len() > 1 => Err(taken),
            _ => {
                let is_free = |cpu: &u32| self.check_free(&[*cpu], tier, None).is_ok();
                let vcpus = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
                Ok(Some([(0..vcpus).find(is_free).ok_or(SeatError::NoCpu(vcpus))?].into()))
            }
        }
    }
}
