//! Putting the processes of a parallel job that was started or restored into their slots.

use std::{error::Error, path::Path};

use dormouse_tasks::{left, progress::ProgressReader};

use super::ranks::{self, JobRank};
use crate::{
    agent::{
        host::limit,
        machine::{AttemptOrder, HostVm},
        report::explain_error,
        verdict::for_want_of_memory,
    },
    process,
};

/// Returns the processes of a job that was started with the parent `parent`, once all are in their slots.
///
/// # Errors
///
/// In words, why they aren't.
pub(crate) fn place_started(
    vm: &HostVm,
    order: &AttemptOrder,
    parent: i32,
    page: &ProgressReader,
) -> Result<Vec<JobRank>, String> {
    let HostVm { host, groups } = vm;
    let placed = ranks::find_ranks(parent, &order.pass, page, order.seats.len(), limit::BIRTH);
    let placed = placed.and_then(|ranks| {
        ranks::place_ranks(groups, host.cores.all_cores(), &ranks, &order.seats).map(|()| ranks)
    });
    placed.map_err(|e| {
        let memory = for_want_of_memory(groups, order.killed_before);
        match (memory, last_words(vm, order)) {
            (Some(why), _) => why,
            (None, Some(words)) => format!("{}; it said: {words}", explain_error(&e)),
            (None, None) => explain_error(&e),
        }
    })
}

/// Puts the processes of a job that CRIU has just restored, a child of this thread, into their slots; returns them.
///
/// # Errors
///
/// They can't be found or placed.
pub(crate) fn place_restored(
    vm: &HostVm,
    order: &AttemptOrder,
    progress: &Path,
) -> Result<Vec<JobRank>, Box<dyn Error + Send + Sync>> {
    // Beside it this thread has only CRIU, which has made all that it will.
    let parent = process::init_among_children()?.ok_or("its parent process does not exist")?;
    let ranks = ranks::present_ranks(parent, &ProgressReader::open(progress)?)?;
    ranks::place_ranks(&vm.groups, vm.host.cores.all_cores(), &ranks, &order.seats)?;
    Ok(ranks)
}

/// Returns the last line that a job that failed to start wrote to its standard error; `None`: it wrote nothing.
fn last_words(vm: &HostVm, order: &AttemptOrder) -> Option<String> {
    const MAX_LAST_WORDS: u64 = 4 << 10;
    let stderr = vm.host.workspace().task_directory(&order.name).join("stderr");
    let words = String::from_utf8_lossy(&left::tail(&stderr, MAX_LAST_WORDS).ok()?).into_owned();
    words.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}
