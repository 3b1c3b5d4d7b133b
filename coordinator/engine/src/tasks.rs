//! Where every task is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use dormouse_model::Submission;
use dormouse_units::{Attempt, CheckpointSeq, Mode, Ppm, Seats, Span, TaskId, Tier, Time, VmId};

use crate::checkpoint_state::CheckpointState;
use crate::images::{TaskImage, TaskImages};

/// Where a task is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// The task is on no VM and has not finished.
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

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => f.write_str("waiting"),
            Self::Sent(vm) => write!(f, "sent to {vm}"),
            Self::Running(vm) => write!(f, "running on {vm}"),
            Self::Stopping(vm) => write!(f, "being stopped on {vm}"),
            Self::Finished => f.write_str("finished"),
        }
    }
}

/// What is known of a task.
#[derive(Clone, Debug, Default)]
pub struct TaskRecord {
    /// Whether it waits, runs or is done, and its VM.
    pub state: TaskState,
    /// The seats that it has, in which tier.
    pub(crate) seats: Option<Seats>,
    /// The latest attempt; reports of earlier ones are of a former life.
    pub attempt: Attempt,
    /// The task's complete checkpoints that it can go on from.
    pub(crate) images: TaskImages,
    /// What checkpoints were asked for in the latest attempt.
    pub(crate) asked: CheckpointState,
    /// Burst or baseline.
    pub(crate) mode: Mode,
    /// How long the whole of its work takes at full speed where that runs, as its bag says.
    pub(crate) runtime: Span,
    /// When that was sent to its VM.
    pub sent: Time,
    /// The VM on which an attempt at it ran last.
    pub(crate) ran_on: Option<VmId>,
    /// The emulated time at which it was done and verified.
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
    pub fn kept_checkpoint(&self) -> Option<(CheckpointSeq, Ppm)> {
        self.images.newest_image().map(TaskImage::seq_and_done)
    }

    /// The numbers of the newest checkpoints that the log has of it, oldest first, but for those that were given up: as
    /// many as a worker goes back by that finds them damaged.
    pub fn checkpoints(&self) -> impl Iterator<Item = CheckpointSeq> {
        self.images.restorable_numbers()
    }

    /// Records a checkpoint that the present attempt has kept.
    pub(crate) fn keep_checkpoint(&mut self, seq: CheckpointSeq, done: Ppm) {
        self.images.keep_image(TaskImage { seq, done, by: self.attempt });
    }

    /// The tier of its seats, if it has any.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.seats.as_ref().map(|seats| seats.tier)
    }
}

/// The tasks of a run, by id: those of the bag first. Of a stream of jobs those that have ended, and
/// all before them, are forgotten: what is held is what is in the system.
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    bag: Vec<TaskRecord>,
    bag_finished: usize,
    /// Jobs that have been forgotten.
    forgotten: u32,
    jobs: VecDeque<TaskRecord>,
    jobs_finished: u32,
    /// Tasks that are on a VM.
    on_vms: usize,
    /// Tasks that have left a VM in the step under way, or in the last one.
    left: Vec<TaskId>,
}

impl TaskTable {
    pub(crate) fn all_waiting(count: usize) -> Self {
        Self { bag: vec![TaskRecord::default(); count], ..Self::default() }
    }

    /// Where the record of a job is among those that are held.
    fn job_place(&self, id: TaskId) -> Option<usize> {
        (id.get() as usize).checked_sub(self.bag.len() + self.forgotten as usize)
    }

    /// One that has not been forgotten.
    #[must_use]
    pub fn get(&self, id: TaskId) -> Option<&TaskRecord> {
        match self.bag.get(id.get() as usize) {
            None => self.jobs.get(self.job_place(id)?),
            task => task,
        }
    }

    pub(crate) fn get_mut(&mut self, id: TaskId) -> Option<&mut TaskRecord> {
        let place = self.job_place(id);
        match self.bag.get_mut(id.get() as usize) {
            None => self.jobs.get_mut(place?),
            task => task,
        }
    }

