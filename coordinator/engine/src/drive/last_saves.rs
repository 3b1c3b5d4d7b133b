//! Programs on modelled machines that save their work at an interruption notice, as programs on real machines do: each
//! computes on until it has had the time to save. What it computes meanwhile is in no checkpoint, and requests to it
//! are delayed until then.

use std::collections::BTreeMap;

use dormouse_units::{Attempt, HostId, Ppm, TaskId, Time, VmId};

/// A request to a program that saves its work at an interruption notice: for a checkpoint or for a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveRequest {
    /// The program's work is to be saved in a checkpoint; the program continues afterwards.
    Checkpoint,
    /// The program is to stop, with its work saved in a checkpoint.
    Stop,
}

/// Attempt at a task on a VM, with the VM's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AttemptPlace {
    pub(super) host: HostId,
    pub(super) vm: VmId,
    pub(super) task: TaskId,
    pub(super) attempt: Attempt,
}

#[derive(Debug)]
struct LastSave {
    place: AttemptPlace,
    /// Time at which the program counts as having saved its work.
    until: Time,
    /// Part of the attempt's work that was done when the interruption notice came.
    done: Ppm,
    put_off: Option<SaveRequest>,
}

/// Saves that programs make after interruption notices of their VMs, in virtual time. Requests to a program that is
/// saving are delayed until it has saved.
#[derive(Debug, Default)]
pub(super) struct LastSaves {
    all: BTreeMap<(VmId, TaskId), LastSave>,
}

impl LastSaves {
    /// Begins the save of a program that was given notice with `done` of its work done; it has saved by `until`, when
    /// its checkpoint is taken.
    pub(super) fn begin_save(&mut self, place: AttemptPlace, until: Time, done: Ppm) {
        let put_off = Some(SaveRequest::Checkpoint);
        self.all.insert((place.vm, place.task), LastSave { place, until, done, put_off });
    }

    /// Delays a request (for a checkpoint or a stop) to a program that is still saving, and returns whether it was delayed. A stop
    /// replaces a delayed checkpoint, as it saves the work too.
    pub(super) fn put_off(&mut self, now: Time, place: AttemptPlace, request: SaveRequest) -> bool {
        let save = self.all.get_mut(&(place.vm, place.task));
        let Some(save) = save.filter(|it| it.place.attempt == place.attempt && now < it.until)
        else {
            return false;
        };
        if save.put_off != Some(SaveRequest::Stop) {
            save.put_off = Some(request);
        }
        true
    }

    /// Returns the part of an attempt's work that its program saved at a notice; `None`: it hasn't saved.
    pub(super) fn saved_work(&self, vm: VmId, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        let save = self.all.get(&(vm, task)).filter(|it| it.place.attempt == attempt)?;
        Some(save.done)
    }

    /// Returns the time at which the earliest delayed checkpoint or stop is due; `None` if none is delayed.
    pub(super) fn next_at(&self) -> Option<Time> {
        let pending = self.all.values().filter(|it| it.put_off.is_some());
        pending.map(|it| it.until).min()
    }

    /// Removes and returns one of the delayed checkpoints or stops that are due by now.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(AttemptPlace, SaveRequest)> {
        let mut due = self.all.values_mut().filter(|it| it.until <= now);
        due.find_map(|it| Some((it.place, it.put_off.take()?)))
    }

    /// Forgets the saves of an attempt that ended on a VM.
    pub(super) fn attempt_ended(&mut self, vm: VmId, task: TaskId) {
        self.all.remove(&(vm, task));
    }

    /// Forgets all saves on a VM that is gone.
    pub(super) fn vm_gone(&mut self, vm: VmId) {
        self.all.retain(|(on, _), _| *on != vm);
    }
}
