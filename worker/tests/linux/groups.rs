//! Tests of control groups and of the start of tasks.

use std::{fs, time::Duration};

use dormouse_worker::{
    cgroup::{CgroupController, TierSlot},
    process::{ProcessEnd, ProcessError, ProgramCommand},
};

use crate::worker::{SOON, Worker, name, wait_for};

const KILLED: Option<ProcessEnd> = Some(ProcessEnd::Killed(9));

/// Waits for real time, to which a quota applies.
fn let_pass(time: Duration) {
    let end = std::time::Instant::now() + time;
    while let Some(left) = end.checked_duration_since(std::time::Instant::now()) {
        std::thread::park_timeout(left);
    }
}

pub(crate) fn quota_is_what_the_task_gets() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    vm.set_quota(0, Some(200_000)).unwrap();
    let task = worker.start_task(&name("t"), &vm, &["spin"]);
    // The first period is not a whole one.
    let_pass(Duration::from_millis(50));
    let (start, before) = (std::time::Instant::now(), vm.cpu_ns().unwrap());
    let_pass(Duration::from_millis(1500));
    let used = vm.cpu_ns().unwrap() - before;
    let share = used as f64 / start.elapsed().as_nanos() as f64;
    println!("  share at a quota of 20 %: {:.2} %", share * 100.0);
    // More would be a wrong quota; less may be the host's load.
    assert!(share < 0.22, "{share}");
    assert!(share > 0.02, "{share}");
    assert!(vm.read_throttling(0).unwrap().throttled_periods > 0);
    // The part before the whole: the task is at work in between.
    let slot = vm.slot_cpu_ns(0, TierSlot::A).unwrap();
    assert!(vm.vcpu_cpu_ns(0).unwrap() >= slot);
    assert_eq!(vm.slot_cpu_ns(0, TierSlot::B).unwrap(), 0);
    assert_eq!(vm.slot_pids(0, TierSlot::A).unwrap().into_iter().collect::<Vec<_>>(), [task.pid()]);
    assert_eq!(vm.slot_threads(0, TierSlot::A).unwrap(), [task.pid()]);
    assert!(vm.slot_pids(0, TierSlot::B).unwrap().is_empty());
    task.kill_all().unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), KILLED);
}

pub(crate) fn a_throttled_vm_freezes_promptly() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(2);
    vm.set_quota(0, Some(20_000)).unwrap();
    let task = worker.start_task(&name("t"), &vm, &["spin"]);
    wait_for("throttling", || {
        let throttled = vm.read_throttling(0).unwrap().throttled_periods;
        if throttled > 2 { Ok(()) } else { Err(format!("{throttled} periods")) }
    });
    let mut latencies = Vec::new();
    for _ in 0..10 {
        latencies.push(vm.freeze_vm(SOON).unwrap().latency());
        assert!(vm.is_frozen().unwrap());
        // A task counts as frozen a moment before it leaves its processor, and an emulated processor may stand still in that
        // moment. A VM that goes on uses a millisecond of each 50: those are the periods of such a quota.
        wait_for("a frozen VM to use no CPU time", || {
            let before = vm.cpu_ns().unwrap();
            let_pass(Duration::from_millis(110));
            let used = vm.cpu_ns().unwrap() - before;
            if used == 0 { Ok(()) } else { Err(format!("{used} ns in two periods of the quota")) }
        });
        vm.thaw_vm(SOON).unwrap();
    }
    let throttled = vm.read_throttling(0).unwrap().throttled_periods;
    wait_for("the quota to be back", || {
        let now = vm.read_throttling(0).unwrap().throttled_periods;
        if now > throttled { Ok(()) } else { Err(format!("{now} periods")) }
    });
    latencies.sort();
    println!("  freeze at a quota of 2 %: median {:?}, worst {:?}", latencies[5], latencies[9]);
    assert_eq!(vm.kill_all(SOON).unwrap(), 1);
    assert_eq!(task.wait_end(SOON).unwrap(), KILLED);
}

