//! Dumps of a parallel job with all its processes; the job then continues in its seats or in others.

use std::{sync::Arc, time::Duration};

use dormouse_units::Ppm;
use dormouse_vm::life::AttemptSeat;
use tokio::time::Instant;

use super::{moving::JobDeparture, signals};
use crate::{
    agent::{
        gate::VmGate,
        host::{LifeHost, limit},
        machine::{JobDump, JobLeave},
        report::explain_error,
        snapshot::{SnapshotError, TaskSnapshot},
    },
    cgroup,
    criu::AfterDump,
    process::{ProcessEnd, ProcessIdentity},
    store::SavedProgress,
    workspace::TaskName,
};

/// Checkpoints a job that runs on in its seats: stops its processes and dumps them. If that fails they run on, unless
/// they may be damaged. Blocks.
pub(crate) fn dump_job(
    host: &LifeHost,
    groups: &cgroup::VmGroups,
    gate: &Arc<VmGate>,
    dump: &JobDump,
) -> Result<TaskSnapshot, SnapshotError> {
    let JobDump { name, seats, process, ranks, .. } = dump;
    let stopped_at = Instant::now();
    let Some(checkpointer) = &host.checkpointer else {
        return Err(SnapshotError::new("this worker has no working CRIU"));
    };
    // Until CRIU is through: its code in a frozen process would not answer.
    let Some(_inside) = gate.enter_dump() else {
        return Err(SnapshotError { overtaken: true, ..SnapshotError::new("its VM freezes") });
    };
    boost_seats(groups, seats, name);
    let failed = |why: String, damaging: bool| {
        if !damaging {
            // Those that have ended need it no more.
            let _ = signals::go_on(ranks);
        }
        let ended =
            !ProcessIdentity::of_process(process.pid()).is_ok_and(|process| process.is_alive());
        SnapshotError { damaging, ended, ..SnapshotError::new(why) }
    };
    let before = charged_ns(groups, seats);
    signals::stop_ranks(ranks, limit::KILL).map_err(|e| failed(explain_error(&e), false))?;
    let mut held = Duration::ZERO;
    let progress = || {
        held = stopped_at.elapsed();
        let progress = dump.page.as_ref().and_then(|page| page.progress());
        let done = Ppm::new(u32::try_from(progress.unwrap_or_default().ppm).unwrap_or(0));
        // What it will hold beyond what was due is its wait for CRIU's turn.
        let progress_ppm = dump.due.map_or(done, |due| due.min(done)).get();
        SavedProgress { attempt: dump.key.1.get(), progress_ppm, cpu_ns: 0 }
    };
    let on: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
    let taken = checkpointer
        .take_tree(name, process.pid(), (groups, &on), dump.after, limit::DUMP, progress)
        .map_err(|e| failed(explain_error(&e), e.may_have_damaged()))?;
    let foreign_ns = charged_ns(groups, seats).saturating_sub(before);
    let ppm = taken.checkpoint.manifest().progress.progress_ppm;
    Ok(TaskSnapshot { checkpoint: taken.checkpoint, ppm, stopped_at, dump: held, foreign_ns })
}

/// Gives the seats of a job the priority of a foreground: in the background, CRIU's code in the ranks would wait for
/// the foreground.
fn boost_seats(groups: &cgroup::VmGroups, seats: &[AttemptSeat], name: &TaskName) {
    for seat in seats {
        if let Err(error) = groups.boost_slot(seat.vcpu, seat.slot) {
            tracing::warn!(why = explain_error(&error), job = %name, "its CPU quota can't be lifted for \
                     the dump, which may be slow");
        }
    }
}

/// Returns the CPU time of these slots, in nanoseconds; a slot that can't be read counts as zero.
fn charged_ns(groups: &cgroup::VmGroups, seats: &[AttemptSeat]) -> u64 {
    seats.iter().filter_map(|seat| groups.slot_cpu_ns(seat.vcpu, seat.slot).ok()).sum()
}

/// Stops a job's processes, dumps them and waits until they are gone; kills them if that fails.
pub(crate) fn dump_and_leave(
    host: &LifeHost,
    groups: &cgroup::VmGroups,
    leave: JobLeave,
) -> JobDeparture {
    let JobLeave { name, seats, process, ranks, progress } = leave;
    boost_seats(groups, &seats, &name);
    let stopped = signals::stop_ranks(&ranks, limit::KILL);
    let on: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
    let taken = match (&host.checkpointer, stopped) {
        (_, Err(error)) => Err(explain_error(&error)),
        (Some(checkpointer), Ok(())) => checkpointer
            .take_tree(&name, process.pid(), (groups, &on), AfterDump::Kill, limit::DUMP, || {
                progress
            })
            .map_err(|e| explain_error(&e)),
        (None, Ok(())) => Err("this worker has no working CRIU".to_owned()),
    };
    let gone = process.kill().and_then(|()| process.wait(limit::KILL));
    match (gone, taken) {
        (Ok(Some(ended @ ProcessEnd::Exited(_))), _) => JobDeparture::Ended(ended),
        (Ok(Some(ProcessEnd::Killed(_))), Ok(taken)) => {
            let bytes = taken.checkpoint.manifest().total_bytes();
            JobDeparture::Dumped { took: taken.took, bytes }
        }
        (Ok(Some(ProcessEnd::Killed(_))), Err(why)) => JobDeparture::Lost { why },
        (Ok(None), _) => {
            let why = format!("it is still there {} ms after its death", limit::KILL.as_millis());
            JobDeparture::Lost { why }
        }
        (Err(error), _) => JobDeparture::Lost { why: explain_error(&error) },
    }
}
