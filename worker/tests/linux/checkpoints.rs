//! Tests of checkpoints with the real CRIU.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use dormouse_worker::{
    cgroup::TierSlot,
    checkpointer,
    criu::{self, AfterDump},
    jail::{JailDemand, ViewOccupant},
    process::{ProcessEnd, await_stop, resume_process},
    store::SavedProgress,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    harness,
    worker::{self, SOON, Worker, name},
};

const STEPS: &str = "4000";

/// The output and the result of the task in an undisturbed run.
fn reference(worker: &mut Worker, mib: &str, steps: &str) -> (String, String) {
    let vm = worker.vm(1);
    let task = worker.start_task(&name("reference"), &vm, &["count", mib, steps]);
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    outcome(worker, "reference")
}

fn outcome(worker: &Worker, task: &str) -> (String, String) {
    let directory = worker.workspace.task_directory(&name(task));
    let read = |file| fs::read_to_string(directory.join(file)).unwrap();
    (read("stdout"), read("result"))
}

fn no_criu_left() {
    let children = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    for pid in children.split_whitespace() {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        assert!(!comm.contains("criu") && !comm.contains("loader"), "{pid} is {comm}");
    }
}

pub(crate) fn dump_and_stop_then_restore() {
    let (mut worker, _directory) = Worker::temporary();
    let expected = reference(&mut worker, "8", STEPS);
    let (one, two) = (worker.vm(1), worker.tree.create_vm(50, 2, Some(64 << 20)).unwrap());
    let task = worker.start_held(&name("t"), &one, "8", STEPS);
    worker.await_step(&name("t"), 1200);
    let checkpointer = worker.checkpointer();
    let taken = checkpointer
        .take_checkpoint(
            &name("t"),
            task.pid(),
            (&one, 0, TierSlot::A),
            AfterDump::Kill,
            SOON,
            &mut |_| Ok(()),
            || SavedProgress { attempt: 1, progress_ppm: 300_000, cpu_ns: one.cpu_ns().unwrap() },
        )
        .unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
    let manifest = taken.checkpoint.manifest();
    let open: Vec<_> =
        manifest.open_files.iter().filter_map(|f| f.path.file_name()?.to_str()).collect();
    assert_eq!(open, ["progress", "stderr", "stdout"]);
    assert!(manifest.total_bytes() > 8 << 20);
    let step = worker.step(&name("t"));
    // Without it each call would examine the kernel again, for 25 ms.
    assert!(Path::new("/run/criu.kdat").exists(), "CRIU keeps what it knows of the kernel");

    two.set_quota(1, Some(50_000)).unwrap();
    let restored = checkpointer.restore_task(&name("t"), &two, 1, TierSlot::B, SOON).unwrap();
    assert!(restored.damaged.is_empty());
    let pid = restored.task.pid();
    assert_eq!(two.list_pids().unwrap().into_iter().collect::<Vec<_>>(), [pid]);
    assert_eq!(two.slot_cpu_ns(0, TierSlot::A).unwrap(), 0);
    // Pages were charged to the new VM as they were restored.
    assert!(two.memory_bytes().unwrap() > 8 << 20);
    resume_process(pid).unwrap();
    assert!(worker.step(&name("t")) >= step);
    two.set_quota(1, None).unwrap();
    worker.let_go(&name("t"));
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    assert!(two.slot_cpu_ns(1, TierSlot::B).unwrap() > 0);
    assert_eq!(outcome(&worker, "t"), expected);
    no_criu_left();
}

