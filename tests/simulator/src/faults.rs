//! Everything that the simulated world does to a run: one table of faults.

use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::invariant::Invariant::{self, *};

/// Milliseconds of simulated real time.
pub type Millis = u64;

/// The point of its work at which a coordinator is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrashPoint {
    /// At once.
    Now,
    /// Before the coordinator's next write to the log.
    BeforeWrite,
    /// In the middle of the coordinator's next write to the log; the number is the part of the bytes that is written,
    /// in parts per million.
    MidWrite(u32),
    /// After the coordinator's next write to the log, before the sync of that write.
    AfterWrite,
    /// After the coordinator's next sync of the log, before any message about it leaves.
    AfterSync,
    /// After this number of further messages to workers.
    AfterMessages(u32),
    /// At a change of a file other than the log: in the store of checkpoints, or the seal.
    AtFile {
        /// Number of such changes that are made before that one.
        more: u32,
        /// The part of the write that is made, in parts per million; a change that can't be made in part is made at a
        /// million only.
        part: u32,
    },
}

/// The directions of a connection that a fault affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the worker to the coordinator.
    Up,
    /// From the coordinator to the worker.
    Down,
    /// In both directions.
    Both,
}

impl Way {
    /// Whether messages from the worker are affected.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Both)
    }

    /// Whether messages to the worker are affected.
    #[must_use]
    pub const fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }
}

/// The ends of a connection that notice when it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Both the worker and the coordinator.
    Both,
    /// The worker alone: the coordinator waits on a half-open connection.
    Worker,
    /// The coordinator alone: the worker waits on a half-open connection.
    Coordinator,
}

/// A fault: one thing that goes wrong in a run. A worker is named by its index in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fault {
    /// The coordinator's process is killed; everything that it has written stays.
    CoordinatorKill {
        /// The point of its work at which the coordinator dies.
        point: CrashPoint,
        /// The time until the coordinator is started again.
        down: Millis,
    },
    /// The coordinator's host loses its power; unsynced writes are torn or gone.
    PowerCut {
        /// The point of its work at which the coordinator dies.
        point: CrashPoint,
        /// The time until the coordinator is started again.
        down: Millis,
        /// The part of the unsynced writes that survives, in parts per million.
        kept: u32,
        /// Garbage that is appended to the log, in bytes.
        garbage: u32,
        /// Whether checkpoints that were stored lately are torn or gone.
        tears_checkpoints: bool,
        /// Whether the seal is damaged, gone or an older one although it was synced: a fault of the disk.
        #[serde(default)]
        tears_seal: bool,
        /// Whether a part of the log that was synced and sealed is damaged or gone: a fault of the disk, after which
        /// the run can't be resumed.
        #[serde(default)]
        tears_log: bool,
    },
    /// The coordinator neither receives nor sends nor stores anything for a time, as if its process were suspended;
    /// its timers run on.
    CoordinatorPause {
        /// Duration of the pause.
        lasts: Millis,
    },
    /// A worker's process is killed.
    WorkerKill {
        /// The worker that is killed, by its index in the plan.
        worker: usize,
        /// The time until the worker is started again; `None`: never.
        down: Option<Millis>,
        /// Whether the restarted worker can show the certificate of its earlier session.
        has_certificate: bool,
    },
    /// A worker's process is suspended for a time.
    WorkerPause {
        /// The worker that is suspended, by its index in the plan.
        worker: usize,
        /// Duration of the suspension.
        lasts: Millis,
    },
    /// Messages of a worker are delayed.
    Delay {
        /// The worker whose messages are delayed, by its index in the plan.
        worker: usize,
        /// Duration of the fault.
        lasts: Millis,
        /// The longest delay of a message; each message gets a random part of that.
        by: Millis,
    },
    /// The connections of a worker break, and messages on the way are lost.
    Break {
        /// The worker whose connections break, by its index in the plan.
        worker: usize,
        /// The ends that notice the break.
        hears: Hears,
    },
    /// A worker sees its connections break, while messages that it has sent still arrive later.
    LateMessages {
        /// The worker whose connections break, by its index in the plan.
        worker: usize,
        /// The delay of the messages that were on the way.
        by: Millis,
    },
    /// No message passes between a worker and the coordinator for a time.
    Partition {
        /// The worker that is cut off, by its index in the plan.
        worker: usize,
        /// Duration of the partition.
        lasts: Millis,
        /// The direction in which no message passes.
        way: Way,
    },
    /// Messages of a worker arrive twice.
    Doubled {
        /// The worker whose messages are doubled, by its index in the plan.
        worker: usize,
        /// Duration of the fault.
        lasts: Millis,
        /// The direction in which messages are doubled.
        way: Way,
    },
    /// The disk has no room for the log or for checkpoints for a time.
    LogFull {
        /// Duration of the fault.
        lasts: Millis,
    },
    /// The disk has no room for checkpoints for a time.
    StoreFull {
        /// Duration of the fault.
        lasts: Millis,
    },
    /// A checkpoint in the coordinator's store is damaged: a bit is flipped, or a sector is lost or replaced by
    /// another one.
    Rot,
    /// The disk refuses to write or sync the log.
    LogError {
        /// Number of writes that still succeed before the error.
        after: u32,
        /// The time until the coordinator is started again.
        down: Millis,
    },
    /// The wall clock of the coordinator's host jumps.
    ClockJump {
        /// The jump in milliseconds; negative: backwards.
        by: i64,
    },
    /// The run's user pauses the run and resumes it later.
    UserPause {
        /// Time for which the run is paused.
        down: Millis,
    },
    /// The run's user ends the run.
    UserCancel,
}