pub(crate) fn swapping_tiers() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let tasks = [(TierSlot::A, name("a")), (TierSlot::B, name("b"))].map(|(slot, name)| {
        let program = worker.program(&name, &["spin"]);
        program.start_task(&vm.slot_groups(0, slot).unwrap(), SOON).unwrap()
    });
    // One processor for both, so that there is something to compete for.
    for task in &tasks {
        let mut one = nix::sched::CpuSet::new();
        one.set(0).unwrap();
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(task.pid()), &one).unwrap();
    }
    for foreground in [TierSlot::A, TierSlot::B] {
        vm.set_foreground(0, foreground).unwrap();
        let_pass(Duration::from_millis(40));
        let used = |slot| vm.slot_cpu_ns(0, slot).unwrap();
        let before = (used(foreground), used(foreground.other_slot()));
        let_pass(Duration::from_millis(600));
        let fore = used(foreground) - before.0;
        let back = used(foreground.other_slot()) - before.1;
        println!("  {foreground:?} in the foreground: {fore} ns against {back} ns");
        assert!(fore > 5 * back, "{foreground:?}: {fore} {back}");
    }
    assert_eq!(vm.kill_all(SOON).unwrap(), 2);
    for task in tasks {
        assert_eq!(task.wait_end(SOON).unwrap(), KILLED);
    }
}

pub(crate) fn a_frozen_vm_can_be_killed() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["spin"]);
    assert_eq!(vm.list_pids().unwrap().into_iter().collect::<Vec<_>>(), [task.pid()]);
    vm.freeze_vm(SOON).unwrap();
    assert_eq!(vm.kill_all(SOON).unwrap(), 1);
    assert_eq!(task.wait_end(SOON).unwrap(), KILLED);
    assert!(vm.list_pids().unwrap().is_empty());
    vm.remove(SOON).unwrap();
    assert!(vm.cpu_ns().is_err());
}

pub(crate) fn tasks_are_isolated_and_reaped() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let task = worker.start_task(&name("t"), &vm, &["introspect"]);
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(0)));
    let said =
        fs::read_to_string(worker.workspace.task_directory(&name("t")).join("stdout")).unwrap();
    // /dev/fd is the host's /proc, in which the task does not exist under its own PID.
    assert!(said.starts_with("pid 1\nppid 0\nsid 1\n"), "{said}");
    assert!(said.ends_with("env 0\n"), "{said}");
    let task = worker.start_task(&name("e"), &vm, &["exit", "7"]);
    assert_eq!(task.wait_end(SOON).unwrap(), Some(ProcessEnd::Exited(7)));
    assert!(matches!(task.wait_end(SOON), Err(ProcessError::Process { action: "wait for", .. })));
    let task = worker.start_task(&name("s"), &vm, &["spin"]);
    // A start is over once the program has replaced the worker's image; the kernel closes what it
    // is not to inherit right after that.
    wait_for("only the standard streams to be open", || {
        let entries = fs::read_dir(format!("/proc/{}/fd", task.pid())).unwrap();
        let fds: Vec<_> =
            entries.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).collect();
        if fds.len() == 3 { Ok(()) } else { Err(format!("{fds:?}")) }
    });
    assert_eq!(task.wait_end(Duration::from_millis(5)).unwrap(), None);
    task.kill_all().unwrap();
    assert_eq!(task.wait_end(SOON).unwrap(), KILLED);
    task.kill_all().unwrap();
}

pub(crate) fn failures_to_start_say_why() {
    let (mut worker, directory) = Worker::temporary();
    let vm = worker.vm(1);
    let entry = vm.slot_groups(0, TierSlot::A).unwrap();
    let start = |program: ProgramCommand| {
        let error = program.start_task(&entry, SOON).unwrap_err();
        let why = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        format!("{error}: {why}")
    };
    let said = start(ProgramCommand::new("/nowhere/task", directory.path()));
    assert!(
        said.starts_with("can't start /nowhere/task: executing it failed: No such file"),
        "{said}"
    );
    let said = start(ProgramCommand::new("/bin/true", "/nowhere"));
    assert!(
        said.starts_with("can't start /bin/true: entering its directory failed: No such file"),
        "{said}"
    );
    let said = start(ProgramCommand::new("/bin/true", directory.path()).arg("a\0b"));
    assert!(said.starts_with("can't start /bin/true: an argument holds a NUL byte"), "{said}");
    assert!(vm.list_pids().unwrap().is_empty());
}

