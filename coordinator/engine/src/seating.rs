//! Who has which seat of a VM.

use std::collections::BTreeSet;

use dormouse_units::{Cpus, Seats, TaskId, Tier, find_repeated};
use thin_vec::ThinVec;

/// The seats of one VM: of every vCPU one in the foreground, and in the background if it has two
/// tiers.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmSeating {
    vcpus: u32,
    /// Who has the seats of each vCPU; none as long as no task ever had one: most of a provider's VMs have none.
    cpus: ThinVec<[Option<TaskId>; 2]>,
}

/// Why seats can't be taken, in words that follow the task's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeatConflict(pub(crate) String);

impl VmSeating {
    pub(crate) fn new(vcpus: u32) -> Self {
        Self { vcpus, cpus: ThinVec::new() }
    }

    /// Who has each seat that is taken.
    pub(crate) fn seated_tasks(&self) -> impl Iterator<Item = TaskId> {
        self.cpus.iter().flatten().flatten().copied()
    }

    /// Who has a seat on a vCPU, in either tier.
    pub(crate) fn tasks_on(&self, vcpu: u32) -> impl Iterator<Item = TaskId> {
        self.cpus.get(vcpu as usize).into_iter().flatten().flatten().copied()
    }

    /// The first vCPU whose foreground is free.
    pub(crate) fn first_free(&self) -> Option<Cpus> {
        let is_free = |cpu: &u32| self.task_at(*cpu, Tier::Foreground).is_none();
        (0..self.vcpus).find(is_free).map(|cpu| [cpu].into())
    }

    /// Who has this seat of a vCPU.
    fn task_at(&self, cpu: u32, tier: Tier) -> Option<TaskId> {
        self.cpus.get(cpu as usize).and_then(|slots| slots[tier as usize])
    }

    /// Whether a task may have these seats. What `own` has there is free.
    ///
    /// # Errors
    ///
    /// One of them is another task's, not there, or named twice.
    pub(crate) fn check_free(
        &self,
        tier: Tier,
        cpus: &[u32],
        own: TaskId,
    ) -> Result<(), SeatConflict> {
        for &cpu in cpus {
            if cpu >= self.vcpus {
                return Err(SeatConflict(format!("vCPU {cpu} is not there")));
            }
            if let Some(other) = self.task_at(cpu, tier).filter(|other| *other != own) {
                return Err(SeatConflict(format!("vCPU {cpu} is {other}'s")));
            }
        }
        match find_repeated(cpus, self.vcpus as usize) {
            None => Ok(()),
            Some(cpu) => Err(SeatConflict(format!("vCPU {cpu} is named twice"))),
        }
    }

    /// A task takes its seats.
    pub(crate) fn take_seats(&mut self, task: TaskId, seats: &Seats) {
        self.cpus.resize(self.vcpus as usize, [None; 2]);
        self.mark_seats(seats, Some(task));
    }

    /// These seats are left.
    pub(crate) fn leave_seats(&mut self, seats: &Seats) {
        self.mark_seats(seats, None);
    }

    fn mark_seats(&mut self, seats: &Seats, who: Option<TaskId>) {
        for &cpu in seats.cpus.iter() {
            if let Some(slots) = self.cpus.get_mut(cpu as usize) {
                slots[seats.tier as usize] = who;
            }
        }
    }

    /// The VM is gone: all that had a seat.
    pub(crate) fn clear(&mut self) -> BTreeSet<TaskId> {
        let tasks = self.seated_tasks().collect();
        *self = Self::default();
        tasks
    }
}
