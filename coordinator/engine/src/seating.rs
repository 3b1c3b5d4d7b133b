//! Which task has which seat of a VM.

use std::collections::BTreeSet;

use dormouse_units::{Cpus, Seats, TaskId, Tier, find_repeated};
use thin_vec::ThinVec;

/// Seats of one VM: on every vCPU one in the foreground, and one in the background if the VM has two tiers.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmSeating {
    vcpus: u32,
    /// Tasks in the seats of each vCPU; empty until a task has had a seat, since most of a provider's VMs never have
    /// one.
    cpus: ThinVec<[Option<TaskId>; 2]>,
}

/// Reason why a task can't get its seats (a vCPU and a tier each), in words that follow the task's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeatConflict(pub(crate) String);

impl VmSeating {
    pub(crate) fn new(vcpus: u32) -> Self {
        Self { vcpus, cpus: ThinVec::new() }
    }

    /// Returns the task of each occupied seat (vCPU and tier) of the VM.
    pub(crate) fn seated_tasks(&self) -> impl Iterator<Item = TaskId> {
        self.cpus.iter().flatten().flatten().copied()
    }

    /// Returns the tasks with a seat on a vCPU, in either tier.
    pub(crate) fn tasks_on(&self, vcpu: u32) -> impl Iterator<Item = TaskId> {
        self.cpus.get(vcpu as usize).into_iter().flatten().flatten().copied()
    }

    /// Returns the first vCPU whose foreground is free; `None` if none is.
    pub(crate) fn first_free(&self) -> Option<Cpus> {
        let is_free = |cpu: &u32| self.task_at(*cpu, Tier::Foreground).is_none();
        (0..self.vcpus).find(is_free).map(|cpu| [cpu].into())
    }

    /// Returns the task in a seat of a vCPU; `None` if the seat is free.
    fn task_at(&self, cpu: u32, tier: Tier) -> Option<TaskId> {
        self.cpus.get(cpu as usize).and_then(|slots| slots[tier as usize])
    }

    /// Checks that a task may have the seats on the VM; seats that task `own` has on the VM count as free.
    ///
    /// # Errors
    ///
    /// A seat is another task's, doesn't exist, or is named twice.
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

    /// Gives a task these seats (a vCPU and a tier each) on the VM.
    pub(crate) fn take_seats(&mut self, task: TaskId, seats: &Seats) {
        self.cpus.resize(self.vcpus as usize, [None; 2]);
        self.mark_seats(seats, Some(task));
    }

    /// Frees the given seats (a vCPU and a tier each) of the VM.
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

    /// Empties all seats (vCPUs and tiers) of a VM that is gone; returns the tasks that had one.
    pub(crate) fn clear(&mut self) -> BTreeSet<TaskId> {
        let tasks = self.seated_tasks().collect();
        *self = Self::default();
        tasks
    }
}
