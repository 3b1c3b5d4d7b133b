//! Checks of control groups: version, controllers, and write access.

use std::path::Path;

use dormouse_worker::cgroup::{self, CgroupController, CgroupHierarchy, own_low_weight};
use dormouse_worker::place::ProcessPlace;
use dormouse_worker::workspace;

use super::Finding;

const CONTROLLERS: [(&str, CgroupController); 5] = [
    ("cpu", CgroupController::Cpu),
    ("cpuacct", CgroupController::Cpuacct),
    ("memory", CgroupController::Memory),
    ("freezer", CgroupController::Freezer),
    ("pids", CgroupController::Pids),
];

/// Finding on the container or virtual machine that this process is in.
pub(super) fn place_finding(place: ProcessPlace, hierarchy: Option<&CgroupHierarchy>) -> Finding {
    Finding::found_finding("place", place.place_words(hierarchy, also_v2(hierarchy)))
}

/// True if a version 2 tree is mounted beside groups of version 1.
fn also_v2(hierarchy: Option<&CgroupHierarchy>) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    hierarchy.is_some_and(|it| !it.is_v2()) && mounts.contains(" - cgroup2 ")
}

/// Finding on the control groups as a worker sees them. `writable` tells if a read-only mount could
/// be remounted; `None`: this process may not try.
pub(super) fn control_groups(
    hierarchy: &cgroup::Result<CgroupHierarchy>,
    writable: Option<workspace::Result<()>>,
    place: ProcessPlace,
) -> Vec<Finding> {
    let name = "control groups";
    let hierarchy = match hierarchy {
        Ok(hierarchy) => hierarchy,
        Err(error) => {
            let fix = match place.is_container() {
                true => {
                    "let the engine mount control groups with cpu and memory in the container, as \
                         it does by itself"
                        .to_owned()
                }
                false => place.to_mount(),
            };
            return vec![Finding::missing_finding(name, error.to_string(), fix)];
        }
    };
    let hybrid = match also_v2(Some(hierarchy)) {
        true => ", hybrid (a version 2 tree without them is mounted too)",
        false => "",
    };
    let mut findings = vec![Finding::found_finding(name, format!("{hierarchy}{hybrid}"))];
    findings.extend(weight_finding(hierarchy, place));
    match writable {
        None => {}
        Some(Err(error)) => {
            findings.push(Finding::missing_finding(
                "mounts",
                refusal_text(&error),
                place.to_mount(),
            ));
        }
        Some(Ok(())) => {
            let to_write = place.to_mount();
            let all = CONTROLLERS
                .iter()
                .map(|&(name, c)| controller_finding(hierarchy, name, c, &to_write));
            findings.extend(all);
        }
    }
    findings
}

/// The error in words, with its reason but without its remedy, for which a finding has a field of its own.
fn refusal_text(error: &workspace::WorkspaceError) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match error {
        workspace::WorkspaceError::ReadOnly { path, .. } => {
            format!("{} is mounted read-only, and a remount is refused: {why}", path.display())
        }
        other => format!("{other}: {why}"),
    }
}

/// Finding on the CPU weight of this process's groups relative to other groups; `None` if the weights can't be read.
fn weight_finding(hierarchy: &CgroupHierarchy, place: ProcessPlace) -> Option<Finding> {
    let name = "CPU weight";
    match own_low_weight(hierarchy) {
        Ok(Some(low)) => {
            let found = format!("{low}: others have the processors first, and tasks are late");
            Some(Finding::judged_finding(name, false, found, &place.to_weigh_more()))
        }
        Ok(None) => Some(Finding::found_finding(name, "as much as is usual")),
        Err(_) => None,
    }
}

fn controller_finding(
    hierarchy: &CgroupHierarchy,
    name: &str,
    controller: CgroupController,
    to_write: &str,
) -> Finding {
    let title = format!("controller {name}");
    let Some(mount) = hierarchy.mount_point(controller) else {
        let fix = "not needed: the freezer lists the same processes";
        return Finding::judged_finding(&title, false, "not mounted", fix);
    };
    match try_group(mount) {
        Ok(()) => Finding::found_finding(&title, format!("writable at {}", mount.display())),
        Err(error) => {
            let found = format!("{}: {error}", mount.display());
            Finding::missing_finding(&title, found, to_write)
        }
    }
}

/// Creates and removes a control group, as a test.
fn try_group(mount: &Path) -> std::io::Result<()> {
    let group = mount.join(format!("dormouse-doctor-{}", std::process::id()));
    std::fs::create_dir(&group)?;
    std::fs::remove_dir(&group)
}
