//! Parallel jobs on the processors of one worker: both slots, swaps, kills and moves.

use std::time::Duration;

use dormouse_proto::v1::{
    CreateMachine, JobFinished, JobKilled, JobMoved, JobRef, MoveJob, ProcessUse, Program,
    StartJob, Tier, VmRef, command::Command,
};
use nix::sys::signal::Signal;

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::over,
};

pub(crate) const MACHINE: u32 = 1;

pub(crate) fn job(job: u32, attempt: u32) -> JobRef {
    JobRef { vm: MACHINE, job, attempt, at_us: 0 }
}

/// A job that takes `ms` of real time on processors that are each a fifth of a core.
pub(crate) fn start(which: JobRef, on: &[u32], tier: Tier, usage: &str, ms: u64) -> Command {
    let processes = on.len().to_string();
    let cpu = format!("{}ms", ms / 5);
    let args = ["parallel", "--phases", "20", "--speed", ".2", "--processes", &processes];
    let more = ["--usage", usage, "--cpu-time", &cpu];
    let args = args.into_iter().chain(more).map(str::to_owned).collect();
    Command::StartJob(StartJob {
        job: Some(which),
        program: Some(Program { args }),
        on: on.to_vec(),
        tier: tier.into(),
        plan: None,
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
    let create = CreateMachine { vm: MACHINE, processors, core_ppm: 200_000 };
    seat.command(Command::CreateMachine(create));
    await_report!(seat, VmCreated);
}

fn end(agent: Agent, mut seat: Seat<'_>) {
    seat.command(Command::DestroyVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmDestroyed);
    over(agent, &seat);
}

fn finished(seat: &mut Seat<'_>, which: JobRef) -> Vec<ProcessUse> {
    let end: JobFinished = await_report!(seat, JobFinished, r => r.job == Some(which));
    assert!(end.verified && end.result.contains("\"parallel\""), "{}", end.result);
    end.uses
}

fn cpu_us(uses: &[ProcessUse], tier: Tier, on: &[u32]) -> u64 {
    let there = |u: &&ProcessUse| u.tier() == tier && on.contains(&u.processor);
    uses.iter().filter(there).map(|u| u.cpu_us).sum()
}

pub(crate) fn a_job_swaps_and_moves() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 4);
    let (one, two, three) = (job(1, 1), job(2, 1), job(3, 1));
    seat.commands(vec![
        start(one, &[0, 1], Tier::Foreground, ".6", 1_000),
        start(two, &[1, 0], Tier::Background, ".6", 2_500),
    ]);
    await_report!(seat, JobStarted, r => r.job == Some(one));
    await_report!(seat, JobStarted, r => r.job == Some(two));
    let uses = finished(&mut seat, one);
    assert!(cpu_us(&uses, Tier::Foreground, &[0, 1]) > 100_000, "{uses:?}");
    // Its foreground is free: who was below it comes up, and another one goes below that.
    seat.commands(vec![
        Command::PromoteJob(two),
        start(three, &[0, 1], Tier::Background, ".6", 4_000),
    ]);
    await_report!(seat, JobPromoted, r => r.job == Some(two));
    await_report!(seat, JobStarted, r => r.job == Some(three));
    seat.listen(Duration::from_millis(700));
    seat.command(Command::MoveJob(MoveJob { job: Some(three), on: vec![3, 2] }));
    let moved: JobMoved = await_report!(seat, JobMoved, r => r.job == Some(three));
    assert_eq!(moved.lost, "");
    assert!(moved.done_ppm > 0 && moved.bytes > 0, "{moved:?}");
    assert!(moved.dump_us + moved.restore_us <= moved.took_us, "{moved:?}");
    let uses = finished(&mut seat, two);
    for tier in [Tier::Background, Tier::Foreground] {
        assert!(cpu_us(&uses, tier, &[0, 1]) > 0, "{tier:?} {uses:?}");
    }
    assert!(uses.iter().all(|u| u.cpu_us <= u.wanted_us && u.process < 2), "{uses:?}");
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
    await_report!(seat, JobStarted, r => r.job == Some(two));
    let again = job(2, 2);
    // The slot that it leaves is given to another one at once.
    seat.commands(vec![
        Command::KillJob(two),
        start(again, &[1], Tier::Foreground, "1", 800),
        start(job(3, 1), &[0], Tier::Background, "1", 100),
    ]);
    let killed: JobKilled = await_report!(seat, JobKilled, r => r.job == Some(two));
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
    let failed = await_report!(seat, JobFailed);
    assert!(failed.why.contains("0 to 1"), "{failed:?}");
    seat.command(start(job(2, 1), &[0], Tier::Foreground, "2", 100));
    let failed = await_report!(seat, JobFailed, r => r.job == Some(job(2, 1)));
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
    await_report!(seat, JobStarted, r => r.job == Some(job(2, 1)));
    agent.signal(Signal::SIGKILL);
    agent.wait(Duration::from_secs(10));
}
