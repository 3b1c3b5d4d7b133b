//! Workers that join, leave, and die.

use std::time::Duration;

use dormouse_proto::v1::{
    Kept, StartTask, TaskFinished, TaskStarted, VmRef, Welcome, command::Command, report,
};
use nix::sys::signal::Signal;

use crate::{
    agent::{Agent, until},
    await_report,
    coordinator::{Fake, run_name, welcome},
    tasks::{create, is_task, over, stop, vector, with_vm},
};

const SECONDS: fn(u64) -> Duration = Duration::from_secs;

pub(crate) fn a_task_moves() {
    let fake = Fake::start();
    // Each is unheard while the other has its part.
    let patient = || Welcome { lost_after_ms: 20_000, ..welcome() };
    let mut first = fake.seat("w1", patient());
    let one = Agent::start(&fake.address.to_string(), "w1");
    first.ready();
    first.command(create(1, 2));
    await_report!(first, VmCreated);
    let mut second = fake.seat("w2", patient());
    let two = Agent::start(&fake.address.to_string(), "w2");
    second.ready();
    second.command(create(2, 1));
    await_report!(second, VmCreated);
    first.command(Command::StartTask(StartTask {
        checkpoints_ppm: vec![500_000],
        emulated_checkpoint_cost_us: 3_000_000,
        ..vector(1, 7, 1, 60)
    }));
    let taken = await_report!(first, CheckpointTaken);
    first.command(Command::FreezeVm(VmRef { vm: 1 }));
    await_report!(first, VmFrozen);
    first.command(Command::StopTask(stop(1, 7, 1, false)));
    second.command(Command::StartTask(StartTask {
        from: Some(Kept { checkpoint: taken.checkpoint, attempt: 1, done_ppm: taken.done_ppm }),
        ..vector(2, 7, 2, 60)
    }));
    let started: TaskStarted = await_report!(second, TaskStarted);
    assert_eq!(started.done_ppm, taken.done_ppm);
    println!(
        "dumped in {} us, fetched and restored in {} us",
        taken.real_dump_us, started.real_took_us
    );
    let finished: TaskFinished = await_report!(second, TaskFinished);
    assert!(finished.verified);
    // Only the second half was done here.
    assert!((400_000..650_000).contains(&finished.real_cpu_us), "{finished:?}");
    over(one, &first);
    over(two, &second);
}

pub(crate) fn a_damaged_checkpoint() {
    let fake = Fake::start();
    let (one, mut first) = with_vm(&fake);
    first.command(Command::StartTask(StartTask {
        checkpoints_ppm: vec![250_000, 500_000, 750_000],
        emulated_checkpoint_cost_us: 3_000_000,
        ..vector(1, 7, 1, 60)
    }));
    let older = await_report!(first, CheckpointTaken, c => c.checkpoint == 1);
    let newer = await_report!(first, CheckpointTaken, c => c.checkpoint == 2);
    over(one, &first);
    let order = |attempt| StartTask {
        from: Some(Kept { checkpoint: 2, attempt: 1, done_ppm: newer.done_ppm }),
        ..vector(2, 7, attempt, 60)
    };
    for (from, expected) in [(2, older.done_ppm), (1, 0)] {
        // Damaged twice is whole again.
        fake.damage(7, from);
        let mut second = fake.seat("w2", welcome());
        let two = Agent::start(&fake.address.to_string(), "w2");
        second.ready();
        second.command(create(2, 1));
        if from == 1 {
            fake.damage(7, 2);
        }
        second.command(Command::StartTask(order(2)));
        let started: TaskStarted = await_report!(second, TaskStarted);
        assert_eq!(started.done_ppm, expected);
        let finished: TaskFinished = await_report!(second, TaskFinished);
        assert!(finished.verified);
        over(two, &second);
    }
}

pub(crate) fn a_broken_session_is_resumed() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let incarnation = seat.hello.as_ref().unwrap().incarnation;
    seat.command(Command::StartTask(vector(1, 7, 1, 30)));
    await_report!(seat, TaskStarted);
    seat.cut();
    // Written down while there is no connection; handed over at the reconnect.
    seat.command(Command::StartTask(vector(1, 8, 1, 6)));
    let finished: TaskFinished = await_report!(seat, TaskFinished, f => is_task(f.task, 7));
    assert!(finished.verified);
    await_report!(seat, TaskFinished, f => is_task(f.task, 8));
    assert_eq!(seat.hello.as_ref().unwrap().incarnation, incarnation);
    over(agent, &seat);
}

