//! Taking a checkpoint of a running task.

use std::time::Duration;

use dormouse_tasks::progress::{self, Clock, ProgressReader};
use dormouse_units::{Attempt, Ppm};

use tokio::time::Instant;

use super::{
    host::{LifeHost, limit},
    launch::{PROGRESS, TaskPlace},
    machine::{ProgressPage, TaskProcess},
    report::explain_error,
};
use crate::{
    checkpointer::{Begin, OnceStopped, SnappedTask},
    criu::AfterDump,
    process::{ProcessIdentity, cpu_ns, resume_process},
    store::{SavedProgress, StoredCheckpoint},
    workspace::TaskName,
};

/// A checkpoint in the local store, of a task that is stopped or was killed.
#[derive(Debug)]
pub(crate) struct TaskSnapshot {
    pub(crate) checkpoint: StoredCheckpoint,
    /// Part of the task's work that the checkpoint holds, in ppm.
    pub(crate) ppm: u32,
    /// When the task was stopped.
    pub(crate) stopped_at: Instant,
    /// Time from `stopped_at` until CRIU released the task.
    pub(crate) dump: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub(crate) foreign_ns: u64,
}

/// Error: no checkpoint was taken. The task continues, unless it may be damaged.
#[derive(Debug)]
pub struct SnapshotError {
    /// Reason, in words.
    pub why: String,
    /// True if the task may be damaged and must not run on.
    pub damaging: bool,
    /// True if the task ended before CRIU could dump it: nothing is missing.
    pub ended: bool,
    /// True if the VM froze or was destroyed before CRIU could dump the task, which is unchanged.
    pub overtaken: bool,
}

impl SnapshotError {
    /// Makes an error that doesn't affect the task.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), damaging: false, ended: false, overtaken: false }
    }
}

/// Error of a dump that the VM doesn't allow.
#[derive(Debug, thiserror::Error)]
#[error("its VM freezes")]
struct OvertakenSnapshot;

/// Checkpoints a task. The checkpoint is due to hold the part `due` of the work; a user's own program is known to have
/// done the part `own_done`. Blocks.
pub(crate) fn take_checkpoint(
    host: &LifeHost,
    place: &TaskPlace,
    name: &TaskName,
    attempt: Attempt,
    (task, page): (&dyn TaskProcess, Option<&dyn ProgressPage>),
    (due, own_done): (Option<Ppm>, Option<Ppm>),
    after: AfterDump,
) -> Result<TaskSnapshot, SnapshotError> {
    let Some(checkpointer) = &host.checkpointer else {
        return Err(SnapshotError::new("this worker has no working CRIU"));
    };
    let path = host.workspace().task_directory(name).join(PROGRESS);
    // A program of the user's own has no clock in its page, and what it has done is known here.
    let page = page.filter(|_| own_done.is_none());
    let foreign = page.and_then(|page| page.clock()).unwrap_or_default().foreign;
    let set = |own, foreign| match page {
        Some(_) => progress::set_clock(&path, Clock { own, foreign }),
        None => Ok(()),
    };
    let (mut own, mut dump) = (0, None);
    // Until CRIU is through: its code in a frozen task would not answer.
    let (mut inside, mut overtaken) = (None, false);
    let mut begin = || {
        inside = place.gate.enter_dump();
        overtaken = inside.is_none();
        if overtaken { Err(OvertakenSnapshot.into()) } else { Ok(()) }
    };
    let mut stopped = |ns: u64| {
        own = to_signed(ns) - foreign;
        // Part of the checkpoint: the clock goes on from there in another process.
        Ok(set(own, foreign)?)
    };
    let noted = || {
        let progress = page.and_then(|page| page.progress()).unwrap_or_default();
        dump = Some(Instant::now());
        let said = u32::try_from(progress.ppm).unwrap_or(0);
        let done = own_done.map_or(said, Ppm::get);
        SavedProgress {
            attempt: attempt.get(),
            progress_ppm: due.map_or(done, |due| due.get().min(done)),
            cpu_ns: u64::try_from(progress.cpu.as_nanos()).unwrap_or(u64::MAX),
        }
    };
    let at = (&*place.groups, place.cpu, place.slot);
    let steps = (&mut begin as &mut Begin<'_>, &mut stopped as &mut OnceStopped<'_>);
    let taken = checkpointer.take_with(name, task.pid(), at, after, limit::DUMP, steps, noted);
    // One that CRIU never came to is not damaged.
    let touched = inside.take().is_some();
    let failed = |why, damaging: bool| {
        let damaging = damaging && touched;
        if !damaging {
            // One that has ended needs it no more.
            let _ = match own_done {
                Some(_) => {
                    place.groups.let_go(place.cpu, place.slot).map_err(|e| explain_error(&e))
                }
                None => resume_process(task.pid()).map_err(|e| explain_error(&e)),
            };
        }
        let ended =
            !ProcessIdentity::of_process(task.pid()).is_ok_and(|process| process.is_alive());
        SnapshotError { why, damaging, ended, overtaken }
    };
    match taken {
        Ok(SnappedTask { checkpoint, stopped_at, foreign_ns, .. }) => {
            let stopped_at = Instant::from_std(stopped_at);
            if after == AfterDump::Continue {
                // What CRIU did in the task is no work of the task's.
                set(own, foreign + to_signed(foreign_ns))
                    .map_err(|e| failed(explain_error(&e), false))?;
            }
            Ok(TaskSnapshot {
                ppm: checkpoint.manifest().progress.progress_ppm,
                checkpoint,
                stopped_at,
                dump: dump.unwrap_or(stopped_at).saturating_duration_since(stopped_at),
                foreign_ns,
            })
        }
        Err(error) => Err(failed(explain_error(&error), error.may_have_damaged())),
    }
}

/// Sets the clock of a restored, still stopped task so that the clock continues where it stopped.
pub(crate) fn go_on_with_clock(
    host: &LifeHost,
    name: &TaskName,
    page: &ProgressReader,
    pid: i32,
) -> Result<(), String> {
    let own = page.clock().map_err(|e| explain_error(&e))?.own;
    let foreign = to_signed(cpu_ns(pid).map_err(|e| explain_error(&e))?) - own;
    let path = host.workspace().task_directory(name).join(PROGRESS);
    progress::set_clock(&path, Clock { own, foreign }).map_err(|e| explain_error(&e))
}

fn to_signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
