//! Parallel jobs on the processors of one worker: both slots, swaps, kills and moves.

use std::time::Duration;

use dormouse_proto::v1::{
    CreateVm, MoveTask, Plan, ProcessUse, Program, Seats, StartTask, StopTask, TaskFinished,
    TaskMoved, TaskRef, TaskStopped, Tier, VmRef, command::Command,
};
use nix::sys::signal::Signal;

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::over,
};

pub(crate) const MACHINE: u32 = 1;

pub(crate) const fn job(task: u32, attempt: u32) -> TaskRef {
    TaskRef { vm: MACHINE, task, attempt }
}

/// A job that takes `ms` of real time on processors that are each a fifth of a core.
pub(crate) fn start(which: TaskRef, on: &[u32], tier: Tier, usage: &str, ms: u64) -> Command {
    let processes = on.len().to_string();
    // What can't be is told of by the program.
    let part = usage.parse::<f64>().unwrap().min(1.0);
    let plan = Plan {
        real_runtime_us: ms * 1_000,
        phases: 20,
        usage_ppm: vec![(part * 1e6) as u32; on.len()],
    };
    let cpu = format!("{}ms", ms / 5);
    let args = ["parallel", "--phases", "20", "--speed", ".2", "--processes", &processes];
    let more = ["--usage", usage, "--cpu-time", &cpu];
    let args = args.into_iter().chain(more).map(str::to_owned).collect();
    Command::StartTask(StartTask {
        task: Some(which),
        program: Some(Program { args }),
        seats: Some(Seats { tier: tier.into(), vcpus: on.to_vec() }),
        plan: Some(plan),
        ..StartTask::default()
    })
}

fn with_machine(fake: &Fake, processors: u32) -> (Agent, Seat<'_>) {
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    create_machine(&mut seat, processors);
    (agent, seat)
}

pub(crate) fn create_machine(seat: &mut Seat<'_>, processors: u32) {
    assert!(seat.ready().is_empty());
    seat.command(Command::CreateVm(CreateVm {
        vm: MACHINE,
        vcpus: processors,
        two_tier: true,
        core_ppm: Some(200_000),
        ..CreateVm::default()
    }));
    await_report!(seat, VmCreated);
}

fn end(agent: Agent, mut seat: Seat<'_>) {
    seat.command(Command::DestroyVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmDestroyed);
    over(agent, &seat);
}

fn finished(seat: &mut Seat<'_>, which: TaskRef) -> Vec<ProcessUse> {
    let end: TaskFinished = await_report!(seat, TaskFinished, r => r.task == Some(which));
    let is_its_own = end.result.as_ref().is_some_and(|result| result.contains("\"parallel\""));
    assert!(end.verified && is_its_own, "{end:?}");
    end.job.unwrap().uses
}

fn cpu_us(uses: &[ProcessUse], tier: Tier, on: &[u32]) -> u64 {
    let there = |u: &&ProcessUse| u.tier() == tier && on.contains(&u.vcpu);
    uses.iter().filter(there).map(|u| u.real_cpu_us).sum()
}

pub(crate) fn a_job_swaps_and_moves() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 4);
    let (one, two, three) = (job(1, 1), job(2, 1), job(3, 1));
    seat.commands(vec![
        start(one, &[0, 1], Tier::Foreground, ".6", 1_000),
        start(two, &[1, 0], Tier::Background, ".6", 2_500),
    ]);
    await_report!(seat, TaskStarted, r => r.task == Some(one));
    await_report!(seat, TaskStarted, r => r.task == Some(two));
    let uses = finished(&mut seat, one);
    assert!(cpu_us(&uses, Tier::Foreground, &[0, 1]) > 100_000, "{uses:?}");
    // Its foreground is free: who was below it comes up, and another one goes below that.
    seat.commands(vec![
        Command::PromoteTask(two),
        start(three, &[0, 1], Tier::Background, ".6", 4_000),
    ]);
    await_report!(seat, TaskPromoted, r => r.task == Some(two));
    await_report!(seat, TaskStarted, r => r.task == Some(three));
    seat.listen(Duration::from_millis(700));
    seat.command(Command::MoveTask(MoveTask { task: Some(three), vcpus: vec![3, 2] }));
    let moved: TaskMoved = await_report!(seat, TaskMoved, r => r.task == Some(three));
    assert_eq!(moved.lost, None);
    assert!(moved.done_ppm > 0 && moved.bytes > 0, "{moved:?}");
    assert!(moved.real_dump_us + moved.real_restore_us <= moved.real_took_us, "{moved:?}");
    let uses = finished(&mut seat, two);
    for tier in [Tier::Background, Tier::Foreground] {
        assert!(cpu_us(&uses, tier, &[0, 1]) > 0, "{tier:?} {uses:?}");
    }
    assert!(uses.iter().all(|u| u.real_cpu_us <= u.real_wanted_us && u.process < 2), "{uses:?}");
    let uses = finished(&mut seat, three);
    assert!(cpu_us(&uses, Tier::Background, &[0, 1]) > 0, "{uses:?}");
    let (before, after) = (cpu_us(&uses, Tier::Background, &[0, 1, 2, 3]), 4_000_000 / 5);
    let there = cpu_us(&uses, Tier::Foreground, &[2, 3]);
    assert!(there > 0 && before + there < 2 * after, "it went on and did not begin anew: {uses:?}");
    end(agent, seat);
}

pub(crate) fn a_killed_job_starts_again() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    let (one, two) = (job(1, 1), job(2, 1));
    seat.commands(vec![
        start(one, &[0], Tier::Foreground, "1", 1_200),
        start(two, &[0], Tier::Background, "1", 800),
    ]);
    await_report!(seat, TaskStarted, r => r.task == Some(two));
    let again = job(2, 2);
    // The slot that it leaves is given to another one at once.
    seat.commands(vec![
        Command::StopTask(StopTask { task: Some(two), keep: false }),
        start(again, &[1], Tier::Foreground, "1", 800),
        start(job(3, 1), &[0], Tier::Background, "1", 100),
    ]);
    let killed: TaskStopped = await_report!(seat, TaskStopped, r => r.task == Some(two));
    assert!(killed.done_ppm < 1_000_000);
    finished(&mut seat, again);
    finished(&mut seat, one);
    finished(&mut seat, job(3, 1));
    end(agent, seat);
}

pub(crate) fn places_that_are_not_there_are_refused() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    seat.command(start(job(1, 1), &[0, 2], Tier::Foreground, "1", 100));
    let failed = await_report!(seat, TaskFailed);
    assert!(failed.why.contains("0 to 1"), "{failed:?}");
    seat.command(start(job(2, 1), &[0], Tier::Foreground, "2", 100));
    let failed = await_report!(seat, TaskFailed, r => r.task == Some(job(2, 1)));
    assert!(failed.why.contains("--usage"), "in its own words: {failed:?}");
    end(agent, seat);
}

/// Killed with jobs in both slots, the agent leaves nothing; `Agent`'s drop looks.
pub(crate) fn kill_9_leaves_no_job() {
    let fake = Fake::start();
    let (mut agent, mut seat) = with_machine(&fake, 2);
    seat.commands(vec![
        start(job(1, 1), &[0, 1], Tier::Foreground, "1", 60_000),
        start(job(2, 1), &[0, 1], Tier::Background, "1", 60_000),
    ]);
    await_report!(seat, TaskStarted, r => r.task == Some(job(2, 1)));
    agent.signal(Signal::SIGKILL);
    agent.wait(Duration::from_secs(10));
}
