//! Coordinators that want more of a worker than any run: refused, said, and what runs beside it goes on.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    CreateVm, Program, StartTask, TaskFailed, TaskFinished, VmFailed, command::Command,
    report::Report,
};

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::{create, is_task, over, vector},
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

/// Task 8 comes to its end as if nothing had been.
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
