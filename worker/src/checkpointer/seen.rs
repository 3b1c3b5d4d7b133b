//! Facts about the processes of a task that is checkpointed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use crate::{
    cgroup::{self, TierSlot, VmGroups},
    jail::path_inside,
    store::OpenFile,
};

/// Returns the PIDs of all processes in the slots `seats`, each given as vCPU and slot.
pub(super) fn seen_processes(
    vm: &VmGroups,
    seats: &[(u32, TierSlot)],
) -> cgroup::Result<BTreeSet<i32>> {
    let slots = seats.iter().map(|(vcpu, slot)| vm.slot_pids(*vcpu, *slot));
    Ok(slots.collect::<cgroup::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// Returns the kind of program that a process is: its first argument. If a task changes its first argument, its checkpoint isn't
/// accepted as its own.
pub(super) fn kind_of(pid: i32) -> String {
    const MAX_KIND_CHARS: usize = 64;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let kind = line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    String::from_utf8_lossy(kind).chars().take(MAX_KIND_CHARS).collect()
}

/// Returns the regular files that a process has open, with their sizes.
pub(super) fn open_files(pid: i32) -> Vec<OpenFile> {
    let mut found = BTreeMap::new();
    let directory = PathBuf::from(format!("/proc/{pid}/fd"));
    for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
        let (Ok(path), Ok(metadata)) = (fs::read_link(entry.path()), fs::metadata(entry.path()))
        else {
            continue;
        };
        // What a task's view has for itself is made anew, or is in its directory.
        let Some(path) = path_inside(&path) else { continue };
        if metadata.is_file() && path.is_absolute() && path.exists() {
            found.insert(path, metadata.len());
        }
    }
    found.into_iter().map(|(path, size)| OpenFile { path, size }).collect()
}
