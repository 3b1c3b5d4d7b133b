//! What the engine remembers of a VM beside what the provider does.

use std::collections::BTreeSet;

use dormouse_cloud::{BurstableTerms, InstanceType};
use dormouse_model::TaskStart;
use dormouse_units::{Bytes, Seats, TaskId, Time};
use thin_vec::ThinVec;

use crate::seating::VmSeating;

/// The state of a VM: how far it has come, who sits where, and what waits for it.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmRecord {
    is_made: bool,
    boot_is_over: bool,
    /// The time at which the VM's current hibernation or resume was asked for.
    asked: Time,
    hibernates_once_booted: bool,
    freezes_once_kept: bool,
    /// The tasks sent to it that haven't ended.
    seating: VmSeating,
    two_tier: bool,
    memory: Bytes,
    burstable: Option<BurstableTerms>,
    /// Tasks sent to it between a hibernation's asking and its effect: they start at the resume.
    held: ThinVec<TaskStart>,
    usage: VmUse,
}

/// CPU time a VM was promised and got, real microseconds; zeros in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmUse {
    /// CPU time that it should have had.
    pub real_promised_us: u64,
    /// CPU time that it has had.
    pub real_received_us: u64,
}

impl VmRecord {
    /// A VM of this type, whose vCPUs may have a background seat, too, and which runs parallel jobs then.
    pub(crate) fn launched_as(of: &InstanceType, two_tier: bool) -> Self {
        Self {
            seating: VmSeating::new(of.vcpus),
            two_tier,
            memory: of.memory,
            burstable: of.burstable,
            ..Self::default()
        }
    }

    /// Notes that the host of the VM has made it.
    pub(crate) const fn mark_made(&mut self) {
        self.is_made = true;
    }

    /// Whether the host of the VM has made it.
    pub(crate) const fn is_made(&self) -> bool {
        self.is_made
    }

    /// Notes that the time is over for which the VM boots.
    pub(crate) const fn boot_is_over(&mut self) {
        self.boot_is_over = true;
    }

    /// Whether tasks can run there: its host has made it, and it has booted.
    pub(crate) const fn has_booted(&self) -> bool {
        self.is_made && self.boot_is_over
    }

    /// Notes whether the VM is to hibernate as soon as it has booted.
    pub(crate) const fn hibernate_once_booted(&mut self, whether: bool) {
        self.hibernates_once_booted = whether;
    }

    /// Whether the VM hibernates as soon as it has booted. It will not a second time.
    pub(crate) const fn take_hibernates_once_booted(&mut self) -> bool {
        std::mem::replace(&mut self.hibernates_once_booted, false)
    }

    /// Notes that a hibernation or a resume is asked for now.
    pub(crate) const fn note_asked(&mut self, now: Time) {
        self.asked = now;
    }

    /// The time at which the VM's current hibernation or resume was asked for.
    pub(crate) const fn asked_at(&self) -> Time {
        self.asked
    }

    /// Notes whether the VM is yet to be told to freeze, once the checkpoints are kept that it takes.
    pub(crate) const fn freeze_once_kept(&mut self, whether: bool) {
        self.freezes_once_kept = whether;
    }

    /// Whether the VM is yet to be told to freeze, once its checkpoints are kept.
    pub(crate) const fn freezes_once_kept(&self) -> bool {
        self.freezes_once_kept
    }

    /// Who has which of its seats.
    pub(crate) const fn seating(&self) -> &VmSeating {
        &self.seating
    }

    /// A task takes its seats.
    pub(crate) fn seat_task(&mut self, task: TaskId, seats: &Seats) {
        self.seating.take_seats(task, seats);
    }

    /// These seats are left.
    pub(crate) fn leave_seats(&mut self, seats: &Seats) {
        self.seating.leave_seats(seats);
    }

    /// Whether its vCPUs have a background seat, too, and it runs parallel jobs.
    pub(crate) const fn is_two_tier(&self) -> bool {
        self.two_tier
    }

    /// Memory of the VM's type.
    pub(crate) const fn memory(&self) -> Bytes {
        self.memory
    }

    /// How VMs of its type earn credits, if they do.
    pub(crate) const fn burstable(&self) -> Option<BurstableTerms> {
        self.burstable
    }

    /// Keeps the start of a task until the VM resumes.
    pub(crate) fn hold_start(&mut self, start: TaskStart) {
        self.held.push(start);
    }

    /// The starts that waited for the VM's resume; none is left.
    pub(crate) fn take_held(&mut self) -> ThinVec<TaskStart> {
        std::mem::take(&mut self.held)
    }

    /// Takes back the start of a task that waits for the resume; false if it has none.
    pub(crate) fn withdraw_start(&mut self, task: TaskId) -> bool {
        let place = self.held.iter().position(|start| start.task == task);
        place.map(|place| self.held.remove(place)).is_some()
    }

    /// Records what the VM was promised and got of the processor.
    pub(crate) const fn record_usage(&mut self, usage: VmUse) {
        self.usage = usage;
    }

    /// What the VM was promised and got of the processor.
    pub(crate) const fn usage(&self) -> VmUse {
        self.usage
    }

    /// Ends the VM; the tasks that had a seat there.
    pub(crate) fn end_vm(&mut self) -> BTreeSet<TaskId> {
        self.held.clear();
        self.seating.clear()
    }
}
