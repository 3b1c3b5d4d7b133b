//! What is left after a worker was killed with SIGKILL.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::Path,
    time::{Duration, Instant},
};

use dormouse_worker::{
    cgroup::{Controller, Hierarchy},
    process::Identity,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::worker::{self, SOON, Worker, name, wait_for};

fn identities(pids: &[i32]) -> Vec<Identity> {
    pids.iter().map(|pid| Identity::of(*pid).unwrap()).collect()
}

fn trees_of(pid: u32) -> Vec<String> {
    let hierarchy = Hierarchy::detect().unwrap();
    let mut found = Vec::new();
    for controller in [Controller::Cpu, Controller::Freezer, Controller::Memory] {
        for entry in fs::read_dir(hierarchy.mount(controller).unwrap()).unwrap() {
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
    assert!(everybody.iter().all(Identity::is_alive));
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
    assert!(took < Duration::from_secs(1), "{took:?}");
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
    let half_made = directory.path().join("checkpoints/test/restored/00000007/images");
    fs::create_dir_all(&half_made).unwrap();
    assert!(everybody[..3].iter().all(Identity::is_alive));

    let mut worker = Worker::start(directory.path());
    assert_eq!(worker.cleaned.groups.processes, 3);
    assert_eq!(worker.cleaned.groups.trees.len(), 1);
    assert_eq!(worker.cleaned.checkpoints.len(), 1);
    assert!(everybody.iter().all(|p| !p.is_alive()));
    assert!(trees_of(child.id()).is_empty());
    assert!(!half_made.exists());
    assert_eq!(worker.store.complete(&name("restored")).unwrap(), [1], "checkpoints are kept");
    assert!(!worker.workspace.task(&name("running")).exists());
    // And it can work.
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["noop"]);
    task.wait(SOON).unwrap().unwrap();
}
