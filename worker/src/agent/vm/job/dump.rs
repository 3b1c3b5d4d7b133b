//! Dumps of a parallel job: of all its processes together, after which it goes on, or goes on elsewhere.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_tasks::progress::ProgressReader;
use dormouse_units::Ppm;
use dormouse_vm::life::Seat;

use super::{meter::charged_ns, moving::Leaving, ranks::Rank, signals};
use crate::{
    agent::{
        gate::Gate,
        host::{Host, limit},
        report::{Key, explain},
        snapshot::{Snapshot, SnapshotError},
    },
    cgroup,
    criu::AfterDump,
    process::{Ended, Identity, Task},
    store::Progress,
    workspace::TaskName,
};

/// A dump of a job after which it goes on.
pub(crate) struct Dump<'a> {
    pub(crate) host: &'a Host,
    pub(crate) groups: &'a cgroup::Vm,
    pub(crate) gate: &'a Arc<Gate>,
    pub(crate) seats: &'a [Seat],
    pub(crate) name: &'a TaskName,
}

impl Dump<'_> {
    /// Stops the processes and dumps the tree, which stands still then. Where that fails they go
    /// on, unless they may be damaged.
    pub(crate) fn take(
        &self,
        key: Key,
        (process, ranks): (&Task, &[Rank]),
        (page, due): (Option<&ProgressReader>, Option<Ppm>),
        after: AfterDump,
    ) -> Result<Snapshot, SnapshotError> {
        let stopped_at = Instant::now();
        let Some(checkpointer) = &self.host.checkpointer else {
            return Err(SnapshotError::new("this worker has no CRIU that works"));
        };
        // Until CRIU is through: its code in a frozen process would not answer.
        let Some(_inside) = self.gate.dump() else {
            return Err(SnapshotError { overtaken: true, ..SnapshotError::new("its VM freezes") });
        };
        // In the background, CRIU's code inside the ranks would wait for the foreground.
        for seat in self.seats {
            if let Err(error) = self.groups.boost(seat.vcpu, seat.slot) {
                tracing::warn!(why = explain(&error), job = %self.name, "its dump may be slow");
            }
        }
        let failed = |why: String, damaging: bool| {
            if !damaging {
                // Those that have ended need it no more.
                let _ = signals::go_on(ranks);
            }
            let ended =
                !Identity::of_process(process.pid()).is_ok_and(|process| process.is_alive());
            SnapshotError { damaging, ended, ..SnapshotError::new(why) }
        };
        let before = charged_ns(self.groups, self.seats);
        signals::stop(ranks, limit::KILL).map_err(|e| failed(explain(&e), false))?;
        let mut dump = Duration::ZERO;
        let progress = || {
            dump = stopped_at.elapsed();
            let done = page.and_then(|page| page.read().ok()).unwrap_or_default().ppm;
            let done = Ppm::new(u32::try_from(done).unwrap_or(0));
            // What it will hold beyond what was due is its wait for CRIU's turn.
            let progress_ppm = due.map_or(done, |due| due.min(done)).get();
            Progress { attempt: key.1.get(), progress_ppm, cpu_ns: 0 }
        };
        let on: Vec<_> = self.seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
        let place = (self.groups, &on[..]);
        let taken = checkpointer
            .take_tree(self.name, process.pid(), place, after, limit::DUMP, progress)
            .map_err(|e| failed(explain(&e), e.may_have_damaged()))?;
        let foreign_ns = charged_ns(self.groups, self.seats).saturating_sub(before);
        let ppm = taken.checkpoint.manifest().progress.progress_ppm;
        Ok(Snapshot { checkpoint: taken.checkpoint, ppm, stopped_at, dump, foreign_ns })
    }
}

/// Stops the processes, dumps the tree and sees it gone; else kills it.
pub(crate) fn dump_and_leave(
    host: &Host,
    (groups, seats): (&cgroup::Vm, &[Seat]),
    name: &TaskName,
    (process, ranks): (&Task, &[Rank]),
    progress: Progress,
) -> Leaving {
    // In the background, CRIU's code inside the ranks would wait for the foreground.
    for seat in seats {
        if let Err(error) = groups.boost(seat.vcpu, seat.slot) {
            tracing::warn!(why = explain(&error), job = %name, "its dump may be slow");
        }
    }
    let stopped = signals::stop(ranks, limit::KILL);
    let on: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
    let taken = match (&host.checkpointer, stopped) {
        (_, Err(error)) => Err(explain(&error)),
        (Some(checkpointer), Ok(())) => checkpointer
            .take_tree(name, process.pid(), (groups, &on), AfterDump::Kill, limit::DUMP, || {
                progress
            })
            .map_err(|e| explain(&e)),
        (None, Ok(())) => Err("this worker has no CRIU that works".to_owned()),
    };
    let gone = process.kill().and_then(|()| process.wait(limit::KILL));
    match (gone, taken) {
        (Ok(Some(ended @ Ended::Exited(_))), _) => Leaving::Ended(ended),
        (Ok(Some(Ended::Killed(_))), Ok(taken)) => {
            let bytes = taken.checkpoint.manifest().bytes();
            Leaving::Dumped { took: taken.took, bytes }
        }
        (Ok(Some(Ended::Killed(_))), Err(why)) => Leaving::Lost { why },
        (Ok(None), _) => {
            let why = format!("it is still there {} ms after its death", limit::KILL.as_millis());
            Leaving::Lost { why }
        }
        (Err(error), _) => Leaving::Lost { why: explain(&error) },
    }
}
