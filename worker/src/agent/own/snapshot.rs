//! Checkpoints of a program's directory alone, for a program that saves its work in its directory itself.

use dormouse_tasks::progress::Progress;
use tokio::time::Instant;

use crate::{
    agent::{
        host::limit,
        machine::{AttemptDump, DumpFailure, DumpMoments, HostVm},
        report::explain_error,
        snapshot::TaskSnapshot,
    },
    criu::AfterDump,
};

/// Saves the directory of a program, which is held in its slot, as a checkpoint. Blocks.
pub(crate) fn save_directory(
    vm: &HostVm,
    dump: &AttemptDump,
    moments: &mut DumpMoments,
) -> Result<TaskSnapshot, DumpFailure> {
    moments.enter()?;
    let (HostVm { host, groups }, (cpu, slot)) = (vm, dump.task_slot());
    let stopped_at = Instant::now();
    groups.hold_at_once(cpu, slot, limit::DUMP).map_err(|e| harmless(&e))?;
    // The worker knows what the program has done.
    let progress = moments.count(&Progress::default());
    let directory = host.workspace().task_directory(&dump.name);
    let saved = host.store().save_directory(&dump.name, &directory, progress);
    let checkpoint = saved.map_err(|e| harmless(&e))?;
    let took = stopped_at.elapsed();
    if dump.after == AfterDump::Kill {
        let _ = dump.process.kill();
        // What was killed dies only now, where groups are of version 1.
        let _ = groups.let_go(cpu, slot);
    }
    Ok(TaskSnapshot { checkpoint, stopped_at, dump: took, took, foreign_ns: 0 })
}

fn harmless(error: &dyn std::error::Error) -> DumpFailure {
    DumpFailure::harmless(explain_error(error))
}