/// A task with a disk quota can be moved. Its directory is a file system in memory, mounted in the worker's namespace
/// and visible in the jail's.
pub(crate) fn a_task_of_a_quota_moves() {
    let directory = tempfile::tempdir().unwrap();
    let mut worker = Worker::start_jailed(directory.path(), JailDemand::Full);
    let expected = reference(&mut worker, "4", STEPS);
    let (one, two) = (worker.vm(1), worker.vm(1));
    let name = name("7");
    let lay_over = || {
        worker.workspace.create_task(&name).unwrap();
        worker.workspace.bound_task(&name, 1 << 20).unwrap();
    };
    lay_over();
    let task = worker.start_held(&name, &one, "4", STEPS);
    worker.await_step(&name, 1200);
    let work = worker.workspace.task_directory(&name).join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("half"), "done").unwrap();
    let (checkpointer, at) = (worker.checkpointer(), (&one, 0, TierSlot::A));
    let mut nothing = |_| Ok(());
    let progress = || SavedProgress { attempt: 1, ..SavedProgress::default() };
    checkpointer
        .take_checkpoint(&name, task.pid(), at, AfterDump::Kill, SOON, &mut nothing, progress)
        .unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
    worker.workspace.remove_task(&name).unwrap();
    lay_over();
    let restored = checkpointer.restore_task(&name, &two, 0, TierSlot::A, SOON).unwrap();
    assert!(restored.damaged.is_empty());
    assert_eq!(fs::read_to_string(work.join("half")).unwrap(), "done");
    resume_process(restored.task.pid()).unwrap();
    worker.let_go(&name);
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    assert_eq!(outcome(&worker, "7"), expected);
    worker.workspace.remove_task(&name).unwrap();
    no_criu_left();
}

pub(crate) fn roll_back() {
    let (mut worker, _directory) = Worker::temporary();
    let expected = reference(&mut worker, "4", STEPS);
    let vm = worker.vm(1);
    let task = worker.start_held(&name("t"), &vm, "4", STEPS);
    worker.await_step(&name("t"), 1100);
    let checkpointer = worker.checkpointer();
    let take = || {
        checkpointer
            .take_checkpoint(
                &name("t"),
                task.pid(),
                (&vm, 0, TierSlot::A),
                AfterDump::Continue,
                SOON,
                &mut |_| Ok(()),
                SavedProgress::default,
            )
            .unwrap();
        resume_process(task.pid()).unwrap();
    };
    take();
    // It runs on, and its output grows beyond what the checkpoint knows.
    worker.await_step(&name("t"), 2100);
    take();
    worker.let_go(&name("t"));
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    assert_eq!(outcome(&worker, "t"), expected);
    let restored = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, SOON).unwrap();
    assert_eq!(restored.checkpoint.manifest().sequence, 2);
    resume_process(restored.task.pid()).unwrap();
    worker.let_go(&name("t"));
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    assert_eq!(outcome(&worker, "t"), expected);
}

pub(crate) fn damaged_images_fall_back() {
    let (mut worker, _directory) = Worker::temporary();
    let expected = reference(&mut worker, "4", STEPS);
    let vm = worker.vm(1);
    let task = worker.start_held(&name("t"), &vm, "4", STEPS);
    let checkpointer = worker.checkpointer();
    let mut taken = Vec::new();
    for step in [500, 1000, 1500] {
        worker.await_step(&name("t"), step);
        let after = if step == 1500 { AfterDump::Kill } else { AfterDump::Continue };
        taken.push(
            checkpointer
                .take_checkpoint(
                    &name("t"),
                    task.pid(),
                    (&vm, 0, TierSlot::A),
                    after,
                    SOON,
                    &mut |_| Ok(()),
                    SavedProgress::default,
                )
                .unwrap(),
        );
        resume_process(task.pid()).unwrap();
    }
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
    // One bit of the newest's memory, and the end of a small file of the one before.
    let pages = taken[2].checkpoint.images_directory().join("pages-1.img");
    let mut bytes = fs::read(&pages).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&pages, bytes).unwrap();
    let core = taken[1].checkpoint.images_directory().join("core-1.img");
    let bytes = fs::read(&core).unwrap();
    fs::write(&core, &bytes[..bytes.len() - 1]).unwrap();

    let restored = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, SOON).unwrap();
    let damaged: Vec<u64> = restored.damaged.iter().map(|d| d.sequence).collect();
    assert_eq!(damaged, [3, 2]);
    let said = restored.damaged[0].error.to_string();
    assert!(said.contains("pages-1.img does not match its checksum"), "{said}");
    assert_eq!(restored.checkpoint.manifest().sequence, 1);
    resume_process(restored.task.pid()).unwrap();
    assert_eq!(vm.list_pids().unwrap().len(), 1, "nothing of the damaged one is left");
    worker.let_go(&name("t"));
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    assert_eq!(outcome(&worker, "t"), expected);

    fs::remove_dir_all(taken[0].checkpoint.images_directory()).unwrap();
    let error = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, SOON).unwrap_err();
    let checkpointer::CheckpointerError::NoCheckpoint { damaged, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(damaged.len(), 3);
}

