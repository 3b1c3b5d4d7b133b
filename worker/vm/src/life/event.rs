//! What is heard of attempts and their VM, and what is to be done then.
#![expect(missing_docs, reason = "where a name does not say it all, its variant does")]

use dormouse_units::Tier;

use super::{AttemptKind, AttemptSeat, Key, TierSlot};

/// An attempt that is to begin. The reference has a seat for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptStart {
    pub key: Key,
    pub kind: AttemptKind,
    /// The vCPU of each of its processes.
    pub on: Vec<u32>,
    pub tier: Tier,
}

/// What is heard.
///
/// The first are commands: [`AttemptTable::is_ready`](super::AttemptTable::is_ready) says when one may come.
/// Only [`VmEvent::Destroy`] may come at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmEvent {
    Start(AttemptStart),
    Stop {
        key: Key,
        keep: bool,
    },
    /// To the foreground, where it is.
    Promote(Key),
    /// Elsewhere, in the foreground.
    Move {
        key: Key,
        on: Vec<u32>,
    },
    Freeze,
    Thaw,
    Destroy,
    /// A checkpoint is due, or wanted now.
    CheckpointDue(Key),
    /// Something may be due by itself.
    Tick,
    /// The fate of [`VmEffect::Launch`].
    Launched(Key, Result<BirthOutcome, LaunchFailure>),
    /// Answer to [`VmEffect::Queue`]: the attempt has a place at CRIU.
    Turn(Key),
    /// Answer to [`VmEffect::Dump`]: what became of the dump.
    Dumped(Key, DumpOutcome),
    /// The coordinator has the checkpoint of this number, or will not.
    Stored {
        key: Key,
        number: u32,
        ok: bool,
    },
    /// Answer to [`VmEffect::Leave`]: how the job left its places.
    Left(Key, DepartureOutcome),
    /// The attempt goes on, having stood still for its checkpoint for as long as it had to.
    Resumed(Key),
    /// The kernel says that its process has ended.
    ProcessEnded(Key),
    /// Answer to [`VmEffect::Reap`]: a process that was killed is gone.
    Gone(Key),
    /// Answer to [`VmEffect::Judge`]: the attempt's work is done, or why not.
    Exited(Key, Result<(), String>),
    /// The attempt's work should be done by now.
    TimeHasCome(Key),
    /// The attempt does not get on, for this reason.
    Hangs(Key, String),
    /// Answer to [`VmEffect::Shut`]: CRIU holds nothing.
    CriuIdle,
    /// Answer to [`VmEffect::Freeze`]: the VM is frozen, or is not.
    Frozen,
    NotFrozen,
    /// Answer to [`VmEffect::Thaw`]: the VM is thawed, or is not.
    Thawed,
    NotThawed,
}

/// How an attempt came to life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BirthOutcome {
    Alive,
    /// And was over at once: its work is done, or why not.
    Over(Result<(), String>),
}

/// Why an attempt did not come to life. Nothing of it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchFailure {
    pub why: String,
    /// The attempt had its checkpoint, and that could not be restored.
    pub image: bool,
}

impl From<String> for LaunchFailure {
    /// What is no image's fault.
    fn from(why: String) -> Self {
        Self { why, image: false }
    }
}

/// The fate of a dump after which the task is to go on, or to be killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpOutcome {
    /// There is a checkpoint of this number, and its task stands still or is dead.
    Kept { number: u32 },
    /// The VM froze before CRIU came: nothing was done to the task.
    Overtaken,
    /// There is none. A task that is not `damaged` runs on, unless it had `ended` before.
    Failed { why: String, damaged: bool, ended: bool },
}

/// How a job left its places. Nothing of it runs, unless it was overtaken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DepartureOutcome {
    /// The attempt can go on from its checkpoint, or begin anew.
    Gone { kept: bool },
    /// The attempt came to its own end first: its work is done, or why not.
    Ended(Result<(), String>),
    /// The VM freezes: nothing was done to the job.
    Overtaken,
}

