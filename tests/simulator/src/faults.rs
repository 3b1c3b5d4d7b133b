//! Everything that the simulated world does to a run: one table of faults.

use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::invariant::Invariant::{self, *};

/// Milliseconds of simulated real time.
pub type Millis = u64;

/// The point in its doings at which a coordinator is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrashPoint {
    /// At this very moment.
    Now,
    /// Before its next write to the log.
    BeforeWrite,
    /// In the middle of its next write: this part of the bytes is written, in parts per million.
    MidWrite(u32),
    /// After its next write to the log, before that is synced.
    AfterWrite,
    /// After its next sync of the log, before anybody is told.
    AfterSync,
    /// After so many more messages to workers have left.
    AfterMessages(u32),
    /// At a change of a file other than the log, of its store or its seal, after so many others.
    AtFile {
        /// The changes that are made before.
        more: u32,
        /// The part of a write that is made, in parts per million; a change that is whole or not made at all is made at a
        /// million.
        part: u32,
    },
}

/// What of a connection's two directions is hit.
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
    /// Whether what a worker says is hit.
    #[must_use]
    pub const fn is_up(self) -> bool {
        matches!(self, Self::Up | Self::Both)
    }

    /// Whether what a worker is told is hit.
    #[must_use]
    pub const fn is_down(self) -> bool {
        matches!(self, Self::Down | Self::Both)
    }
}

/// Who hears of a broken connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hears {
    /// Both of its ends.
    Both,
    /// The worker alone: the coordinator waits on a connection that is half open.
    Worker,
    /// The coordinator alone.
    Coordinator,
}

/// One thing that goes wrong. Workers are named by their place among the plan's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fault {
    /// The coordinator's process is killed; what it has written is there.
    CoordinatorKill {
        /// The point in its doings at which it dies.
        point: CrashPoint,
        /// The time until it is started again.
        down: Millis,
    },
    /// The coordinator's host loses its power; what it has not synced is torn or gone.
    PowerCut {
        /// The point in its doings at which it dies.
        point: CrashPoint,
        /// The time until it is started again.
        down: Millis,
        /// The part of the unsynced writes that is there afterwards, in parts per million.
        kept: u32,
        /// Garbage that stands after the log's end then, in bytes.
        garbage: u32,
        /// Checkpoints that were stored lately are torn or gone.
        tears_checkpoints: bool,
        /// The seal is damaged, gone or a former one, although it was synced: the disk has lied.
        #[serde(default)]
        tears_seal: bool,
        /// A part of the log that was synced and sealed is damaged or gone: the disk has lied. Nobody can go on with the
        /// run then.
        #[serde(default)]
        tears_log: bool,
    },
    /// The coordinator hears nothing, says nothing and stores nothing, as where its process stands still; its timers go on.
    CoordinatorPause {
        /// For how long.
        lasts: Millis,
    },
    /// A worker's process is killed.
    WorkerKill {
        /// The worker that is hit.
        worker: usize,
        /// The time until it is started again; `None`: it never comes back.
        down: Option<Millis>,
        /// Whether it can show the certificate of its former life.
        has_certificate: bool,
    },
    /// A worker's process stands still.
    WorkerPause {
        /// The worker that is hit.
        worker: usize,
        /// For how long.
        lasts: Millis,
    },
    /// Messages take longer.
    Delay {
        /// The worker whose messages these are.
        worker: usize,
        /// For how long it is so.
        lasts: Millis,
        /// The most that a message takes longer: each takes a drawn part of that.
        by: Millis,
    },
    /// The connections of a worker break, and what is under way is lost.
    Break {
        /// The worker that is hit.
        worker: usize,
        /// Who hears of it.
        hears: Hears,
    },
    /// A worker's connection breaks for it, while what it had said still arrives.
    LateMessages {
        /// The worker that is hit.
        worker: usize,
        /// How much later that arrives.
        by: Millis,
    },
    /// Nothing passes between a worker and the coordinator.
    Partition {
        /// The worker that is hit.
        worker: usize,
        /// For how long.
        lasts: Millis,
        /// In which direction.
        way: Way,
    },
    /// Messages arrive twice.
    Doubled {
        /// The worker whose messages these are.
        worker: usize,
        /// For how long it is so.
        lasts: Millis,
        /// In which direction.
        way: Way,
    },
    /// The disk has no room for the log, and none for checkpoints.
    LogFull {
        /// For how long.
        lasts: Millis,
    },
    /// The disk has no room for checkpoints.
    StoreFull {
        /// For how long.
        lasts: Millis,
    },
    /// A checkpoint in the coordinator's store rots: a bit of it is another, a sector is lost or is that of another place.
    Rot,
    /// The disk refuses to write or sync the log.
    LogError {
        /// How many more writes it does before that.
        after: u32,
        /// How long until the coordinator is started again.
        down: Millis,
    },
    /// The wall clock of the coordinator's host jumps.
    ClockJump {
        /// By so much, milliseconds.
        by: i64,
    },
    /// The run's user pauses it and goes on with it.
    UserPause {
        /// How long it is paused.
        down: Millis,
    },
    /// The run's user ends it.
    UserCancel,
}

/// A fault and its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFault {
    /// Simulated time since the run's start, milliseconds.
    pub at: Millis,
    /// What goes wrong then.
    #[serde(flatten)]
    pub fault: Fault,
}

/// A line of the table: one kind of fault.
#[derive(Clone, Copy, Debug)]
pub struct FaultKind {
    /// The kind's name, which is its knob: `--rate NAME=X`.
    pub name: &'static str,
    /// Mean number of such faults in a run that has any of its kind.
    pub rate: f64,
    /// What happens, for the table.
    pub what: &'static str,
    /// The invariants that it threatens.
    pub threatens: &'static [Invariant],
    draw: fn(&mut Draw) -> Fault,
}

impl FaultKind {
    /// One such fault, drawn.
    #[must_use]
    pub fn draw(&self, draw: &mut Draw) -> Fault {
        (self.draw)(draw)
    }

    /// The kind of this name.
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

    /// How long after its beginning the world is as before, as far as the plan knows.
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

    /// The worker that is hit, by its place, if it is one.
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

    /// The place of the worker that is hit, if it is one, to be changed.
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

/// How long something is away: mostly moments, sometimes longer than anybody waits.
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
        ],
        draw: |d| Fault::CoordinatorKill { point: crash_point(d), down: down(d) },
    },
    FaultKind {
        name: "power-cut",
        rate: 0.8,
        what: "unsynced sectors of the log and late checkpoints are torn, gone or misdirected, garbage at the log's end, a torn or former seal",
        threatens: &[
            DurableFirst,
            LogGrows,
            Acknowledged,
            NewestCheckpoint,
            OneHistory,
            FinishedOnce,
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
        threatens: &[OneAttempt, LostBySilence, Accounts, Progress],
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
        what: "the run's user pauses it, and goes on with it",
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
