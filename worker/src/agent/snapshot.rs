//! Taking a checkpoint of a running task.

use std::time::{Duration, Instant};

use dormouse_tasks::progress::ProgressReader;
use dormouse_units::Attempt;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{
    host::{Host, limit},
    launch::Place,
    report::explain,
};
use crate::{
    checkpointer,
    criu::{self, AfterDump},
    process::{Identity, Task},
    store::{Checkpoint, Progress},
    workspace::TaskName,
};

/// What becomes of the task when its memory is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It runs on.
    Run,
    /// It stands still until [`resume`].
    Stand,
    /// It is killed.
    Die,
}

/// A checkpoint in the local store.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) checkpoint: Checkpoint,
    /// What of the work it holds.
    pub(crate) ppm: u32,
    pub(crate) began: Instant,
    /// How long the task stood still for CRIU.
    pub(crate) dump: Duration,
}

/// Why there is no checkpoint.
#[derive(Debug)]
pub(crate) struct SnapshotError {
    pub(crate) why: String,
    /// The task may be damaged and must not go on.
    pub(crate) damaging: bool,
    /// It had ended before CRIU came to it: nothing is missing.
    pub(crate) ended: bool,
}

/// Takes a checkpoint. Blocks for as long as that takes.
pub(crate) fn take(
    host: &Host,
    place: &Place,
    name: &TaskName,
    attempt: Attempt,
    (task, page): (&Task, Option<&ProgressReader>),
    then: Then,
) -> Result<Snapshot, SnapshotError> {
    let Some(checkpointer) = &host.checkpointer else {
        let why = "this worker has no CRIU that works".to_owned();
        return Err(SnapshotError { why, damaging: false, ended: false });
    };
    let began = Instant::now();
    let mut dump = None;
    let after = if then == Then::Die { AfterDump::Kill } else { AfterDump::Continue };
    let noted = || {
        let progress = page.and_then(|page| page.read().ok()).unwrap_or_default();
        if then == Then::Stand {
            // Acts when CRIU lets the task go. The process is ours and not reaped, so the
            // number is its own; SIGSTOP from here stops even the init of a PID namespace.
            let _ = kill(Pid::from_raw(task.pid()), Signal::SIGSTOP);
        }
        dump = Some(began.elapsed());
        Progress {
            attempt: attempt.get(),
            progress_ppm: u32::try_from(progress.ppm).unwrap_or(0),
            cpu_ns: u64::try_from(progress.cpu.as_nanos()).unwrap_or(u64::MAX),
        }
    };
    let at = (&*place.groups, place.cpu, place.slot);
    let taken = checkpointer.take(name, task.pid(), at, after, limit::DUMP, noted);
    match taken {
        Ok(taken) => Ok(Snapshot {
            ppm: taken.checkpoint.manifest().progress.progress_ppm,
            checkpoint: taken.checkpoint,
            began,
            dump: dump.unwrap_or(taken.took),
        }),
        Err(error) => {
            resume(task);
            let late = matches!(
                &error,
                checkpointer::Error::Criu { source, .. } if matches!(**source, criu::Error::Late { .. })
            );
            let ended = !Identity::of(task.pid()).is_ok_and(|process| process.is_alive());
            Err(SnapshotError { why: explain(&error), damaging: late, ended })
        }
    }
}

/// Lets a task go on that stands still.
pub(crate) fn resume(task: &Task) {
    // One that has ended needs it no more.
    let _ = kill(Pid::from_raw(task.pid()), Signal::SIGCONT);
}
