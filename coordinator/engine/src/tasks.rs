//! Where every task is.

use std::collections::VecDeque;
use std::sync::Arc;

use dormouse_policies::batch::Submission;
use dormouse_units::{Attempt, CheckpointSeq, Ppm, Seats, TaskId, Tier, Time, VmId};

use crate::images::{Image, Images};

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Nowhere.
    #[default]
    Waiting,
    /// Sent to a VM, not heard of yet.
    Sent(VmId),
    /// Running, or frozen, on a VM.
    Running(VmId),
    /// Told to stop; not heard of yet.
    Stopping(VmId),
    /// Done and verified.
    Finished,
}

/// What is known of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskRecord {
    /// Where it is.
    pub state: TaskState,
    /// The seats that it has, in which tier.
    pub(crate) seats: Option<Seats>,
    /// The latest attempt; reports of earlier ones are of a former life.
    pub attempt: Attempt,
    /// Its complete checkpoints that it can go on from.
    pub(crate) images: Images,
    /// When that was sent to its VM.
    pub sent: Time,
    /// When it finished.
    pub finished: Option<Time>,
    /// CPU time of all attempts that have ended, real microseconds.
    pub real_cpu_us: u64,
    /// The parallel job that it is, if it is one.
    pub job: Option<Arc<Submission>>,
}

impl TaskRecord {
    /// The VM it is on.
    #[must_use]
    pub const fn vm(&self) -> Option<VmId> {
        match self.state {
            TaskState::Sent(vm) | TaskState::Running(vm) | TaskState::Stopping(vm) => Some(vm),
            TaskState::Waiting | TaskState::Finished => None,
        }
    }

    /// The checkpoint that it goes on from, and what of the work that holds.
    #[must_use]
    pub fn kept(&self) -> Option<(CheckpointSeq, Ppm)> {
        self.images.newest().map(Image::what)
    }

    /// Its present attempt has kept a checkpoint.
    pub(crate) fn keep(&mut self, seq: CheckpointSeq, done: Ppm) {
        self.images.keep(Image { seq, done, by: self.attempt });
    }

    /// The tier of its seats, if it has any.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.seats.as_ref().map(|seats| seats.tier)
    }
}

/// The tasks of a run, by id. Of a stream of jobs those that have ended, and all before them, are
/// forgotten: what is held is what is in the system.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    first: u32,
    of: VecDeque<TaskRecord>,
    /// Tasks that are on a VM.
    on_vms: usize,
    finished: u64,
}

impl Tasks {
    pub(crate) fn waiting(count: usize) -> Self {
        Self { of: vec![TaskRecord::default(); count].into(), ..Self::default() }
    }

    /// One that has not been forgotten.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&TaskRecord> {
        self.of.get(id.get().checked_sub(self.first)? as usize)
    }

    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut TaskRecord> {
        self.of.get_mut(id.get().checked_sub(self.first)? as usize)
    }

    /// Those that have not been forgotten, in order.
    pub fn iter(&self) -> impl Iterator<Item = &TaskRecord> {
        self.of.iter()
    }

    /// The id of the next one that is submitted: how many there were.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        TaskId::new(self.first + u32::try_from(self.of.len()).unwrap_or(u32::MAX))
    }

    /// How many have finished.
    #[must_use]
    pub const fn finished(&self) -> u64 {
        self.finished
    }

    /// How many there are that have not finished.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        let left = u64::from(self.next_id().get()).saturating_sub(self.finished);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// How many are on a VM.
    #[must_use]
    pub const fn on_vms(&self) -> usize {
        self.on_vms
    }

    pub(crate) fn submit(&mut self, job: Arc<Submission>) {
        self.of.push_back(TaskRecord { job: Some(job), ..TaskRecord::default() });
    }

    /// Puts a task in a state; the seats that it leaves, if it leaves its VM.
    pub(crate) fn set_state(&mut self, id: TaskId, state: TaskState) -> Option<Seats> {
        let record = self.get_mut(id)?;
        let (before, was_finished) = (record.vm(), record.state == TaskState::Finished);
        record.state = state;
        let after = record.vm();
        let left = (before != after).then(|| record.seats.take()).flatten();
        self.on_vms = self.on_vms + usize::from(after.is_some()) - usize::from(before.is_some());
        self.finished += u64::from(state == TaskState::Finished && !was_finished);
        left
    }

    /// Forgets parallel jobs that have ended, up to the first that has not.
    pub(crate) fn forget_ended(&mut self) {
        let ended = |t: &TaskRecord| t.state == TaskState::Finished && t.job.is_some();
        while self.of.front().is_some_and(ended) {
            self.of.pop_front();
            self.first += 1;
        }
    }
}
