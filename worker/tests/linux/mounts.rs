//! Tests with mounts as a container engine makes them.

use std::{fs, path::Path};

use dormouse_worker::{
    cgroup::{CgroupController, CgroupHierarchy, TierSlot},
    criu::AfterDump,
    process::{ProcessEnd, resume_process},
    store::SavedProgress,
};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
};

use crate::worker::{SOON, Worker, name};

/// Makes `/proc/sys` and the control groups read-only for this process, as Docker does.
fn as_in_a_container(hierarchy: &CgroupHierarchy) {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    let groups = [
        CgroupController::Cpu,
        CgroupController::Cpuacct,
        CgroupController::Memory,
        CgroupController::Freezer,
    ];
    let groups = groups.into_iter().filter_map(|controller| hierarchy.mount_point(controller));
    for path in groups.chain([Path::new("/proc/sys")]) {
        mount(Some(path), path, none, MsFlags::MS_BIND, none).unwrap();
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
        mount(none, path, none, read_only | MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, none).unwrap();
    }
}

/// The options of the last mount on a path (proc(5)).
fn options(path: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let on = |line: &&str| line.split(' ').nth(1).map(Path::new) == Some(path);
    mounts.lines().rfind(on).unwrap().split(' ').nth(3).unwrap().to_owned()
}

pub(crate) fn read_only_mounts() {
    let hierarchy = CgroupHierarchy::detect_version().unwrap();
    let cpu = hierarchy.mount_point(CgroupController::Cpu).unwrap().to_owned();
    as_in_a_container(&hierarchy);
    assert!(fs::create_dir(cpu.join("dormouse-test")).is_err(), "it is read-only");
    // It enters a namespace of its own, starts a guardian there, and makes its groups.
    let (mut worker, _directory) = Worker::temporary();
    let options = options(&cpu);
    let has = |option| options.split(',').any(|of| of == option);
    assert!(has("rw") && has("nosuid") && has("noexec"), "{options}");
    let vm = worker.vm(1);
    let task = worker.start_held(&name("t"), &vm, "1", "2000");
    worker.await_step(&name("t"), 10);
    let checkpointer = worker.checkpointer();
    let place = (&vm, 0, TierSlot::A);
    let (kill, noted) = (AfterDump::Kill, SavedProgress::default);
    checkpointer
        .take_checkpoint(&name("t"), task.pid(), place, kill, SOON, &mut |_| Ok(()), noted)
        .unwrap();
    task.wait_end(SOON).unwrap();
    let restored = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, SOON).unwrap();
    worker.let_go(&name("t"));
    resume_process(restored.task.pid()).unwrap();
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
}