pub(crate) fn a_refused_restore() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["count", "4", "1000000000"]);
    worker.await_step(&name("t"), 10);
    let checkpointer = worker.checkpointer();
    let taken = checkpointer
        .take_checkpoint(
            &name("t"),
            task.pid(),
            (&vm, 0, TierSlot::A),
            AfterDump::Kill,
            SOON,
            &mut |_| Ok(()),
            SavedProgress::default,
        )
        .unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    // Straight to CRIU, past what would have put this right.
    fs::write(worker.workspace.task_directory(&name("t")).join("progress"), "shorter").unwrap();
    let checkpoint = &taken.checkpoint;
    let occupant = ViewOccupant {
        user: None,
        directory: worker.workspace.task_directory(&name("t")),
        names: None,
    };
    let restore = |criu: criu::CriuProgram, deadline| {
        criu.restore_process(
            &checkpoint.images_directory(),
            checkpoint.directory(),
            &vm,
            0,
            TierSlot::A,
            &occupant,
            deadline,
            &mut |_| Ok(()),
        )
    };
    let error = restore(harness::criu(), SOON).unwrap_err().to_string();
    assert!(error.contains("bad size 7 (expect 20)") && error.contains("restore.log"), "{error}");
    let error = restore(criu::CriuProgram::new("/nowhere/criu"), SOON).unwrap_err().to_string();
    assert!(error.contains("can't start /nowhere/criu"), "{error}");
    let error = restore(criu::CriuProgram::new("/bin/true"), SOON).unwrap_err().to_string();
    assert!(error.contains("restore ended without an answer (it exited with status 0)"), "{error}");
    assert!(vm.list_pids().unwrap().is_empty());
    // No group is left for any of them.
    vm.remove(SOON).unwrap();
    no_criu_left();
}

pub(crate) fn deadline() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["count", "64", "1000000000"]);
    worker.await_step(&name("t"), 1);
    let checkpointer = worker.checkpointer();
    let taken = checkpointer
        .take_checkpoint(
            &name("t"),
            task.pid(),
            (&vm, 0, TierSlot::A),
            AfterDump::Kill,
            SOON,
            &mut |_| Ok(()),
            SavedProgress::default,
        )
        .unwrap();
    task.wait_end(SOON).unwrap().unwrap();
    let occupant = ViewOccupant {
        user: None,
        directory: worker.workspace.task_directory(&name("t")),
        names: None,
    };
    for millis in [1, 3, 5, 8, 10, 12, 15, 20, 25, 30, 35, 40] {
        let result = harness::criu().restore_process(
            &taken.checkpoint.images_directory(),
            taken.checkpoint.directory(),
            &vm,
            0,
            TierSlot::A,
            &occupant,
            Duration::from_millis(millis),
            &mut |_| Ok(()),
        );
        match result {
            Err(criu::CriuError::Late { .. }) => assert!(vm.list_pids().unwrap().is_empty()),
            // A fast machine may make it in the longer times.
            Ok(task) if millis >= 10 => {
                task.kill_all().unwrap();
                task.wait_end(SOON).unwrap().unwrap();
            }
            other => panic!("{millis} ms: {other:?}"),
        }
        no_criu_left();
    }
    let restored = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, SOON).unwrap();
    restored.task.kill_all().unwrap();
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
}

/// A task with much memory is not given up: its checkpoint and restore may take longer than the limit, as its size
/// demands.
pub(crate) fn memory_has_its_time() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    // So much that its time covers an emulated machine's start of CRIU.
    let task = worker.start_task(&name("t"), &vm, &["count", "160", "1000000000"]);
    worker.await_step(&name("t"), 1);
    let checkpointer = worker.checkpointer();
    let (brief, seats) = (Duration::from_millis(1), (&vm, &[(0, TierSlot::A)][..]));
    let take = |after| {
        checkpointer.take_tree(&name("t"), task.pid(), seats, after, brief, SavedProgress::default)
    };
    take(AfterDump::Continue).unwrap();
    take(AfterDump::Kill).unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
    let restored = checkpointer.restore_task(&name("t"), &vm, 0, TierSlot::A, brief).unwrap();
    restored.task.kill_all().unwrap();
    assert_eq!(restored.task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
    let error = take(AfterDump::Kill).unwrap_err();
    assert!(matches!(error, checkpointer::CheckpointerError::Process { .. }), "{error:?}");
}

