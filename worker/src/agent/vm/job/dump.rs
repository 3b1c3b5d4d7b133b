//! Dumps of a parallel job with all its processes; the job then continues in its seats or in others.

use std::time::Duration;

use dormouse_tasks::progress::Progress;
use dormouse_vm::life::AttemptSeat;
use tokio::time::Instant;

use super::signals;
use crate::{
    agent::{
        host::limit,
        machine::{AttemptDump, DumpFailure, DumpMoments, HostVm},
        report::explain_error,
        snapshot::TaskSnapshot,
    },
    cgroup,
    checkpointer::DumpedTask,
    workspace::TaskName,
};

/// Has CRIU dump a parallel job with all its processes.
pub(crate) fn dump_job(
    vm: &HostVm,
    dump: &AttemptDump,
    moments: &mut DumpMoments,
) -> Result<TaskSnapshot, DumpFailure> {
    let (HostVm { host, groups }, AttemptDump { name, seats, ranks, .. }) = (vm, dump);
    let stopped_at = Instant::now();
    let Some(checkpointer) = &host.checkpointer else {
        return Err(DumpFailure::harmless("this worker has no working CRIU"));
    };
    moments.enter()?;
    boost_seats(groups, seats, name);
    let before = charged_ns(groups, seats);
    signals::stop_ranks(ranks, limit::KILL)
        .map_err(|e| DumpFailure::harmless(explain_error(&e)))?;
    let mut held = Duration::ZERO;
    let progress = || {
        held = stopped_at.elapsed();
        let progress = dump.page.as_ref().and_then(|page| page.progress()).unwrap_or_default();
        moments.count(&Progress { cpu: Duration::ZERO, ..progress })
    };
    let on: Vec<_> = seats.iter().map(|seat| (seat.vcpu, seat.slot)).collect();
    let (pid, place) = (dump.process.pid(), (&**groups, &on[..]));
    let taken = checkpointer.take_tree(name, pid, place, dump.after, limit::DUMP, progress);
    let DumpedTask { checkpoint, took } = taken.map_err(|error| DumpFailure::of_criu(&error))?;
    let foreign_ns = charged_ns(groups, seats).saturating_sub(before);
    Ok(TaskSnapshot { checkpoint, stopped_at, dump: held, took, foreign_ns })
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

/// Returns the summed CPU time of the slots of `seats`, in nanoseconds; a slot whose time can't be read counts as zero.
fn charged_ns(groups: &cgroup::VmGroups, seats: &[AttemptSeat]) -> u64 {
    seats.iter().filter_map(|seat| groups.slot_cpu_ns(seat.vcpu, seat.slot).ok()).sum()
}
