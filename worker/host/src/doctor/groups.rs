//! Control groups: which version, which controllers, whether they can be written.

use std::path::Path;

use dormouse_worker::cgroup::{Controller, Hierarchy};

use super::Finding;

const CONTROLLERS: [(&str, Controller); 5] = [
    ("cpu", Controller::Cpu),
    ("cpuacct", Controller::Cpuacct),
    ("memory", Controller::Memory),
    ("freezer", Controller::Freezer),
    ("pids", Controller::Pids),
];

pub(super) fn control_groups() -> Vec<Finding> {
    let name = "control groups";
    let hierarchy = match Hierarchy::detect() {
        Ok(hierarchy) => hierarchy,
        Err(error) => {
            let fix = "mount control groups with cpu, memory and freezer; in a container: \
                       --cap-add SYS_ADMIN --volume /sys/fs/cgroup:/sys/fs/cgroup";
            return vec![Finding::missing(name, error.to_string(), fix)];
        }
    };
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let also_v2 = !hierarchy.is_v2() && mounts.contains(" - cgroup2 ");
    let hybrid =
        if also_v2 { ", hybrid (a version 2 tree without them is mounted too)" } else { "" };
    let mut findings = vec![Finding::found(name, format!("{hierarchy}{hybrid}"))];
    findings.extend(CONTROLLERS.iter().map(|&(name, c)| controller(&hierarchy, name, c)));
    findings
}

fn controller(hierarchy: &Hierarchy, name: &str, controller: Controller) -> Finding {
    let title = format!("controller {name}");
    let Some(mount) = hierarchy.mount(controller) else {
        let fix = "not needed: the freezer lists the same processes";
        return Finding::judged(&title, false, "not mounted", fix);
    };
    match try_group(mount) {
        Ok(()) => Finding::found(&title, format!("writable at {}", mount.display())),
        Err(error) => {
            let found = format!("{}: {error}", mount.display());
            Finding::missing(&title, found, "run as root; in a container with --cap-add SYS_ADMIN")
        }
    }
}

/// Makes a group and removes it.
fn try_group(mount: &Path) -> std::io::Result<()> {
    let group = mount.join(format!("dormouse-doctor-{}", std::process::id()));
    std::fs::create_dir(&group)?;
    std::fs::remove_dir(&group)
}