/// A fault and the time at which it happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// Simulated time of the fault, in milliseconds since the run's start.
    pub at: Millis,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A kind of fault: a line of the table of faults.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    /// Name of the kind, which sets its rate on the command line: `--rate NAME=X`.
    pub name: &'static str,
    /// Mean number of faults of this kind in a run that has any of them.
    pub rate: f64,
    /// Description of the fault, for the table.
    pub what: &'static str,
    /// The invariants that faults of this kind put to the test.
    pub threatens: &'static [Invariant],
    draw: fn(&mut Draw) -> Fault,
}

impl FaultKind {
    /// Draws a fault of this kind.
    #[must_use]
    pub fn draw(&self, draw: &mut Draw) -> Fault {
        (self.draw)(draw)
    }

    /// The kind of fault with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        FAULTS.iter().find(|kind| kind.name == name)
    }
}

impl Fault {
    /// The name of the fault's kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CoordinatorKill { point: CrashPoint::Now, .. } => "kill",
            Self::CoordinatorKill { .. } => "kill-at",
            Self::PowerCut { .. } => "power-cut",
            Self::CoordinatorPause { .. } => "coordinator-pause",
            Self::WorkerKill { down: Some(_), .. } => "worker-kill",
            Self::WorkerKill { .. } => "worker-gone",
            Self::WorkerPause { .. } => "worker-pause",
            Self::Delay { .. } => "delay",
            Self::Break { hears: Hears::Both, .. } => "break",
            Self::Break { .. } => "half-open",
            Self::LateMessages { .. } => "late-messages",
            Self::Partition { way: Way::Both, .. } => "partition",
            Self::Partition { .. } => "one-way-partition",
            Self::Doubled { .. } => "doubled",
            Self::LogFull { .. } => "log-full",
            Self::StoreFull { .. } => "store-full",
            Self::LogError { .. } => "log-error",
            Self::Rot => "rot",
            Self::ClockJump { .. } => "clock-jump",
            Self::UserPause { .. } => "user-pause",
            Self::UserCancel => "user-cancel",
        }
    }

    /// How long the effect of the fault lasts, as far as the plan says.
    #[must_use]
    pub const fn lasts(&self) -> Millis {
        match *self {
            Self::CoordinatorKill { down, .. }
            | Self::PowerCut { down, .. }
            | Self::LogError { down, .. }
            | Self::UserPause { down } => down,
            Self::WorkerKill { down, .. } => match down {
                Some(down) => down,
                None => 0,
            },
            Self::CoordinatorPause { lasts }
            | Self::WorkerPause { lasts, .. }
            | Self::Delay { lasts, .. }
            | Self::Partition { lasts, .. }
            | Self::Doubled { lasts, .. }
            | Self::LogFull { lasts }
            | Self::StoreFull { lasts } => lasts,
            Self::LateMessages { by, .. } => by,
            Self::Break { .. } | Self::ClockJump { .. } | Self::Rot | Self::UserCancel => 0,
        }
    }

    /// The worker that the fault hits, by its index in the plan; `None` if it hits no single worker.
    #[must_use]
    pub const fn worker(&self) -> Option<usize> {
        match *self {
            Self::WorkerKill { worker, .. }
            | Self::WorkerPause { worker, .. }
            | Self::Delay { worker, .. }
            | Self::Break { worker, .. }
            | Self::LateMessages { worker, .. }
            | Self::Partition { worker, .. }
            | Self::Doubled { worker, .. } => Some(worker),
            _ => None,
        }
    }

    /// As a mutable reference, the index of the worker that the fault hits; `None` if it hits no single worker.
    pub const fn worker_mut(&mut self) -> Option<&mut usize> {
        match self {
            Self::WorkerKill { worker, .. }
            | Self::WorkerPause { worker, .. }
            | Self::Delay { worker, .. }
            | Self::Break { worker, .. }
            | Self::LateMessages { worker, .. }
            | Self::Partition { worker, .. }
            | Self::Doubled { worker, .. } => Some(worker),
            _ => None,
        }
    }
}

