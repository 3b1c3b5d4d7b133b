//! What a worker leaves behind when it is killed with SIGKILL.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use dormouse_worker::{
    cgroup::{CgroupController, CgroupHierarchy},
    process::ProcessIdentity,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::worker::{self, SOON, Worker, is_emulated, name, wait_for};

/// A time limit: ten times this span on an emulated machine.
fn within(span: Duration) -> Duration {
    if is_emulated() { 10 * span } else { span }
}

fn identities(pids: &[i32]) -> Vec<ProcessIdentity> {
    pids.iter().map(|pid| ProcessIdentity::of_process(*pid).unwrap()).collect()
}

fn trees_of(pid: u32) -> Vec<String> {
    let hierarchy = CgroupHierarchy::detect_version().unwrap();
    let mut found = Vec::new();
    for controller in [CgroupController::Cpu, CgroupController::Freezer, CgroupController::Memory] {
        for entry in fs::read_dir(hierarchy.mount_point(controller).unwrap()).unwrap() {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            if name.starts_with("dormouse-") && name.contains(&format!("-{pid}-")) {
                found.push(name);
            }
        }
    }
    found
}

pub(crate) fn kill_9_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, pids) = worker::lingering(directory.path());
    assert_eq!(pids.len(), 4, "{pids:?}");
    let everybody = identities(&pids);
    assert!(everybody.iter().all(ProcessIdentity::is_alive));
    child.kill().unwrap();
    let start = Instant::now();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    wait_for("running, frozen and restored tasks to be gone", || {
        let left: Vec<_> = everybody[..3].iter().filter(|p| p.is_alive()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    let took = start.elapsed();
    wait_for("groups and guardian to be gone", || {
        let trees = trees_of(child.id());
        if trees.is_empty() && !everybody[3].is_alive() {
            Ok(())
        } else {
            Err(format!("{trees:?}"))
        }
    });
    println!("  all tasks gone {took:?} after SIGKILL");
    assert!(took < within(Duration::from_secs(1)), "{took:?}");
    assert!(!Path::new("/run/dormouse/tasks").exists(), "the mounts went with the worker");
}

pub(crate) fn the_next_worker_sweeps() {
    let directory = tempfile::tempdir().unwrap();
    let (mut child, pids) = worker::lingering(directory.path());
    let everybody = identities(&pids);
    // The guardian dies first, so that the worker leaves orphans, frozen ones among them.
    kill(Pid::from_raw(pids[3]), Signal::SIGKILL).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let checkpoints = directory.path().join("checkpoints");
    // A whole one, a half-made one, and one of a run that was killed before.
    assert!(checkpoints.join("test/restored/00000001/manifest.json").exists());
    fs::create_dir_all(checkpoints.join("test/restored/00000007/images")).unwrap();
    fs::create_dir_all(checkpoints.join("former/1/00000001/images")).unwrap();
    assert!(everybody[..3].iter().all(ProcessIdentity::is_alive));

    let mut worker = Worker::start(directory.path());
    assert_eq!(worker.cleaned.groups.processes, 3);
    assert_eq!(worker.cleaned.groups.trees.len(), 1);
    assert_eq!(worker.cleaned.checkpoints.len(), 2, "{:?}", worker.cleaned);
    assert!(everybody.iter().all(|p| !p.is_alive()));
    assert!(trees_of(child.id()).is_empty());
    assert_eq!(fs::read_dir(checkpoints).unwrap().count(), 0, "checkpoints are left");
    assert!(!worker.workspace.task_directory(&name("running")).exists());
    // And it can work.
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["noop"]);
    task.wait_end(SOON).unwrap().unwrap();
}

/// A worker process that is killed when its test ends, however that is.
struct Killed(Child);

impl Killed {
    fn end(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // One that has been reaped needs none of it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A start in another namespace does not clean up after a worker that outlives the maker of its run's folder.
pub(crate) fn a_start_in_another_namespace() {
    let place = tempfile::tempdir().unwrap();
    // No process has such an id.
    let folder = place.path().join(format!("{}{}-0", worker::RUN, 1 << 30));
    let (child, pids) = worker::lingering(&folder.join("local-0"));
    let (mut child, everybody) = (Killed(child), identities(&pids));
    let sweep = |root: &str| {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]).arg(std::env::current_exe().unwrap());
        command.args(["worker", "sweep"]).arg(place.path()).arg(root);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap().wait_with_output().unwrap()
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let root = elsewhere.path().to_str().unwrap();
    let swept = sweep(root);
    assert!(swept.status.success() && swept.stdout == b"0\n", "{swept:?}");
    assert!(everybody.iter().all(ProcessIdentity::is_alive));
    assert!(!trees_of(child.0.id()).is_empty());
    assert!(folder.join("local-0/lock").exists());
    assert!(folder.join("local-0/checkpoints/test/restored/00000001").exists());
    // Nor is its root.
    let refused = sweep(folder.join("local-0").to_str().unwrap());
    assert!(!refused.status.success(), "{refused:?}");
    assert!(folder.join("local-0/lock").exists());
    child.end();
    let swept = sweep(root);
    assert!(swept.status.success() && swept.stdout == b"1\n", "{swept:?}");
    assert!(!folder.exists());
}
