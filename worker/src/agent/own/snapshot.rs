//! Checkpoints of a program's directory alone, for a program that saves its work in its directory itself.

use dormouse_units::{Attempt, Ppm};

use tokio::time::Instant;

use crate::{
    agent::{
        host::{LifeHost, limit},
        launch::TaskPlace,
        machine::TaskProcess,
        report::explain_error,
        snapshot::{SnapshotError, TaskSnapshot},
    },
    criu::AfterDump,
    store::{SavedProgress, StoredCheckpoint},
    workspace::TaskName,
};

/// Saves the directory of a stopped program as a checkpoint, which counts the work that the program is known to have
/// done (`done`), but no more than was due (`due`). Blocks.
pub(crate) fn take_checkpoint(
    host: &LifeHost,
    place: &TaskPlace,
    name: &TaskName,
    attempt: Attempt,
    task: &dyn TaskProcess,
    (due, done): (Option<Ppm>, Option<Ppm>),
    after: AfterDump,
) -> Result<TaskSnapshot, SnapshotError> {
    let Some(inside) = place.gate.enter_dump() else {
        return Err(SnapshotError { overtaken: true, ..SnapshotError::new("its VM freezes") });
    };
    let TaskPlace { groups, cpu, slot, .. } = place;
    let stopped_at = Instant::now();
    let done = done.unwrap_or_default();
    let ppm = due.map_or(done, |due| due.min(done));
    let progress = SavedProgress { attempt: attempt.get(), progress_ppm: ppm.get(), cpu_ns: 0 };
    let saved = groups
        .hold_at_once(*cpu, *slot, limit::DUMP)
        .map_err(|e| explain_error(&e))
        .and_then(|()| save_directory(host, name, progress));
    drop(inside);
    let goes_on = saved.is_ok() && after == AfterDump::Continue;
    if saved.is_ok() && !goes_on {
        let _ = task.kill();
    }
    if !goes_on {
        // What was killed dies only now, where groups are of version 1.
        let _ = groups.let_go(*cpu, *slot);
    }
    let checkpoint = saved.map_err(SnapshotError::new)?;
    let dump = stopped_at.elapsed();
    Ok(TaskSnapshot { checkpoint, ppm: ppm.get(), stopped_at, dump, foreign_ns: 0 })
}

fn save_directory(
    host: &LifeHost,
    name: &TaskName,
    progress: SavedProgress,
) -> Result<StoredCheckpoint, String> {
    let directory = host.workspace().task_directory(name);
    host.store().save_directory(name, &directory, progress).map_err(|e| explain_error(&e))
}
