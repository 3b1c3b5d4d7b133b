//! The vCPUs of a VM: who has which of their two slots.

use dormouse_units::{Cpus, Ppm, Tier};

use crate::SeatError;

/// A process in a slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat {
    /// Its task's place in the model.
    pub(crate) slot: u32,
    /// What of the vCPU it uses of what it gets.
    pub(crate) usage: Ppm,
    /// It has finished: its vCPU is its neighbour's alone.
    pub(crate) is_idle: bool,
}

/// A vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processor {
    seats: [Option<Seat>; 2],
    /// The share of a real processor that it has.
    pub(crate) supply: Ppm,
}

impl Processor {
    /// Who uses the slot of this tier.
    pub(crate) fn user(&self, tier: Tier) -> Option<&Seat> {
        self.seats[tier as usize].as_ref().filter(|seat| !seat.is_idle)
    }

    /// Puts somebody into a slot, or nobody; the slot in the model of who uses the other.
    pub(crate) fn put(&mut self, tier: Tier, seat: Option<Seat>) -> Option<u32> {
        self.seats[tier as usize] = seat;
        self.user(other(tier)).map(|seat| seat.slot)
    }
}

const fn other(tier: Tier) -> Tier {
    match tier {
        Tier::Foreground => Tier::Background,
        Tier::Background => Tier::Foreground,
    }
}

/// All of a VM's.
#[derive(Clone, Debug)]
pub(crate) struct Processors {
    all: Vec<Processor>,
    /// How many have less than a real processor.
    short: usize,
}

impl Processors {
    pub(crate) fn new(vcpus: u32) -> Self {
        let one = Processor { seats: [None; 2], supply: Ppm::ONE };
        Self { all: vec![one; vcpus as usize], short: 0 }
    }

    /// The processor of this number, of which somebody has a seat.
    pub(crate) fn at(&self, cpu: u32) -> &Processor {
        &self.all[cpu as usize]
    }

    /// As [`Self::at`], to change.
    pub(crate) fn at_mut(&mut self, cpu: u32) -> &mut Processor {
        &mut self.all[cpu as usize]
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
    pub(crate) fn supply(&self, on: &[u32]) -> Ppm {
        if self.short == 0 {
            return Ppm::ONE;
        }
        on.iter().map(|&cpu| self.at(cpu).supply).min().unwrap_or(Ppm::ONE)
    }

    /// Whether the background of any of these is used.
    pub(crate) fn have_background(&self, on: &[u32]) -> bool {
        on.iter().any(|&cpu| self.at(cpu).user(Tier::Background).is_some())
    }

    /// Whether the task of slot `own` may have the slots of this tier on these vCPUs: what it has
    /// there itself is free.
    ///
    /// # Errors
    ///
    /// The first that it can't have.
    pub(crate) fn free(&self, on: &[u32], tier: Tier, own: Option<u32>) -> Result<(), SeatError> {
        let mut are_sorted = true;
        for (n, &cpu) in on.iter().enumerate() {
            let is_free = self.all.get(cpu as usize).is_some_and(|processor| {
                processor.seats[tier as usize].is_none_or(|seat| Some(seat.slot) == own)
            });
            are_sorted &= n == 0 || on[n - 1] < cpu;
            if !is_free || !are_sorted && on[..n].contains(&cpu) {
                return Err(SeatError::Taken(cpu));
            }
        }
        Ok(())
    }

    /// The seats that a new task may have: those it names or, of one process, the first that is
    /// free where the one that it names is not (it may still be left by another).
    ///
    /// # Errors
    ///
    /// They are not free, or none is.
    pub(crate) fn seats(&self, on: &Cpus, tier: Tier) -> Result<Cpus, SeatError> {
        match self.free(on, tier, None) {
            Ok(()) if !on.is_empty() => Ok(on.clone()),
            Err(taken) if on.len() > 1 => Err(taken),
            _ => {
                let is_free = |cpu: &u32| self.free(&[*cpu], tier, None).is_ok();
                let vcpus = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
                Ok([(0..vcpus).find(is_free).ok_or(SeatError::NoCpu(vcpus))?].into())
            }
        }
    }
}
