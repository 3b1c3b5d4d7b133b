//! Events of attempts and their VM, and the effects that follow from them.
#![expect(missing_docs, reason = "where a name does not say it all, its variant does")]

use dormouse_units::Tier;

use super::{AttemptKind, AttemptSeat, Key, TierSlot};

/// Order to begin an attempt in the seats that the VM's model has assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    pub key: Key,
    pub kind: AttemptKind,
    /// vCPU of each process of the attempt.
    pub on: Vec<u32>,
    pub tier: Tier,
}

/// Input of an [`AttemptTable`](super::AttemptTable).
///
/// The first variants are commands: [`AttemptTable::is_ready`](super::AttemptTable::is_ready) says whether a command
/// may come. Only [`VmEvent::Destroy`] may come at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmEvent {
    Start(AttemptStart),
    Stop {
        key: Key,
        keep: bool,
    },
    /// Promote an attempt to the foreground of its vCPUs.
    Promote(Key),
    /// Move a job to the foreground of other vCPUs.
    Move {
        key: Key,
        on: Vec<u32>,
    },
    Freeze,
    Thaw,
    Destroy,
    /// An attempt is to be checkpointed, as planned or on request.
    CheckpointDue(Key),
    /// A deadline of [`AttemptTable::next_at`](super::AttemptTable::next_at) may have passed.
    Tick,
    /// Result of [`VmEffect::Launch`].
    Launched(Key, Result<BirthOutcome, LaunchFailure>),
    /// Answer to [`VmEffect::Queue`]: the attempt has got its permit to use CRIU.
    Turn(Key),
    /// Answer to [`VmEffect::Dump`]: the outcome of the dump.
    Dumped(Key, DumpOutcome),
    /// The coordinator has stored the checkpoint of the given number, or won't store it.
    Stored {
        key: Key,
        number: u32,
        ok: bool,
    },
    /// Answer to [`VmEffect::Leave`]: how the job left its vCPUs.
    Left(Key, DepartureOutcome),
    /// An attempt runs again, after it was stopped for as long as its checkpoint should take.
    Resumed(Key),
    /// The kernel reports that an attempt's process has ended.
    ProcessEnded(Key),
    /// Answer to [`VmEffect::Reap`]: the killed process is gone.
    Gone(Key),
    /// Answer to [`VmEffect::Judge`]: the attempt's process has ended by itself with its work done, or the reason why the work
    /// isn't done.
    Exited(Key, Result<(), String>),
    /// The time has come at which an attempt's work should be done.
    TimeHasCome(Key),
    /// An attempt makes no progress; the text describes how.
    Hangs(Key, String),
    /// Answer to [`VmEffect::Shut`]: CRIU holds no process.
    CriuIdle,
    /// Answer to [`VmEffect::Freeze`]: the VM is frozen (`Frozen`), or couldn't be frozen (`NotFrozen`).
    Frozen,
    NotFrozen,
    /// Answer to [`VmEffect::Thaw`]: the VM is thawed (`Thawed`), or couldn't be thawed (`NotThawed`).
    Thawed,
    NotThawed,
}

/// How a launch succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BirthOutcome {
    Alive,
    /// The process ended at once: its work is done, or the reason why the work isn't done.
    Over(Result<(), String>),
}

/// Reason why a launch failed; no process of the launch runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFailure {
    pub why: String,
    /// True if the attempt's checkpoint was on the host but couldn't be restored.
    pub image: bool,
}

impl From<String> for LaunchFailure {
    /// Makes a failure for which no checkpoint is to blame.
    fn from(why: String) -> Self {
        Self { why, image: false }
    }
}

/// Outcome of a dump, after which the task runs on or is killed as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpOutcome {
    /// The checkpoint with this number was taken, and the task is stopped or dead.
    Kept { number: u32 },
    /// The VM froze before CRIU began: nothing was done to the task.
    Overtaken,
    /// No checkpoint was taken. A task that isn't `damaged` continues, unless it had `ended` before.
    Failed { why: String, damaged: bool, ended: bool },
}

/// Outcomes of a job's departure from its vCPUs. None of the job's processes runs, unless a freeze overtook the
/// departure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepartureOutcome {
    /// The job left its seats; `kept` says whether it can be restored from its checkpoint or must start from scratch.
    Gone { kept: bool },
    /// The job ended before it could leave: its work is done, or the reason why the work isn't done.
    Ended(Result<(), String>),
    /// The VM is about to freeze: nothing was done to the job.
    Overtaken,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Finished,
    Failed {
        why: String,
        /// True if the attempt couldn't be restored from its checkpoint.
        image: bool,
    },
    Stopped(KeptWork),
    /// The attempt never got its slots, as a killed process in them doesn't die.
    Refused,
    /// The end is not reported, because it was reported before.
    Silent,
}

