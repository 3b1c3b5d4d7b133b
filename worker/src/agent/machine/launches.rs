//! Orders to a machine, from the launch of an attempt to the keeping of its program's files, and the record of a launched
//! attempt.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Kept, OwnEnd, SavesAtNotice, StartTask};
use dormouse_units::Ppm;
use dormouse_vm::life::AttemptSeat;
use tokio::{sync::Semaphore, time::Instant};

use super::process::{ProgressPage, TaskProcess};
use crate::{
    agent::{gate::LaunchPass, report::Key, vm::JobRank},
    cgroup::TierSlot,
    process::ProcessEnd,
    workspace::TaskName,
};

/// How a program is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchWay {
    /// CRIU restores the program from a checkpoint.
    Restored,
    /// The program begins its work from scratch.
    FromScratch,
    /// The program begins from scratch and reports no progress, so that the worker doesn't follow it.
    Silent,
    /// A user's own program begins from scratch, with its inputs.
    Own,
    /// A user's own program begins with the files that an earlier attempt saved in its directory.
    OwnSaved,
}

/// How a program is to be launched, as its command says.
#[derive(Clone, Copy, Debug)]
pub struct LaunchPlan {
    /// The checkpoint from which the program continues; it may have to be fetched. `None`: from scratch.
    pub from: Option<Kept>,
    /// How the program is launched at first.
    pub first: LaunchWay,
    /// How the program begins if no checkpoint can be restored; `None`: the program needs a checkpoint.
    pub from_scratch: Option<LaunchWay>,
}

/// Order to launch an attempt: a parallel job, or a task, which is a job of one process.
#[derive(Clone, Debug)]
pub struct AttemptOrder {
    /// The attempt at the task.
    pub key: Key,
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// The coordinator's command to start the task.
    pub start: StartTask,
    /// How the program is launched.
    pub plan: LaunchPlan,
    /// Seats of the attempt's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// True if a job is restored, in new seats, from the checkpoint that was taken when it left its earlier seats.
    pub moving: bool,
    /// vCPU in whose control groups the parents of jobs run.
    pub lane: u32,
    /// Number of the VM's processes that had been killed for lack of memory before the launch.
    pub killed_before: u64,
    /// Permits to use CRIU, one for each core of the host.
    pub criu: Arc<Semaphore>,
    /// Permission to start processes on the VM; it can be revoked, and blocks while the VM is frozen.
    pub pass: LaunchPass,
}

impl AttemptOrder {
    /// Returns whether the attempt is a parallel job.
    #[must_use]
    pub const fn is_job(&self) -> bool {
        self.start.plan.is_some()
    }

    /// Returns whether the command names a checkpoint to continue from.
    pub(super) const fn has_origin(&self) -> bool {
        self.start.from.is_some() || self.moving
    }

    /// Returns the vCPU and the slot in which the attempt's only process begins, or the parent of its processes.
    pub(crate) fn parent_slot(&self) -> (u32, TierSlot) {
        if self.is_job() { (self.lane, TierSlot::A) } else { first_slot(&self.seats) }
    }
}

/// Returns the vCPU and the slot of an attempt's first process.
pub(super) fn first_slot(seats: &[AttemptSeat]) -> (u32, TierSlot) {
    seats.first().map_or((0, TierSlot::A), |seat| (seat.vcpu, seat.slot))
}

/// An attempt that was started or restored.
#[derive(Debug)]
pub struct AttemptBirth {
    /// The attempt's only process, or the parent of its processes.
    pub process: Arc<dyn TaskProcess>,
    /// Page on which the attempt reports its progress; `None` for programs that don't.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// The processes of a parallel job, by rank; empty for other tasks.
    pub ranks: Vec<JobRank>,
    /// Part of the task's work that counts as done at the start, in millionths: the amount that its checkpoint was scheduled to
    /// hold; 0 without a checkpoint.
    pub done_ppm: u32,
    /// Part of the task's work that was in fact done before the attempt's first own instruction.
    pub came_with: Ppm,
    /// CPU time charged to the attempt's slot before the attempt began, in nanoseconds.
    pub base_ns: u64,
    /// CPU time charged to the attempt's slot before the attempt's first own instruction, in nanoseconds.
    pub born_ns: u64,
    /// Time at which the worker saw the attempt's first own instruction, or a job's processes in their slots.
    pub at: Instant,
    /// Time of the restore by CRIU; zero for an attempt that wasn't restored.
    pub restore: Duration,
    /// Instant at which the inputs of a user's own program were in its directory; `None` if it did not wait for inputs.
    pub inputs_at: Option<Instant>,
    /// How the process ended, if it ended so soon after its start that it need not be watched; else `None`.
    pub ended: Option<ProcessEnd>,
    /// Sentences on the facts about a restored program that the kernel reports differently; `None`: the program wasn't
    /// compared.
    pub changes: Option<Vec<String>>,
}

impl AttemptBirth {
    /// Makes the record of an attempt that begins now, with the part `done` of its work done before. `base_ns` is the CPU
    /// time charged to its slot before, in nanoseconds.
    #[must_use]
    pub fn begins_now(
        process: Arc<dyn TaskProcess>,
        page: Option<Arc<dyn ProgressPage>>,
        done: Ppm,
        base_ns: u64,
    ) -> Self {
        Self {
            process,
            page,
            ranks: Vec::new(),
            done_ppm: done.get(),
            came_with: done,
            base_ns,
            born_ns: base_ns,
            at: Instant::now(),
            restore: Duration::ZERO,
            inputs_at: None,
            ended: None,
            changes: None,
        }
    }
}

/// Order to check the answer of a user's own program that has ended, and to keep its files.
#[derive(Clone, Debug)]
pub struct OwnKeep {
    /// Name of the task's folder and checkpoints.
    pub name: TaskName,
    /// The coordinator's command that started the program.
    pub order: StartTask,
    /// How the program ended.
    pub end: OwnEnd,
    /// The vCPU that the program ran on.
    pub cpu: u32,
    /// The slot of the vCPU that the program ran in; without one (`None`) the answer isn't checked.
    pub slot: Option<TierSlot>,
    /// Permission to start processes on the VM; it can be revoked, and blocks while the VM is frozen.
    pub pass: LaunchPass,
}

/// An interruption notice for a program that saves its work when it gets the notice.
#[derive(Clone, Debug)]
pub struct ProgramNotice<'a> {
    /// Name of the task's folder and checkpoints.
    pub name: &'a TaskName,
    /// How the program is notified.
    pub how: &'a SavesAtNotice,
    /// Text of the notice.
    pub notice: &'a str,
    /// Seats of the program's processes, by rank.
    pub seats: &'a [AttemptSeat],
    /// Process id of the parent of the program's processes, which belongs to the worker and gets no signal; `None`: no process gets
    /// a signal.
    pub parent: Option<i32>,
}
