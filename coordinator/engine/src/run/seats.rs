//! The states of tasks, and the seats that they take and leave.

use dormouse_units::{Cpus, Seats, TaskId, Tier};

use super::Run;
use crate::tasks::{TaskRecord, TaskState};

impl Run {
    /// Sets the state of a task; frees the task's seats (vCPU and tier) if it leaves its VM.
    pub(super) fn set_state(&mut self, id: TaskId, state: TaskState) {
        let Some(left) = self.tasks.set_state(id, state) else { return };
        if let Some(vm) = self.vms.get_mut(left.vm) {
            vm.leave_seats(&left);
        }
    }

    /// Sends a waiting task to a VM and gives it free seats there (each a vCPU and a tier).
    pub(super) fn seat_task(&mut self, id: TaskId, seats: Seats) {
        self.tasks.set_state(id, TaskState::Sent(seats.vm));
        if let Some(vm) = self.vms.get_mut(seats.vm) {
            vm.seat_task(id, &seats);
        }
        if let Some(record) = self.tasks.get_mut(id) {
            record.seats = Some(seats);
        }
    }

    /// Moves a task on its VM to other seats: to this tier of these vCPUs.
    pub(super) fn reseat_task(&mut self, id: TaskId, tier: Tier, cpus: Cpus) {
        let Some(record) = self.tasks.get_mut(id) else { return };
        let Some(old) = record.seats.take() else { return };
        let new = Seats { vm: old.vm, tier, cpus };
        if let Some(vm) = self.vms.get_mut(old.vm) {
            vm.leave_seats(&old);
            vm.seat_task(id, &new);
        }
        record.seats = Some(new);
    }

    pub(super) fn task_mut(&mut self, id: TaskId) -> Option<&mut TaskRecord> {
        self.tasks.get_mut(id)
    }
}
