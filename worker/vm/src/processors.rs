//! The vCPUs of a VM: which task has which of their two slots.

use dormouse_units::{Cpus, Ppm, Tier, find_repeated};

use crate::SeatError;

/// A process of a modelled task in one tier of a vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessSeat {
    /// Index of the process's task among the tasks of the VM's model.
    pub(crate) slot: u32,
    /// Fraction of its share of the vCPU that the process uses.
    pub(crate) usage: Ppm,
    /// True if the task has finished, so that its neighbour has the vCPU alone.
    pub(crate) is_idle: bool,
}

/// One vCPU with its two seats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModelProcessor {
    seats: [Option<ProcessSeat>; 2],
    /// Share of a real processor that the vCPU gets.
    pub(crate) supply: Ppm,
}

impl ModelProcessor {
    /// Returns the process in the seat of tier `tier`, if it isn't idle; `None`: nothing uses the seat.
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

/// All vCPUs of a VM.
#[derive(Clone, Debug)]
pub(crate) struct ModelProcessors {
    all: Vec<ModelProcessor>,
    /// Number of vCPUs that get less than a whole real processor.
    short: usize,
    /// Number of vCPUs with a process in the background.
    shared: usize,
}

impl ModelProcessors {
    pub(crate) fn new(vcpus: u32) -> Self {
        let one = ModelProcessor { seats: [None; 2], supply: Ppm::ONE };
        Self { all: vec![one; vcpus as usize], short: 0, shared: 0 }
    }

    /// Returns vCPU number `cpu`, which must have a process.
    pub(crate) fn processor_at(&self, cpu: u32) -> &ModelProcessor {
        &self.all[cpu as usize]
    }

    /// Puts a task into the seats of tier `tier` on the vCPUs `on`, which must be free or the task's own: the n-th seat gets
    /// `seat(n)`, or is emptied if that is `None`. For each seat that was or is used, `beside` is called with the model slot of the
    /// task in the vCPU's other tier.
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

    /// Sets the share of a real processor that a vCPU has, if it exists; returns the model slots of the tasks on it.
    pub(crate) fn set_supply(&mut self, cpu: u32, share: Ppm) -> impl Iterator<Item = u32> + use<> {
        let processor = self.all.get_mut(cpu as usize);
        let seats = processor.map_or([None; 2], |processor| {
            processor.supply = share;
            processor.seats
        });
        self.short = self.all.iter().filter(|processor| processor.supply < Ppm::ONE).count();
        seats.into_iter().flatten().map(|seat| seat.slot)
    }

    /// Returns the smallest share of a real processor that one of the vCPUs `on` gets.
    pub(crate) fn least_supply(&self, on: &[u32]) -> Ppm {
        if self.short == 0 {
            return Ppm::ONE;
        }
        on.iter().map(|&cpu| self.processor_at(cpu).supply).min().unwrap_or(Ppm::ONE)
    }

    /// Returns whether a process uses the background of one of the vCPUs `on`.
    pub(crate) fn have_background(&self, on: &[u32]) -> bool {
        self.shared > 0
            && on.iter().any(|&cpu| self.processor_at(cpu).seat_user(Tier::Background).is_some())
    }

    /// Checks that the task in model slot `own` may have the seats of tier `tier` on the vCPUs `on`; the task's own seats count as
    /// free.
    ///
    /// # Errors
    ///
    /// The first seat that it can't have.
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

    /// Returns the vCPUs on which a new task gets seats instead of the named vCPUs `on`; `None`: the named seats are free. A task
    /// of one process whose seat isn't free gets the first free seat, as another task may be about to leave.
    ///
    /// # Errors
    ///
    /// The named seats of a task of several processes aren't free, or no seat is free at all.
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