/// A CRIU that dies while its code is in the task has damaged the task, which stays stopped.
pub(crate) fn a_criu_that_dies() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["count", "4", "1000000000"]);
    worker.await_step(&name("t"), 10);
    let ours = [task.pid(), worker.guardian.identity().pid];
    let kill_criu = || {
        let children = fs::read_to_string("/proc/thread-self/children").unwrap();
        let criu = children.split_whitespace().map(|pid| pid.parse().unwrap());
        let criu: Vec<i32> = criu.filter(|pid| !ours.contains(pid)).collect();
        assert_eq!(criu.len(), 1, "{criu:?}");
        kill(Pid::from_raw(criu[0]), Signal::SIGKILL).unwrap();
        SavedProgress::default()
    };
    let spoilt = worker
        .checkpointer()
        .take_checkpoint(
            &name("t"),
            task.pid(),
            (&vm, 0, TierSlot::A),
            AfterDump::Continue,
            SOON,
            &mut |_| Ok(()),
            kill_criu,
        )
        .unwrap_err();
    assert!(spoilt.may_have_damaged(), "{spoilt:?}");
    await_stop(task.pid(), SOON).unwrap();
    assert!(worker.store.complete_numbers(&name("t")).unwrap().is_empty());
    no_criu_left();
    task.kill_all().unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Killed(9)));
}

pub(crate) fn at_the_same_time() {
    let (mut worker, _directory) = Worker::temporary();
    let vms: Vec<_> = (0..6).map(|_| worker.vm(1)).collect();
    let checkpointer = worker.checkpointer();
    let (worker, checkpointer) = (&worker, &checkpointer);
    std::thread::scope(|scope| {
        for (n, vm) in vms.iter().enumerate() {
            scope.spawn(move || {
                let name = name(&format!("t{n}"));
                let mut task = worker.start_task(&name, vm, &["count", "4", "1000000000"]);
                for round in 0..4 {
                    let before = worker.step(&name);
                    worker.await_step(&name, before + 20);
                    checkpointer
                        .take_checkpoint(
                            &name,
                            task.pid(),
                            (vm, 0, TierSlot::A),
                            AfterDump::Kill,
                            SOON,
                            &mut |_| Ok(()),
                            SavedProgress::default,
                        )
                        .unwrap();
                    assert_eq!(
                        task.wait_end(SOON).unwrap(),
                        Some(ProcessEnd::Killed(9)),
                        "{round}"
                    );
                    task = checkpointer.restore_task(&name, vm, 0, TierSlot::B, SOON).unwrap().task;
                    resume_process(task.pid()).unwrap();
                }
                task.kill_all().unwrap();
                task.wait_end(SOON).unwrap().unwrap();
            });
        }
    });
}

pub(crate) fn another_worker_restores() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let sent = worker::process("export", a.path()).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(sent.stdout.len() > 8 << 20);
    // Nothing but the stream reaches the other worker, which is in another PID namespace too.
    drop(a);
    let worker = worker::process("finish", b.path());
    let mut other = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc"])
        .arg(worker.get_program())
        .args(worker.get_args())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    other.stdin.take().unwrap().write_all(&sent.stdout).unwrap();
    let (mut result, mut lines) = (String::new(), String::new());
    other.stdout.take().unwrap().read_to_string(&mut result).unwrap();
    other.stderr.take().unwrap().read_to_string(&mut lines).unwrap();
    assert!(other.wait().unwrap().success(), "{lines}");
    let (mut worker, _directory) = Worker::temporary();
    let (stdout, expected) = reference(&mut worker, "8", "6000");
    assert_eq!(result, expected);
    assert_eq!(lines, stdout);
}
