//! Killing all that runs on a VM, at once and for good.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use super::{gate::Gate, host::limit, report::explain, threads::urgent};
use crate::{cgroup, process::Task};

/// How soon what is still coming to life is killed again: nobody says when a process enters a
/// group.
const AGAIN: Duration = Duration::from_millis(5);

/// Kills until nothing is left on a VM whose gate has ended, and nothing more can come.
pub(crate) async fn kill_everything(vm: u32, groups: &Arc<cgroup::Vm>, gate: &Gate) {
    let begun = Instant::now();
    loop {
        // Looked at before: what came to life until then is killed.
        let is_last = !gate.has_births() || begun.elapsed() > limit::KILL;
        let killed = {
            let groups = Arc::clone(groups);
            urgent(move || groups.kill_all(limit::KILL)).await
        };
        let why = match killed {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(explain(&error)),
            Err(error) => Some(explain(&error)),
        };
        if let Some(why) = why {
            // The worker's end tries again.
            tracing::error!(vm, why, "processes of a VM are left behind");
        }
        if is_last {
            return;
        }
        // What comes first.
        let _ = timeout(AGAIN, gate.births_over()).await;
    }
}

/// Reaps these processes, which were killed, and removes the groups of their VM.
pub(crate) async fn remove_groups(vm: u32, groups: &Arc<cgroup::Vm>, processes: Vec<Arc<Task>>) {
    let groups = Arc::clone(groups);
    let removed = urgent(move || {
        for process in processes {
            // Dead already, unless its groups could not be killed; reaped here or, at the same
            // moment, by the watch of its end.
            let _ = process.kill();
            let _ = process.wait(limit::KILL);
        }
        groups.remove(limit::KILL)
    })
    .await;
    let why = match removed {
        Ok(Ok(())) => return,
        Ok(Err(error)) => explain(&error),
        Err(error) => explain(&error),
    };
    // The worker's end tries again.
    tracing::error!(vm, why, "a VM's groups are left behind");
}