    /// Those that have not been forgotten, in order.
    pub fn iter(&self) -> impl Iterator<Item = &TaskRecord> {
        self.bag.iter().chain(&self.jobs)
    }

    /// The ids of the tasks that have not been forgotten, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        let bag = u32::try_from(self.bag.len()).unwrap_or(u32::MAX);
        let jobs = bag.saturating_add(self.forgotten)..self.next_id().get();
        (0..bag).chain(jobs).map(TaskId::new)
    }

    /// Whether it is a task of the bag.
    #[must_use]
    pub const fn is_of_bag(&self, id: TaskId) -> bool {
        (id.get() as usize) < self.bag.len()
    }

    /// The id of the next one that is submitted: how many there were.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        let held = self.bag.len() + self.jobs.len();
        TaskId::new(self.forgotten + u32::try_from(held).unwrap_or(u32::MAX))
    }

    /// How many have finished.
    #[must_use]
    pub const fn finished_count(&self) -> u64 {
        self.bag_finished as u64 + self.jobs_finished as u64
    }

    /// How many there are that have not finished.
    #[must_use]
    pub fn unfinished_count(&self) -> usize {
        self.bag_unfinished() + self.jobs_unfinished()
    }

    /// How many of the bag have not finished.
    #[must_use]
    pub const fn bag_unfinished(&self) -> usize {
        self.bag.len() - self.bag_finished
    }

    /// How many of the jobs that were submitted have not finished.
    #[must_use]
    pub fn jobs_unfinished(&self) -> usize {
        self.forgotten as usize + self.jobs.len() - self.jobs_finished as usize
    }

    /// How many are on a VM.
    #[must_use]
    pub const fn on_vms(&self) -> usize {
        self.on_vms
    }

    /// The tasks that left a VM in the last step, for another or for none.
    #[must_use]
    pub fn left_vms(&self) -> &[TaskId] {
        &self.left
    }

    /// A step begins, in which no task has left its VM yet.
    pub(crate) fn begin_step(&mut self) {
        self.left.clear();
    }

    pub(crate) fn submit_job(&mut self, job: Arc<Submission>) {
        self.jobs.push_back(TaskRecord { job: Some(job), ..TaskRecord::default() });
    }

    /// Puts a task in a state; the seats that it leaves, if it leaves its VM.
    pub(crate) fn set_state(&mut self, id: TaskId, state: TaskState) -> Option<Seats> {
        let record = self.get_mut(id)?;
        let (before, was_finished) = (record.vm(), record.state == TaskState::Finished);
        record.state = state;
        let after = record.vm();
        let left = (before != after).then(|| record.seats.take()).flatten();
        if before.is_some() && before != after {
            self.left.push(id);
        }
        self.on_vms = self.on_vms + usize::from(after.is_some()) - usize::from(before.is_some());
        if state == TaskState::Finished && !was_finished {
            match self.is_of_bag(id) {
                true => self.bag_finished += 1,
                false => self.jobs_finished += 1,
            }
        }
        left
    }

    /// Forgets parallel jobs that have ended, up to the first that has not.
    pub(crate) fn forget_ended(&mut self) {
        while self.jobs.front().is_some_and(|job| job.state == TaskState::Finished) {
            self.jobs.pop_front();
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_a_vm_is_known_until_the_next_step() {
        let mut tasks = TaskTable::all_waiting(2);
        let [one, other] = [0, 1].map(TaskId::new);
        let vm = VmId::new(7);
        for state in [TaskState::Sent(vm), TaskState::Running(vm), TaskState::Stopping(vm)] {
            tasks.set_state(one, state);
            tasks.set_state(other, state);
            assert_eq!(tasks.left_vms(), [], "they are there");
        }
        tasks.set_state(other, TaskState::Finished);
        tasks.set_state(one, TaskState::Running(vm.next()));
        assert_eq!(tasks.left_vms(), [other, one]);
        tasks.begin_step();
        assert_eq!(tasks.left_vms(), []);
        // A task that was on none has left none.
        tasks.set_state(other, TaskState::Waiting);
        assert_eq!(tasks.left_vms(), []);
    }
}