/// A worker whose certificate is valid for a second renews it in time, and stays in the same session.
pub(crate) fn a_certificate_is_renewed() {
    let fake = Fake::start();
    fake.certify_for(1);
    let (agent, mut seat) = with_vm(&fake);
    let incarnation = seat.hello.as_ref().unwrap().incarnation;
    while fake.renewed() == 0 {
        seat.cut();
        seat.back();
    }
    fake.certify_for(3600);
    seat.command(Command::StartTask(vector(1, 7, 1, 6)));
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    assert_eq!(seat.hello.as_ref().unwrap().incarnation, incarnation);
    over(agent, &seat);
}

pub(crate) fn an_unknown_command_is_answered() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let incarnation = seat.hello.as_ref().unwrap().incarnation;
    seat.unknown_command();
    let said = await_report!(seat, Unsupported);
    // The VM was the first.
    assert_eq!(said.command, 2, "{said:?}");
    assert!(said.what.contains("does not know"), "{said:?}");
    seat.command(Command::StartTask(vector(1, 7, 1, 6)));
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    assert_eq!(seat.hello.as_ref().unwrap().incarnation, incarnation, "its life goes on");
    over(agent, &seat);
}

pub(crate) fn a_folder_that_vanishes() {
    let fake = Fake::start();
    let (mut agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 3_000)));
    await_report!(seat, TaskStarted);
    let tasks = agent.root.path().join("tasks");
    std::fs::rename(&tasks, agent.root.path().join("elsewhere")).unwrap();
    // It leaves whatever it is told, or told nothing, and has not failed a task before.
    seat.command(Command::StartTask(vector(1, 8, 1, 6)));
    assert_eq!(agent.wait(SECONDS(20)).code(), Some(1));
    assert!(agent.groups().is_empty());
    seat.listen(Duration::from_millis(1));
    let failed =
        |r: &report::Report| matches!(r, report::Report::TaskFailed(it) if is_task(it.task, 8));
    assert!(!seat.heard().iter().any(failed), "{:#?}", seat.heard());
}

pub(crate) fn a_coordinator_of_another_version() {
    let fake = Fake::start();
    let newer = dormouse_proto::PROTOCOLS.newest + 1;
    let mut seat = fake.seat("w1", Welcome { protocol: newer, ..welcome() });
    let mut agent = Agent::start(&fake.address.to_string(), "w1");
    seat.joined();
    assert_eq!(agent.wait(SECONDS(10)).code(), Some(1));
}

pub(crate) fn a_worker_given_up_joins_anew() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let before = seat.hello.as_ref().unwrap().incarnation;
    seat.command(Command::StartTask(vector(1, 7, 1, 3_000)));
    await_report!(seat, TaskStarted);
    seat.goodbye(false);
    seat.ready();
    assert!(seat.hello.as_ref().unwrap().incarnation > before);
    assert_eq!(tasks_of(&agent), Vec::<u32>::new());
    // It is as good as new.
    seat.commands(vec![create(1, 1), Command::StartTask(vector(1, 7, 2, 6))]);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified && finished.task.unwrap().attempt == 2);
    over(agent, &seat);
}

pub(crate) fn a_silent_coordinator() {
    let fake = Fake::start();
    let (mut agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 3_000)));
    await_report!(seat, TaskStarted);
    // Nobody answers any more, and nobody who dials is heard.
    let status = agent.wait(SECONDS(20));
    assert_eq!(status.code(), Some(1));
    assert!(agent.groups().is_empty());
}

pub(crate) fn sigterm_leaves_nothing() {
    let fake = Fake::start();
    let (mut agent, mut seat) = with_vm(&fake);
    occupy(&mut seat);
    agent.signal(Signal::SIGTERM);
    assert!(agent.wait(SECONDS(10)).success());
    assert!(agent.groups().is_empty());
    assert_eq!(tasks_of(&agent), Vec::<u32>::new());
}

pub(crate) fn kill_9_leaves_nothing() {
    let fake = Fake::start();
    let (mut agent, mut seat) = with_vm(&fake);
    occupy(&mut seat);
    assert!(!tasks_of(&agent).is_empty(), "the test cannot see tasks");
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    agent.signal(Signal::SIGKILL);
    agent.wait(SECONDS(5));
    until("the end of all tasks", SECONDS(5), || tasks_of(&agent).is_empty());
    until("the end of all groups", SECONDS(5), || agent.groups().is_empty());
    assert_eq!(std::fs::read_to_string("/proc/mounts").unwrap(), mounts);
}

