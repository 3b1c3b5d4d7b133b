//! Programs on modelled machines that save their work at a notice, as programs on real ones do: they compute on until
//! they have had the time to save, what they compute meanwhile is in nothing that is kept, and what is asked of them
//! is put off for so long.

use std::collections::BTreeMap;

use dormouse_units::{Attempt, HostId, Ppm, TaskId, Time, VmId};

/// What is asked of a program that saves its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaveRequest {
    /// A checkpoint, after which it runs on.
    Checkpoint,
    /// A stop that keeps its work.
    Stop,
}

/// An attempt on a VM.
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
    /// The time at which the program is taken to have saved.
    until: Time,
    /// What of its work was done at the notice.
    done: Ppm,
    put_off: Option<SaveRequest>,
}

/// The saves that programs make at the notices of their VMs.
#[derive(Debug, Default)]
pub(super) struct LastSaves {
    all: BTreeMap<(VmId, TaskId), LastSave>,
}

impl LastSaves {
    /// A program is given notice with so much of its work done, and is asked for a checkpoint once it has saved.
    pub(super) fn begin_save(&mut self, place: AttemptPlace, until: Time, done: Ppm) {
        let put_off = Some(SaveRequest::Checkpoint);
        self.all.insert((place.vm, place.task), LastSave { place, until, done, put_off });
    }

    /// Puts off what is asked of a program that is still saving; a stop keeps its work as well as a checkpoint.
    /// Whether it was put off.
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

    /// What of an attempt's work is in what its program saved, where it saved.
    pub(super) fn saved_work(&self, vm: VmId, task: TaskId, attempt: Attempt) -> Option<Ppm> {
        let save = self.all.get(&(vm, task)).filter(|it| it.place.attempt == attempt)?;
        Some(save.done)
    }

    /// The time at which the first of the requests that were put off is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        let pending = self.all.values().filter(|it| it.put_off.is_some());
        pending.map(|it| it.until).min()
    }

    /// Takes one of the requests that are due by now.
    pub(super) fn take_due(&mut self, now: Time) -> Option<(AttemptPlace, SaveRequest)> {
        let mut due = self.all.values_mut().filter(|it| it.until <= now);
        due.find_map(|it| Some((it.place, it.put_off.take()?)))
    }

    /// An attempt at a task is over on a VM.
    pub(super) fn attempt_ended(&mut self, vm: VmId, task: TaskId) {
        self.all.remove(&(vm, task));
    }

    /// A VM is gone.
    pub(super) fn vm_gone(&mut self, vm: VmId) {
        self.all.retain(|(on, _), _| *on != vm);
    }
}
