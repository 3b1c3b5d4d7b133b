//! State and record of every task.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use dormouse_model::Submission;
use dormouse_units::{Attempt, CheckpointSeq, Mode, Ppm, Seats, Span, TaskId, Tier, Time, VmId};

use crate::checkpoint_state::CheckpointState;
use crate::images::{TaskImage, TaskImages};

/// State of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// The task is on no VM, and unfinished.
    #[default]
    Waiting,
    /// The task was sent to a VM that hasn't reported its start.
    Sent(VmId),
    /// The task was started on a VM, which may be frozen.
    Running(VmId),
    /// The task was commanded to stop, and its VM hasn't reported the end.
    Stopping(VmId),
    /// The task is finished, with a verified answer.
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

/// Record of a task or parallel job.
#[derive(Clone, Debug, Default)]
pub struct TaskRecord {
    /// State of the task, with its VM.
    pub state: TaskState,
    /// Seats of the task, with their tier; `None` while the task is on no VM.
    pub(crate) seats: Option<Seats>,
    /// Latest attempt; reports of earlier ones are ignored.
    pub attempt: Attempt,
    /// Complete checkpoints from which the task can be restored.
    pub(crate) images: TaskImages,
    /// State of the checkpoints of the latest attempt.
    pub(crate) asked: CheckpointState,
    /// Mode of the latest attempt: burst or baseline.
    pub(crate) mode: Mode,
    /// Run time of the whole work at full speed on the VM of the latest attempt, as the bag gives it.
    pub(crate) runtime: Span,
    /// Time at which the latest attempt was sent to its VM.
    pub sent: Time,
    /// VM on which an attempt at the task ran last; `None` if no attempt has run.
    pub(crate) ran_on: Option<VmId>,
    /// Emulated time at which the task finished; `None` if it is unfinished.
    pub finished: Option<Time>,
    /// CPU time of all attempts that have ended, in real microseconds.
    pub real_cpu_us: u64,
    /// Submission of a parallel job; `None`: the task is one of the bag.
    pub job: Option<Arc<Submission>>,
}

impl TaskRecord {
    /// Returns the VM that the task is on; `None` if the task waits or is finished.
    #[must_use]
    pub const fn vm(&self) -> Option<VmId> {
        match self.state {
            TaskState::Sent(vm) | TaskState::Running(vm) | TaskState::Stopping(vm) => Some(vm),
            TaskState::Waiting | TaskState::Finished => None,
        }
    }

    /// Returns the checkpoint from which the task will be restored, with the part of the work that it holds; `None`: from scratch.
    #[must_use]
    pub fn kept_checkpoint(&self) -> Option<(CheckpointSeq, Ppm)> {
        self.images.newest_image().map(TaskImage::seq_and_done)
    }

    /// Returns the numbers of the newest checkpoints in the log, oldest first, without those that an attempt from an older
    /// checkpoint has replaced. A worker that finds the newest one damaged tries the older ones.
    pub fn checkpoints(&self) -> impl Iterator<Item = CheckpointSeq> {
        self.images.restorable_numbers()
    }

    /// Records a complete checkpoint of the current attempt.
    pub(crate) fn keep_checkpoint(&mut self, seq: CheckpointSeq, done: Ppm) {
        self.images.keep_image(TaskImage { seq, done, by: self.attempt });
    }

    /// Returns the tier of the task's seats; `None` if the task has no seats.
    #[must_use]
    pub fn tier(&self) -> Option<Tier> {
        self.seats.as_ref().map(|seats| seats.tier)
    }
}

/// Tasks of a run by id, those of the bag first. Ended jobs are forgotten up to the first that hasn't ended, so that
/// the table holds little more than the jobs in the system.
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    bag: Vec<TaskRecord>,
    bag_finished: usize,
    /// Number of forgotten jobs.
    forgotten: u32,
    jobs: VecDeque<TaskRecord>,
    jobs_finished: u32,
    /// Number of tasks on a VM.
    on_vms: usize,
    /// Tasks that have left a VM in the current step, or in the last one between steps.
    left: Vec<TaskId>,
}

impl TaskTable {
    pub(crate) fn all_waiting(count: usize) -> Self {
        Self { bag: vec![TaskRecord::default(); count], ..Self::default() }
    }

    /// Returns the index of a job's record among the records that are held; `None` for a task of the bag or a forgotten job.
    fn job_place(&self, id: TaskId) -> Option<usize> {
        (id.get() as usize).checked_sub(self.bag.len() + self.forgotten as usize)
    }

    /// Returns the task with this id; `None` if it is unknown or forgotten.
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

    /// Returns all tasks that aren't forgotten, in order of id.
    pub fn iter(&self) -> impl Iterator<Item = &TaskRecord> {
        self.bag.iter().chain(&self.jobs)
    }

    /// Returns the ids of all tasks that aren't forgotten, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        let bag = u32::try_from(self.bag.len()).unwrap_or(u32::MAX);
        let jobs = bag.saturating_add(self.forgotten)..self.next_id().get();
        (0..bag).chain(jobs).map(TaskId::new)
    }

    /// Returns whether a task belongs to the bag.
    #[must_use]
    pub const fn is_of_bag(&self, id: TaskId) -> bool {
        (id.get() as usize) < self.bag.len()
    }

    /// Returns the id of the next submitted job, which is the number of tasks so far.
    #[must_use]
    pub fn next_id(&self) -> TaskId {
        let held = self.bag.len() + self.jobs.len();
        TaskId::new(self.forgotten + u32::try_from(held).unwrap_or(u32::MAX))
    }

    /// Returns the number of finished tasks.
    #[must_use]
    pub const fn finished_count(&self) -> u64 {
        self.bag_finished as u64 + self.jobs_finished as u64
    }

    /// Returns the number of unfinished tasks.
    #[must_use]
    pub fn unfinished_count(&self) -> usize {
        self.bag_unfinished() + self.jobs_unfinished()
    }

    /// Returns the number of unfinished tasks of the bag.
    #[must_use]
    pub const fn bag_unfinished(&self) -> usize {
        self.bag.len() - self.bag_finished
    }

    /// Returns the number of submitted jobs that are unfinished.
    #[must_use]
    pub fn jobs_unfinished(&self) -> usize {
        self.forgotten as usize + self.jobs.len() - self.jobs_finished as usize
    }

    /// Returns the number of tasks on a VM.
    #[must_use]
    pub const fn on_vms(&self) -> usize {
        self.on_vms
    }

    /// Returns the tasks that left a VM in the last step, for another VM or for none.
    #[must_use]
    pub fn left_vms(&self) -> &[TaskId] {
        &self.left
    }

    /// Begins a step, in which no task has left its VM so far.
    pub(crate) fn begin_step(&mut self) {
        self.left.clear();
    }

    pub(crate) fn submit_job(&mut self, job: Arc<Submission>) {
        self.jobs.push_back(TaskRecord { job: Some(job), ..TaskRecord::default() });
    }

    /// Sets the state of a task; returns the task's seats if it leaves its VM, else `None`.
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

    /// Forgets ended parallel jobs up to the first that hasn't ended.
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
