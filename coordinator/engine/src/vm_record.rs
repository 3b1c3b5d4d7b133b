//! The engine's record of a VM, beside the provider's.

use std::collections::BTreeSet;

use dormouse_cloud::{BurstableTerms, InstanceType};
use dormouse_model::TaskStart;
use dormouse_units::{Bytes, Seats, TaskId, Time};
use thin_vec::ThinVec;

use crate::seating::VmSeating;

/// Record of a VM beside its provider's: whether it has been created and booted, its seats, and the starts that wait
/// for its resume.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmRecord {
    is_made: bool,
    boot_is_over: bool,
    /// Time at which the current hibernation or resume was requested.
    asked: Time,
    hibernates_once_booted: bool,
    freezes_once_kept: bool,
    /// Seats of the tasks sent to the VM that haven't ended.
    seating: VmSeating,
    two_tier: bool,
    memory: Bytes,
    burstable: Option<BurstableTerms>,
    /// Starts of tasks that arrived while the VM hibernates or is about to; they are sent when it resumes.
    held: ThinVec<TaskStart>,
    usage: VmUse,
}

/// CPU time that a VM was promised and received, in real microseconds; zeros in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmUse {
    /// CPU time promised to the VM, in real microseconds.
    pub real_promised_us: u64,
    /// CPU time that the VM received, in real microseconds.
    pub real_received_us: u64,
}

impl VmRecord {
    /// Makes the record of a launched VM. With two tiers its vCPUs have a background seat too, and it runs parallel
    /// jobs.
    pub(crate) fn launched_as(of: &InstanceType, two_tier: bool) -> Self {
        Self {
            seating: VmSeating::new(of.vcpus),
            two_tier,
            memory: of.memory,
            burstable: of.burstable,
            ..Self::default()
        }
    }

    /// Records that the host has created the VM.
    pub(crate) const fn mark_made(&mut self) {
        self.is_made = true;
    }

    /// Returns whether the host has created the VM.
    pub(crate) const fn is_made(&self) -> bool {
        self.is_made
    }

    /// Records that the VM's boot time is over.
    pub(crate) const fn boot_is_over(&mut self) {
        self.boot_is_over = true;
    }

    /// Returns whether tasks can run on the VM: its host has created it, and it has booted.
    pub(crate) const fn has_booted(&self) -> bool {
        self.is_made && self.boot_is_over
    }

    /// Sets whether the VM hibernates as soon as it has booted.
    pub(crate) const fn hibernate_once_booted(&mut self, whether: bool) {
        self.hibernates_once_booted = whether;
    }

    /// Returns whether the VM hibernates as soon as it has booted, and clears that.
    pub(crate) const fn take_hibernates_once_booted(&mut self) -> bool {
        std::mem::replace(&mut self.hibernates_once_booted, false)
    }

    /// Records that a hibernation or a resume is requested now.
    pub(crate) const fn note_asked(&mut self, now: Time) {
        self.asked = now;
    }

    /// Returns the time at which the current hibernation or resume was requested.
    pub(crate) const fn asked_at(&self) -> Time {
        self.asked
    }

    /// Sets whether the VM will be commanded to freeze once the checkpoints of its tasks are stored.
    pub(crate) const fn freeze_once_kept(&mut self, whether: bool) {
        self.freezes_once_kept = whether;
    }

    /// Returns whether the VM will be commanded to freeze once the checkpoints of its tasks are stored.
    pub(crate) const fn freezes_once_kept(&self) -> bool {
        self.freezes_once_kept
    }

    /// Returns which tasks have which seats (vCPU and tier) on the VM.
    pub(crate) const fn seating(&self) -> &VmSeating {
        &self.seating
    }

    /// Gives a task these seats (a vCPU and a tier each) on the VM.
    pub(crate) fn seat_task(&mut self, task: TaskId, seats: &Seats) {
        self.seating.take_seats(task, seats);
    }

    /// Frees these seats (a vCPU and a tier each) of the VM.
    pub(crate) fn leave_seats(&mut self, seats: &Seats) {
        self.seating.leave_seats(seats);
    }

    /// Returns whether the VM's vCPUs have a background seat too, and it runs parallel jobs.
    pub(crate) const fn is_two_tier(&self) -> bool {
        self.two_tier
    }

    /// Returns the memory of the VM's type.
    pub(crate) const fn memory(&self) -> Bytes {
        self.memory
    }

    /// Returns how the VM earns credits; `None`: its type isn't burstable.
    pub(crate) const fn burstable(&self) -> Option<BurstableTerms> {
        self.burstable
    }

    /// Holds the start of a task until the VM resumes.
    pub(crate) fn hold_start(&mut self, start: TaskStart) {
        self.held.push(start);
    }

    /// Takes the starts that waited for the VM's resume.
    pub(crate) fn take_held(&mut self) -> ThinVec<TaskStart> {
        std::mem::take(&mut self.held)
    }

    /// Drops the start of a task that waits for the VM's resume; false if no start of the task waits.
    pub(crate) fn withdraw_start(&mut self, task: TaskId) -> bool {
        let place = self.held.iter().position(|start| start.task == task);
        place.map(|place| self.held.remove(place)).is_some()
    }

    /// Records the CPU time that the VM was promised and received.
    pub(crate) const fn record_usage(&mut self, usage: VmUse) {
        self.usage = usage;
    }

    /// Returns the CPU time that the VM was promised and received.
    pub(crate) const fn usage(&self) -> VmUse {
        self.usage
    }

    /// Ends the VM; returns the tasks that had a seat on it.
    pub(crate) fn end_vm(&mut self) -> BTreeSet<TaskId> {
        self.held.clear();
        self.seating.clear()
    }
}