pub(crate) fn a_late_start_is_given_up() {
    let (mut worker, directory) = Worker::temporary();
    let vm = worker.vm(1);
    vm.freeze_vm(SOON).unwrap();
    let entry = vm.slot_groups(0, TierSlot::A).unwrap();
    let children = || fs::read_to_string("/proc/thread-self/children").unwrap();
    let before = children();
    let late = ProgramCommand::new("/bin/true", directory.path())
        .start_task(&entry, Duration::from_millis(50));
    assert!(matches!(late, Err(ProcessError::SpawnLate { .. })), "{late:?}");
    // Whoever thaws it lets it die, and somebody reaps it.
    vm.thaw_vm(SOON).unwrap();
    wait_for("the late process to be gone", || {
        let (pids, now) = (vm.list_pids().unwrap(), children());
        if pids.is_empty() && now == before { Ok(()) } else { Err(now) }
    });
}

pub(crate) fn memory_counts_against_the_vm() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.tree.create_vm(99, 1, Some(24 << 20)).unwrap();
    let small = worker.start_task(&name("small"), &vm, &["count", "8", "1000000000"]);
    worker.await_step(&name("small"), 1);
    let used = vm.memory_bytes().unwrap();
    assert!((8 << 20..24 << 20).contains(&used), "{used}");
    small.kill_all().unwrap();
    assert_eq!(small.wait_end(SOON).unwrap(), KILLED);
    let large = worker.start_task(&name("large"), &vm, &["count", "64", "1"]);
    assert_eq!(large.wait_end(SOON).unwrap(), KILLED, "the limit is enforced");
    // The other was killed too, but not for that.
    assert!(vm.has_lost_one_for_memory(0).unwrap());
    assert!(!vm.has_lost_one_for_memory(0).unwrap());
    let _ = worker.vm(1);
}

/// A cap survives a promotion: the background's group is replaced when the foreground changes.
pub(crate) fn a_cap_outlives_a_promotion() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    let mount = worker.tree.hierarchy().mount_point(CgroupController::Cpu).unwrap();
    let group = mount.join(worker.tree.name().to_string()).join("vm1/cpu0/a");
    let capped = || {
        let file = if worker.tree.hierarchy().is_v2() { "cpu.max" } else { "cpu.cfs_quota_us" };
        fs::read_to_string(group.join(file)).unwrap().starts_with("2000")
    };
    vm.set_quotas(0, 200_000, [Some(100_000), None]).unwrap();
    assert!(capped());
    vm.promote_slot(0, TierSlot::B, SOON).unwrap();
    assert!(capped());
}

/// While one slot is exempt, its neighbour has the quota, and the vCPU's quota is restored above it whatever periods
/// the quotas have: the kernel refuses a quota below that of a group inside.
pub(crate) fn quotas_change_while_a_slot_is_exempt() {
    let (mut worker, _directory) = Worker::temporary();
    let vm = worker.vm(1);
    // Under 5 % the period is longer the smaller the share is.
    let shares = [20_000, 45_000, 33_000, 50_000, 26_000, 300_000, 41_000, 100_000];
    for (n, from) in shares.into_iter().enumerate() {
        for to in shares {
            vm.set_quota(0, Some(from)).unwrap();
            let slot = if n % 2 == 0 { TierSlot::A } else { TierSlot::B };
            let lifted = vm.lift_quota(0, slot).unwrap();
            vm.set_quota(0, Some(to)).unwrap();
            drop(lifted);
            // Where it was put back, the neighbour's is gone: the vCPU can have less again.
            vm.set_quota(0, Some(to / 2)).unwrap();
        }
    }
}