pub(crate) fn an_owner_that_panics() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start_faulty(&fake.address.to_string(), "w1", "panic-at-freeze");
    seat.ready();
    seat.commands(vec![
        create(1, 2),
        create(2, 1),
        Command::StartTask(vector(1, 7, 1, 3_000)),
        Command::StartTask(vector(1, 8, 1, 3_000)),
        Command::StartTask(vector(2, 9, 1, 3_000)),
    ]);
    for task in [7, 8, 9] {
        await_report!(seat, TaskStarted, s => is_task(s.task, task));
    }
    assert_eq!(tasks_of(&agent).len(), 3);
    seat.command(Command::FreezeVm(VmRef { vm: 1 }));
    let failed = await_report!(seat, VmFailed);
    assert_eq!(failed.vm, 1);
    assert!(failed.why.contains("a fault that a test has asked for"), "{failed:?}");
    // Nothing of it is left, and the other one has noticed nothing.
    assert_eq!(tasks_of(&agent).len(), 1, "it was reported before its tasks were killed");
    let groups = || agent.groups().into_iter().map(|group| group.join("vm1"));
    until("the end of its groups", SECONDS(5), || !groups().any(|group| group.exists()));
    until("the end of its processes", SECONDS(5), || agent.zombies().is_empty());
    let tasks = agent.root.path().join("tasks").join(run_name());
    let directories = || [7, 8].map(|task| tasks.join(task.to_string()));
    until("the end of its directories", SECONDS(5), || !directories().iter().any(|d| d.exists()));
    seat.command(Command::DestroyVm(VmRef { vm: 1 }));
    await_report!(seat, VmDestroyed, r => r.vm == 1);
    seat.command(Command::StopTask(stop(2, 9, 1, false)));
    let stopped = await_report!(seat, TaskStopped);
    assert!(is_task(stopped.task, 9) && stopped.real_cpu_us > 0, "{stopped:?}");
    // Its tasks can go on elsewhere, and VMs freeze.
    seat.commands(vec![Command::StartTask(vector(2, 7, 2, 30))]);
    await_report!(seat, TaskStarted, s => is_task(s.task, 7));
    seat.commands(vec![Command::FreezeVm(VmRef { vm: 2 }), Command::ThawVm(VmRef { vm: 2 })]);
    await_report!(seat, VmThawed);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified && is_task(finished.task, 7), "{finished:?}");
    over(agent, &seat);
}

/// Starts a running task, a restored one, and a frozen one.
fn occupy(seat: &mut crate::coordinator::Seat<'_>) {
    seat.commands(vec![create(2, 1), Command::StartTask(vector(1, 7, 1, 3_000))]);
    await_report!(seat, TaskStarted);
    seat.command(Command::StopTask(stop(1, 7, 1, true)));
    let kept = await_report!(seat, TaskStopped);
    seat.commands(vec![
        Command::StartTask(StartTask {
            from: kept.checkpoint.map(|checkpoint| Kept { checkpoint, attempt: 1, done_ppm: 0 }),
            ..vector(1, 7, 2, 3_000)
        }),
        Command::StartTask(vector(1, 8, 1, 3_000)),
        Command::StartTask(vector(2, 9, 1, 3_000)),
    ]);
    for task in [7, 8, 9] {
        await_report!(seat, TaskStarted, s => is_task(s.task, task));
    }
    seat.command(Command::FreezeVm(VmRef { vm: 2 }));
    await_report!(seat, VmFrozen);
}

/// Processes whose program is in the directory of this worker, found by inode: in another mount namespace, the path is
/// seen as the worker's.
fn tasks_of(agent: &Agent) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let programs = agent.root.path().join("programs");
    let mut inodes = Vec::new();
    for digest in std::fs::read_dir(programs).unwrap().flatten() {
        for program in std::fs::read_dir(digest.path()).unwrap().flatten() {
            let metadata = program.metadata().unwrap();
            inodes.push((metadata.dev(), metadata.ino()));
        }
    }
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        std::fs::metadata(format!("/proc/{pid}/exe"))
            .is_ok_and(|m| inodes.contains(&(m.dev(), m.ino())))
    })
    .collect()
}