/// Draws a down time: mostly short, sometimes longer than anything waits.
fn down(draw: &mut Draw) -> Millis {
    match draw.below(4) {
        0 => draw.between(1, 100),
        1 | 2 => draw.between(100, 1_500),
        _ => draw.between(1_500, 8_000),
    }
}

fn crash_point(draw: &mut Draw) -> CrashPoint {
    match draw.below(6) {
        0 => CrashPoint::BeforeWrite,
        1 => CrashPoint::MidWrite(draw.ppm()),
        2 => CrashPoint::AfterWrite,
        3 => CrashPoint::AfterSync,
        4 => CrashPoint::AtFile {
            more: draw.below(8),
            part: if draw.one_in(3) { 1_000_000 } else { draw.ppm() },
        },
        _ => CrashPoint::AfterMessages(draw.below(4)),
    }
}

fn any_point(draw: &mut Draw) -> CrashPoint {
    if draw.one_in(2) { CrashPoint::Now } else { crash_point(draw) }
}

fn one_way(draw: &mut Draw) -> Way {
    if draw.one_in(2) { Way::Up } else { Way::Down }
}

/// All kinds of faults.
pub const FAULTS: &[FaultKind] = &[
    FaultKind {
        name: "kill",
        rate: 1.0,
        what: "the coordinator is killed between two of its doings, or as it begins, and started again",
        threatens: &[
            Replay,
            FinishedOnce,
            OneAttempt,
            NewestCheckpoint,
            OneHistory,
            AllBack,
            SubmittedOnce,
            AccountOnce,
            InstantOrder,
            Accounts,
            Bills,
            Credits,
            Progress,
            NotAhead,
        ],
        draw: |d| Fault::CoordinatorKill { point: CrashPoint::Now, down: down(d) },
    },
    FaultKind {
        name: "kill-at",
        rate: 1.5,
        what: "the coordinator is killed at a write of its log, seal or store, in the middle of it, at a sync, or at a message",
        threatens: &[
            DurableFirst,
            Replay,
            LogGrows,
            Acknowledged,
            FinishedOnce,
            AllBack,
            SubmittedOnce,
            StoredWhole,
            AccountOnce,
            FaultOnce,
            Believed,
            Reported,
        ],
        draw: |d| Fault::CoordinatorKill { point: crash_point(d), down: down(d) },
    },
    FaultKind {
        name: "power-cut",
        rate: 0.8,
        what: "unsynced sectors of the log and late checkpoints are torn, gone or misdirected, garbage at the log's end, a torn or earlier seal",
        threatens: &[
            DurableFirst,
            LogGrows,
            Acknowledged,
            NewestCheckpoint,
            OneHistory,
            FinishedOnce,
            Believed,
        ],
        draw: |d| Fault::PowerCut {
            point: any_point(d),
            down: down(d),
            kept: d.ppm(),
            garbage: if d.one_in(3) { d.below(4_000) } else { 0 },
            tears_checkpoints: d.one_in(2),
            tears_seal: d.one_in(4),
            tears_log: d.one_in(50),
        },
    },
    FaultKind {
        name: "worker-kill",
        rate: 1.0,
        what: "a worker is killed and started again, with its certificate or without",
        threatens: &[OneAttempt, NewestCheckpoint, OneHistory, NothingLeft, Progress],
        draw: |d| Fault::WorkerKill {
            worker: d.worker(),
            down: Some(down(d)),
            has_certificate: !d.one_in(4),
        },
    },
    FaultKind {
        name: "worker-gone",
        rate: 0.15,
        what: "a worker is killed and never comes back",
        threatens: &[NewestCheckpoint, Progress],
        draw: |d| Fault::WorkerKill { worker: d.worker(), down: None, has_certificate: false },
    },
    FaultKind {
        name: "worker-pause",
        rate: 0.5,
        what: "a worker's process stands still for a while",
        threatens: &[OneAttempt, Frozen, LostBySilence, Accounts, Progress],
        draw: |d| Fault::WorkerPause { worker: d.worker(), lasts: down(d) },
    },
    FaultKind {
        name: "delay",
        rate: 0.7,
        what: "each message takes longer, by as much as is drawn for it",
        threatens: &[LostBySilence, Accounts, Progress],
        draw: |d| Fault::Delay {
            worker: d.worker(),
            lasts: d.between(300, 4_000),
            by: d.between(1, 600),
        },
    },
    FaultKind {
        name: "break",
        rate: 1.5,
        what: "a worker's connections break, with loss of what is under way",
        threatens: &[DurableFirst, Acknowledged, FinishedOnce, ObeyedOnce],
        draw: |d| Fault::Break { worker: d.worker(), hears: Hears::Both },
    },
    FaultKind {
        name: "half-open",
        rate: 0.5,
        what: "only one end hears that a connection broke",
        threatens: &[Acknowledged, Progress, ObeyedOnce],
        draw: |d| Fault::Break {
            worker: d.worker(),
            hears: if d.one_in(2) { Hears::Worker } else { Hears::Coordinator },
        },
    },
    FaultKind {
        name: "late-messages",
        rate: 0.5,
        what: "a worker redials while messages of its former connection are still to arrive",
        threatens: &[FinishedOnce, Acknowledged, OneAttempt, ObeyedOnce, StoredWhole],
        draw: |d| Fault::LateMessages { worker: d.worker(), by: d.between(1, 3_000) },
    },
    FaultKind {
        name: "partition",
        rate: 0.7,
        what: "nothing passes between a worker and the coordinator",
        threatens: &[OneAttempt, OneHistory, Accounts, Progress],
        draw: |d| Fault::Partition { worker: d.worker(), lasts: down(d), way: Way::Both },
    },
    FaultKind {
        name: "one-way-partition",
        rate: 0.4,
        what: "nothing passes in one of the two directions",
        threatens: &[Acknowledged, OneAttempt, Progress],
        draw: |d| Fault::Partition { worker: d.worker(), lasts: down(d), way: one_way(d) },
    },
    FaultKind {
        name: "doubled",
        rate: 0.4,
        what: "each message arrives twice",
        threatens: &[FinishedOnce, Acknowledged, ObeyedOnce],
        draw: |d| Fault::Doubled {
            worker: d.worker(),
            lasts: d.between(300, 4_000),
            way: if d.one_in(2) { Way::Both } else { one_way(d) },
        },
    },
    FaultKind {
        name: "log-full",
        rate: 0.4,
        what: "the disk has no room for the log or for checkpoints",
        threatens: &[DurableFirst, LogGrows, Progress],
        draw: |d| Fault::LogFull { lasts: d.between(50, 2_500) },
    },
    FaultKind {
        name: "store-full",
        rate: 0.4,
        what: "the disk has no room for checkpoints",
        threatens: &[NewestCheckpoint, Progress],
        draw: |d| Fault::StoreFull { lasts: d.between(300, 5_000) },
    },
    FaultKind {
        name: "rot",
        rate: 0.5,
        what: "a stored checkpoint rots: a bit is another, a sector is lost or that of another place",
        threatens: &[NewestCheckpoint, Progress],
        draw: |_| Fault::Rot,
    },
    FaultKind {
        name: "log-error",
        rate: 0.2,
        what: "the disk refuses to write the log (EIO); the coordinator ends and is started again",
        threatens: &[DurableFirst, LogGrows, Acknowledged],
        draw: |d| Fault::LogError { after: d.below(3), down: down(d) },
    },
    FaultKind {
        name: "clock-jump",
        rate: 0.4,
        what: "the wall clock of the coordinator's host jumps forward or back",
        threatens: &[Accounts, Progress, NotAhead],
        draw: |d| {
            let by = i64::try_from(d.between(10, 3_600_000)).unwrap_or(0);
            Fault::ClockJump { by: if d.one_in(2) { by } else { -by } }
        },
    },
    FaultKind {
        name: "user-pause",
        rate: 0.2,
        what: "the run's user pauses it, and resumes it",
        threatens: &[DurableFirst, Replay, Accounts],
        draw: |d| Fault::UserPause { down: down(d) },
    },
    FaultKind {
        name: "user-cancel",
        rate: 0.05,
        what: "the run's user ends it",
        threatens: &[NothingLeft, Progress],
        draw: |_| Fault::UserCancel,
    },
    FaultKind {
        name: "coordinator-pause",
        rate: 0.3,
        what: "the coordinator hears, says and stores nothing for a while, as where its process stands still",
        threatens: &[OneAttempt, Acknowledged, OneHistory, Accounts, Progress],
        draw: |d| Fault::CoordinatorPause { lasts: down(d) },
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_draws_faults_of_its_name() {
        for (n, kind) in (0..).zip(FAULTS) {
            let mut draw = Draw::new(n, "test", 3);
            for _ in 0..50 {
                assert_eq!(kind.draw(&mut draw).name(), kind.name);
            }
            assert!(!kind.threatens.is_empty());
        }
        let names: BTreeSet<_> = FAULTS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), FAULTS.len());
    }

    #[test]
    fn every_invariant_is_threatened_by_something() {
        let threatened: BTreeSet<_> = FAULTS.iter().flat_map(|kind| kind.threatens).collect();
        let by_liars_and_bugs = [Invariant::Verified, Invariant::NoFailure];
        for invariant in Invariant::ALL {
            assert!(threatened.contains(invariant) || by_liars_and_bugs.contains(invariant));
        }
    }
}