/// Which part of a stopped attempt's work is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWork {
    /// Only the work with which the attempt began is kept.
    Begun,
    /// All work done by the attempt is kept, though no checkpoint holds it now.
    Done,
    /// The work in the checkpoint of the given number is kept.
    Checkpoint(u32),
}

/// Output of an [`AttemptTable`](super::AttemptTable): an action to be carried out. Effects are carried out in order,
/// each one done before the next is begun; their outcomes are reported as later events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmEffect {
    /// Start or restore an attempt in the given seats, by rank. It begins as its order says, or if `moving` from the checkpoint
    /// with which a moved job left its previous vCPUs. Nothing starts while the VM is frozen.
    Launch {
        key: Key,
        seats: Vec<AttemptSeat>,
        moving: bool,
    },
    /// Give up a launch.
    Revoke(Key),
    /// The launch has succeeded: report it, and watch the process.
    Began(Key),
    /// A launch that was given up has succeeded: watch the process, which is to be killed.
    WatchUnwanted(Key),
    /// Queue the attempt for a permit to use CRIU; the attempt runs until it gets the permit.
    Queue(Key),
    /// Give back the attempt's permit to use CRIU.
    GiveBack(Key),
    /// Dump the attempt, which has its permit to use CRIU, and let it run on or kill it.
    Dump {
        key: Key,
        kill: bool,
    },
    /// Send the checkpoint of the dump to the coordinator.
    Store(Key),
    /// The dump didn't begin: the model must no longer stop the attempt for it.
    Release(Key),
    /// The dump gave no checkpoint: report the reason, if there is one to report.
    NotKept {
        key: Key,
        why: Option<String>,
    },
    /// Let the attempt run on after a dump, at its promised pace.
    Continue(Key),
    /// Report whether the coordinator has stored the checkpoint.
    Settled {
        key: Key,
        stored: bool,
    },
    /// Drop a checkpoint that won't be taken.
    Missed(Key),
    /// Dump a job, so that it leaves its vCPUs.
    Leave(Key),
    /// A job's move is put off until the VM thaws.
    MoveDelayed(Key),
    /// A job has left its vCPUs; the job continues on the vCPUs named here.
    LeftPlaces {
        key: Key,
        on: Vec<u32>,
    },
    /// A job that hasn't begun is to begin on the given vCPUs instead.
    Redirect {
        key: Key,
        on: Vec<u32>,
    },
    /// A moved job couldn't be restored, and starts from scratch.
    BeginAnew {
        key: Key,
        why: String,
    },
    /// Make the given slots the foreground of their vCPUs.
    PromoteSlots {
        key: Key,
        slots: Vec<(u32, TierSlot)>,
    },
    /// An attempt can't be promoted, as another attempt has the foreground of the given vCPU.
    PromotionRefused {
        vcpu: u32,
    },
    /// Kill the processes of an attempt at once.
    Kill(Key),
    /// The given slots are empty: they can be reset.
    Vacate {
        key: Key,
        seats: Vec<AttemptSeat>,
    },
    /// Check whether a killed process is gone.
    Reap(Key),
    /// Check whether an attempt's process has ended, and if so, how.
    Judge(Key),
    /// Send [`VmEvent::TimeHasCome`] at the attempt's promised end; at once, if that has passed.
    AwaitTime(Key),
    /// Cancel [`VmEffect::AwaitTime`]: don't wait for the attempt's promised end any more.
    StopAwaiting(Key),
    /// Report the end of an attempt and forget it. Any slots that it still had are free.
    End {
        key: Key,
        seats: Vec<AttemptSeat>,
        end: AttemptOutcome,
    },
    /// Report the end of an attempt whose process still exists.
    Report {
        key: Key,
        end: AttemptOutcome,
    },
    /// Report the end of an attempt that isn't on this VM.
    Unknown(Key),
    /// Begin no more work; send [`VmEvent::CriuIdle`] once CRIU holds no process.
    Shut,
    Freeze,
    /// Report that the VM is frozen already.
    IsFrozen,
    Thaw,
    /// Kill everything that runs or starts, and report that the VM is destroyed.
    KillAll,
    /// Forget an attempt on a destroyed VM.
    Forget(Key),
    /// Remove the VM's control groups, as nothing is left.
    Remove,
}
