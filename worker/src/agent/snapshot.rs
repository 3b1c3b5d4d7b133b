//! Taking a checkpoint of a running task.

use std::{cell::RefCell, time::Duration};

use dormouse_tasks::progress::{self, Clock, ProgressReader};
use tokio::time::Instant;

use super::{
    host::{LifeHost, limit},
    launch::PROGRESS,
    machine::{AttemptDump, DumpFailure, DumpMoments, DumpSteps, DumpWay, HostVm, TakenCheckpoint},
    own,
    report::explain_error,
    vm::dump_job,
};
use crate::{
    checkpointer::{Begin, OnceStopped, SnappedTask},
    criu::AfterDump,
    process::cpu_ns,
    store::StoredCheckpoint,
    workspace::TaskName,
};

/// A checkpoint in the local store, of a task that is stopped or was killed.
#[derive(Debug)]
pub(crate) struct TaskSnapshot {
    pub(crate) checkpoint: StoredCheckpoint,
    /// Instant at which the task was stopped for the checkpoint.
    pub(crate) stopped_at: Instant,
    /// Time from `stopped_at` until CRIU released the task.
    pub(crate) dump: Duration,
    /// Duration of taking the whole checkpoint.
    pub(crate) took: Duration,
    /// CPU time of CRIU's code in the task, in nanoseconds.
    pub(crate) foreign_ns: u64,
}

/// Error: no checkpoint was taken. The task continues, unless it may be damaged.
#[derive(Debug)]
pub struct SnapshotError {
    /// Reason for which no checkpoint was taken, in words.
    pub why: String,
    /// True if the task may be damaged and must not run on.
    pub damaging: bool,
    /// True if the task ended before CRIU could dump it, so that no checkpoint is missing.
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

impl DumpSteps for HostVm {
    async fn dump_once(
        &self,
        dump: &AttemptDump,
        moments: &mut DumpMoments,
    ) -> Result<TakenCheckpoint, DumpFailure> {
        let snapshot = match dump.way {
            DumpWay::Task | DumpWay::Own => dump_task(self, dump, moments),
            DumpWay::Job => dump_job(self, dump, moments),
            DumpWay::OwnDirectory => own::save_directory(self, dump, moments),
        };
        snapshot.map(|snapshot| self.taken_checkpoint(snapshot))
    }
}

/// Has CRIU dump a task of one process, or a user's own program.
fn dump_task(
    vm: &HostVm,
    dump: &AttemptDump,
    moments: &mut DumpMoments,
) -> Result<TaskSnapshot, DumpFailure> {
    let (HostVm { host, groups }, AttemptDump { name, process, after, .. }) = (vm, dump);
    let Some(checkpointer) = &host.checkpointer else {
        return Err(DumpFailure::harmless("this worker has no working CRIU"));
    };
    let path = host.workspace().task_directory(name).join(PROGRESS);
    // A program of the user's own has no clock in its page, and what it has done is known here.
    let page = dump.page.as_deref().filter(|_| dump.way == DumpWay::Task);
    let foreign = page.and_then(|page| page.clock()).unwrap_or_default().foreign;
    let set = |own, foreign| match page {
        Some(_) => progress::set_clock(&path, Clock { own, foreign }),
        None => Ok(()),
    };
    let (mut own, mut noted_at) = (0, None);
    let moments = RefCell::new(moments);
    let mut begin = || Ok(moments.borrow_mut().enter()?);
    let mut stopped = |ns: u64| {
        own = to_signed(ns) - foreign;
        // Part of the checkpoint: the clock goes on from there in another process.
        Ok(set(own, foreign)?)
    };
    let noted = || {
        noted_at = Some(Instant::now());
        let progress = page.and_then(|page| page.progress()).unwrap_or_default();
        moments.borrow().count(&progress)
    };
    let (cpu, slot) = dump.task_slot();
    let at = (&**groups, cpu, slot);
    let steps = (&mut begin as &mut Begin<'_>, &mut stopped as &mut OnceStopped<'_>);
    let taken = checkpointer.take_with(name, process.pid(), at, *after, limit::DUMP, steps, noted);
    let SnappedTask { checkpoint, stopped_at, foreign_ns, took } =
        taken.map_err(|error| DumpFailure::of_criu(&error))?;
    let stopped_at = Instant::from_std(stopped_at);
    if *after == AfterDump::Continue {
        // What CRIU did in the task is no work of the task's.
        set(own, foreign + to_signed(foreign_ns))
            .map_err(|e| DumpFailure::harmless(explain_error(&e)))?;
    }
    let dump = noted_at.unwrap_or(stopped_at).saturating_duration_since(stopped_at);
    Ok(TaskSnapshot { checkpoint, stopped_at, dump, took, foreign_ns })
}

/// Sets the CPU clock that a restored, still stopped task reports, so that the clock continues from its value at the dump.
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