/// How an attempt ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Finished,
    Failed {
        why: String,
        /// The attempt could not be restored from its checkpoint.
        image: bool,
    },
    Stopped(KeptWork),
    /// The attempt never had its slot, in which somebody is who does not die.
    Refused,
    /// The end was reported before.
    Silent,
}

/// What is kept of the work of an attempt that is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWork {
    /// What it began with.
    Begun,
    /// What it had done, which is in no checkpoint of now.
    Done,
    /// What this checkpoint holds.
    Checkpoint(u32),
}

/// What is to be done. In their order; one must be done before the next is begun, but what it
/// leads to is heard later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VmEffect {
    /// Bring it to life in these slots, by rank: from the checkpoint that its order names, or with
    /// which it left its former places. Nothing comes to life while the VM is frozen.
    Launch {
        key: Key,
        seats: Vec<AttemptSeat>,
        moving: bool,
    },
    /// What is being brought to life is no longer wanted.
    Revoke(Key),
    /// The attempt has come to life: report that, and watch its process.
    Began(Key),
    /// The attempt has come to life though nobody wants it any more: watch its process.
    WatchUnwanted(Key),
    /// Ask for a place at CRIU. It runs on until then.
    Queue(Key),
    /// Give that place back.
    GiveBack(Key),
    /// Take a checkpoint at that place, and let it go on, or kill it.
    Dump {
        key: Key,
        kill: bool,
    },
    /// The dump gave a checkpoint: send it to the coordinator.
    Store(Key),
    /// The dump was not begun: it does not stand still for it any more.
    Release(Key),
    /// The dump gave no checkpoint: report why, if there is something to be said.
    NotKept {
        key: Key,
        why: Option<String>,
    },
    /// The attempt goes on after a dump as it is promised.
    Continue(Key),
    /// Report that the checkpoint that was stored is there, or is not.
    Settled {
        key: Key,
        stored: bool,
    },
    /// A checkpoint is not taken any more.
    Missed(Key),
    /// Dump a job, for it to leave its places.
    Leave(Key),
    /// A job's move waits for the thaw.
    MoveDelayed(Key),
    /// A job's processes are gone; it is to go on there.
    LeftPlaces {
        key: Key,
        on: Vec<u32>,
    },
    /// A job that has not begun is to begin there.
    Redirect {
        key: Key,
        on: Vec<u32>,
    },
    /// A job that was moved could not be restored, and begins anew.
    BeginAnew {
        key: Key,
        why: String,
    },
    /// These slots are foreground from now on.
    PromoteSlots {
        key: Key,
        slots: Vec<(u32, TierSlot)>,
    },
    /// The foreground of this vCPU is somebody else's.
    PromotionRefused {
        vcpu: u32,
    },
    /// Kill its processes at once.
    Kill(Key),
    /// Nobody is in these slots any more.
    Vacate {
        key: Key,
        seats: Vec<AttemptSeat>,
    },
    /// See whether a killed process is gone.
    Reap(Key),
    /// See how a process ended, if it has.
    Judge(Key),
    /// Say when its time has come: at once, if it has.
    AwaitTime(Key),
    /// Nobody waits for its time any more.
    StopAwaiting(Key),
    /// Report its end and forget it. Its slots, if it still had any, are free.
    End {
        key: Key,
        seats: Vec<AttemptSeat>,
        end: AttemptOutcome,
    },
    /// Report its end, though its process is still there.
    Report {
        key: Key,
        end: AttemptOutcome,
    },
    /// Report the end of an attempt that is not here.
    Unknown(Key),
    /// Nothing is to be begun any more; say when CRIU holds nothing.
    Shut,
    Freeze,
    /// The VM is frozen already: report that.
    IsFrozen,
    Thaw,
    /// Kill all that runs and comes to life, and report that the VM is gone.
    KillAll,
    /// Forget an attempt on a VM that is gone.
    Forget(Key),
    /// Nothing is left: remove the VM's groups.
    Remove,
}
