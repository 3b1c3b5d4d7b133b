//! Coordinators that demand more of a worker than any run does: the demand is refused with a report, and tasks beside
//! it run on.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    CreateVm, Nothing, OwnProgram, Program, StartTask, TaskFailed, TaskFinished, VmFailed, VmRef,
    command::Command, own_program::Saves, report::Report,
};

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::{create, is_task, over, stop, vector},
};

/// A worker with a VM of two vCPUs on which task 8 runs.
fn busy(fake: &Fake) -> (Agent, Seat<'_>) {
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    assert!(seat.ready().is_empty());
    seat.command(create(1, 2));
    await_report!(seat, VmCreated);
    seat.command(Command::StartTask(vector(1, 8, 1, 60)));
    await_report!(seat, TaskStarted, s => is_task(s.task, 8));
    (agent, seat)
}

/// Checks that task 8 comes to its end as if nothing had happened.
fn goes_on(agent: Agent, mut seat: Seat<'_>) {
    let finished: TaskFinished = await_report!(seat, TaskFinished, f => is_task(f.task, 8));
    assert!(finished.verified, "{finished:?}");
    over(agent, &seat);
}

/// D1: `--progress PATH` among the arguments of a program overwrote any file of root's.
pub(crate) fn arguments_reach_no_files() {
    let fake = Fake::start();
    let (agent, mut seat) = busy(&fake);
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("authorized_keys");
    fs::write(&victim, "ours").unwrap();
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let path = victim.to_str().unwrap().to_owned();
    let attacks = [
        vec!["vector".to_owned(), "--progress".to_owned(), path.clone()],
        vec!["vector".to_owned(), format!("--result={path}")],
        vec!["probe".to_owned(), "clock".to_owned(), path.clone()],
        vec![path.clone()],
    ];
    for (task, args) in (20..).zip(attacks) {
        let program = Some(Program { args });
        seat.command(Command::StartTask(StartTask { program, ..vector(1, task, 1, 6) }));
        let failed: TaskFailed = await_report!(seat, TaskFailed, f => is_task(f.task, task));
        assert!(failed.why.contains("program"), "{failed:?}");
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "ours");
    goes_on(agent, seat);
}

/// D6: 4e9 vCPUs ended the worker, and so did 20,000 VMs; 100,000 vCPUs kept it busy for a minute.
pub(crate) fn a_worker_has_bounds_of_its_own() {
    const MANY: u32 = 20_000;
    let fake = Fake::start();
    let (agent, mut seat) = busy(&fake);
    let began = Instant::now();
    for (vm, vcpus) in [(2, 4_000_000_000), (3, 100_000), (4, u32::MAX)] {
        seat.command(create(vm, vcpus));
        let failed: VmFailed = await_report!(seat, VmFailed, f => f.vm == vm);
        assert!(failed.why.contains("vCPUs"), "{failed:?}");
    }
    let kind = "k".repeat(100_000);
    seat.command(Command::CreateVm(CreateVm { vm: 5, kind, vcpus: 1, ..CreateVm::default() }));
    let failed: VmFailed = await_report!(seat, VmFailed, f => f.vm == 5);
    assert!(failed.why.contains("bytes of a name") && failed.why.len() < 4096, "{failed:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    seat.commands((100..100 + MANY).map(|vm| create(vm, 1)).collect());
    await_report!(seat, VmFailed, f => f.vm == 100 + MANY - 1);
    let made = seat.heard().iter().filter(|r| matches!(r, Report::VmCreated(_))).count();
    assert!(made <= 512, "{made}");
    goes_on(agent, seat);
}

/// Whether any process of this host sleeps for this long.
fn somebody_sleeps(seconds: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.map(|it| fs::read(it.path().join("cmdline")).unwrap_or_default()).any(|words| {
        words.split(|byte| *byte == 0).eq([&b"/bin/sleep"[..], seconds.as_bytes(), b""])
    })
}

/// Waits until a process sleeps for this long, or (`is` is false) until none does.
fn await_sleep(seconds: &str, is: bool) {
    let began = Instant::now();
    while somebody_sleeps(seconds) != is {
        assert!(began.elapsed() < Duration::from_secs(20), "{seconds}: not {is} for long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A check that never ends is stopped when its task is no longer wanted, or when its VM is gone.
pub(crate) fn a_check_goes_with_its_task() {
    let fake = Fake::start();
    let (agent, mut seat) = busy(&fake);
    let checked = |task: u32, seconds: &str| {
        let own = OwnProgram {
            argv: vec!["/bin/true".to_owned()],
            verify: vec!["/bin/sleep".to_owned(), seconds.to_owned()],
            directory_bytes: 1 << 20,
            processes: 8,
            saves: Some(Saves::ByNothing(Nothing {})),
            ..OwnProgram::default()
        };
        StartTask { own: Some(own), program: None, ..vector(task, task, 1, 6) }
    };
    for (task, seconds) in [(30, "86123.5"), (31, "86124.5")] {
        seat.command(create(task, 1));
        await_report!(seat, VmCreated);
        seat.command(Command::StartTask(checked(task, seconds)));
        await_report!(seat, TaskStarted, s => is_task(s.task, task));
        await_sleep(seconds, true);
    }
    seat.command(Command::StopTask(stop(30, 30, 1, false)));
    await_report!(seat, TaskStopped, s => is_task(s.task, 30));
    await_sleep("86123.5", false);
    // Its place is free again.
    seat.command(Command::StartTask(vector(30, 32, 1, 6)));
    await_report!(seat, TaskFinished, f => is_task(f.task, 32));
    seat.command(Command::DestroyVm(VmRef { vm: 31 }));
    await_report!(seat, VmDestroyed);
    await_sleep("86124.5", false);
    goes_on(agent, seat);
}
