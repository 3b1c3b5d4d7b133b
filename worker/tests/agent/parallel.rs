//! Parallel jobs on the processors of one worker: both slots, swaps, kills and moves.

use std::time::{Duration, Instant};

use dormouse_proto::v1::{
    Burstable, CheckpointTaken, CreateVm, Kept, MoveTask, Plan, ProcessUse, Program, Seats,
    StartTask, StopTask, TaskFailed, TaskFinished, TaskMoved, TaskRef, TaskStarted, TaskStopped,
    Tier, VmRef, command::Command, report::Report,
};
use nix::{sys::signal::Signal, unistd::Pid};

use crate::{
    agent::Agent,
    await_report,
    coordinator::{Fake, Seat, welcome},
    tasks::{is_task, over, vector},
};

pub(crate) const MACHINE: u32 = 1;

pub(crate) const fn job(task: u32, attempt: u32) -> TaskRef {
    TaskRef { vm: MACHINE, task, attempt }
}

/// A command to start a job that takes `ms` of real time on processors of a fifth of a core each.
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
    create_machine_with(seat, processors, CreateVm::default());
}

fn create_machine_with(seat: &mut Seat<'_>, processors: u32, more: CreateVm) {
    assert!(seat.ready().is_empty());
    seat.command(Command::CreateVm(CreateVm {
        vm: MACHINE,
        vcpus: processors,
        two_tier: true,
        core_ppm: Some(200_000),
        ..more
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

/// Checks that two processes that compute for .6 of `ms` milliseconds on a fifth of a core have used that CPU time,
/// wherever they ran. What they used since the last measurement may be missing: usage is read every quarter of a
/// second.
fn has_used(uses: &[ProcessUse], ms: u64) {
    const UNSEEN_US: u64 = 60_000;
    for process in [0, 1] {
        let its = uses.iter().filter(|u| u.process == process);
        let (used_us, needs_us) =
            (its.map(|u| u.real_cpu_us).sum::<u64>(), ms * 1_000 / 5 * 6 / 10);
        let bounds = needs_us - UNSEEN_US..=needs_us * 11 / 10;
        assert!(bounds.contains(&used_us), "{process}: {used_us} of {needs_us}: {uses:?}");
    }
}

/// The kernel kills a process because its machine has no memory left: the report says so, and how much memory there
/// is. Another job on the machine, which has room, is unharmed.
pub(crate) fn a_job_without_memory_is_told_so() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    let memory_bytes = Some(48 << 20);
    create_machine_with(&mut seat, 2, CreateVm { memory_bytes, ..CreateVm::default() });
    let (fits, does_not) = (job(1, 1), job(2, 1));
    seat.command(needing("16MiB", start(fits, &[0], Tier::Foreground, "1", 1_500)));
    await_report!(seat, TaskStarted, r => r.task == Some(fits));
    seat.command(needing("64MiB", start(does_not, &[1], Tier::Foreground, "1", 1_000)));
    let lost: TaskFailed = await_report!(seat, TaskFailed, r => r.task == Some(does_not));
    assert!(lost.why.contains("killed because memory was short: its VM has 48 MiB"), "{lost:?}");
    finished(&mut seat, fits);
    end(agent, seat);
}

/// A job without credits runs on at the baseline of its processors, its account says so, and a freeze takes no
/// credits.
pub(crate) fn a_job_s_credits_run_out() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    // At a speed-up of 30, for a second of one processor.
    let burstable = Some(Burstable {
        baseline_ppm: 250_000,
        emulated_earned_us_per_hour: 0,
        emulated_initial_us: 30_000_000,
        emulated_cap_us: 60_000_000,
    });
    create_machine_with(&mut seat, 2, CreateVm { burstable, ..CreateVm::default() });
    let one = job(1, 1);
    let asked = Instant::now();
    // Half a second of two processors, and what is left of its second four times as slowly.
    seat.command(start(one, &[0, 1], Tier::Foreground, "1", 1_000));
    await_report!(seat, TaskStarted, r => r.task == Some(one));
    seat.command(Command::FreezeVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmFrozen);
    // Longer than it has credits.
    seat.listen(Duration::from_millis(1_200));
    seat.command(Command::ThawVm(VmRef { vm: MACHINE }));
    let had = await_report!(seat, Credits, c => c.emulated_us < 30_000_000);
    assert!(had.emulated_us > 0 && had.emulated_at_us.is_some(), "{had:?}");
    await_report!(seat, Credits, c => c.emulated_us == 0);
    let end: TaskFinished = await_report!(seat, TaskFinished, r => r.task == Some(one));
    assert!(asked.elapsed() > Duration::from_millis(1_200 + 2_300), "it was not slowed down");
    let account = end.job.unwrap();
    let ledger = account.ledger.unwrap();
    assert!(end.verified, "{account:?}");
    // Two processes, a second each of a fifth of a core.
    let all = 370_000..=430_000;
    assert!(all.contains(&ledger.real_due_us) && all.contains(&ledger.real_received_us));
    // It took as long as it should: .5 s, and 2 s at the baseline.
    assert!(account.real_late_us.abs() < 1_000_000, "{account:?}");
    // The processors were at both speeds: what they promised is a fifth of a core, and a quarter of that.
    let promised =
        |u: &ProcessUse| u.real_promised_us.saturating_mul(100) / u.real_wanted_us.max(1);
    let long = account.uses.iter().filter(|u| u.real_wanted_us > 300_000);
    let parts: Vec<u64> = long.map(promised).collect();
    assert!(
        parts.iter().any(|part| *part < 10) && parts.iter().any(|part| *part >= 18),
        "{account:?}"
    );
    self::end(agent, seat);
}

/// The command `start`, changed so that each process of its job fills this much memory.
fn needing(memory: &str, start: Command) -> Command {
    let Command::StartTask(mut start) = start else { unreachable!("it is a start") };
    if let Some(program) = &mut start.program {
        program.args.extend(["--memory", memory].map(str::to_owned));
    }
    Command::StartTask(start)
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
    let began: TaskStarted = await_report!(seat, TaskStarted, r => r.task == Some(two));
    let told = Seats { tier: Tier::Background.into(), vcpus: vec![1, 0] };
    assert_eq!(began.seats, Some(told));
    let uses = finished(&mut seat, one);
    assert!(cpu_us(&uses, Tier::Foreground, &[0, 1]) > 100_000, "{uses:?}");
    has_used(&uses, 1_000);
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
    assert!(uses.iter().all(|u| u.process < 2), "{uses:?}");
    has_used(&uses, 2_500);
    let uses = finished(&mut seat, three);
    assert!(cpu_us(&uses, Tier::Background, &[0, 1]) > 0, "{uses:?}");
    let (before, after) = (cpu_us(&uses, Tier::Background, &[0, 1, 2, 3]), 4_000_000 / 5);
    let there = cpu_us(&uses, Tier::Foreground, &[2, 3]);
    assert!(there > 0 && before + there < 2 * after, "it went on and did not begin anew: {uses:?}");
    end(agent, seat);
}

/// Jobs in the background and in the foreground run on after each checkpoint, and continue on another worker from the
/// last whole one.
pub(crate) fn jobs_are_checkpointed_and_go_on_elsewhere() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    let (one, two) = (job(1, 1), job(2, 1));
    let checkpointed = |command, points: &[u32], from| match command {
        Command::StartTask(start) => Command::StartTask(StartTask {
            checkpoints_ppm: points.to_vec(),
            // .3 s at a speed-up of 30.
            emulated_checkpoint_cost_us: 9_000_000,
            from,
            ..start
        }),
        other => other,
    };
    let points = [200_000, 400_000];
    seat.commands(vec![
        checkpointed(start(one, &[0, 1], Tier::Foreground, ".6", 5_000), &points, None),
        checkpointed(start(two, &[1, 0], Tier::Background, ".6", 5_000), &points[..1], None),
    ]);
    let mut last = [None; 2];
    let mut older = 0;
    for _ in 0..3 {
        let taken: CheckpointTaken = await_report!(seat, CheckpointTaken);
        let place = usize::from(taken.task == Some(two));
        let number = last[place].map_or(0, |before: CheckpointTaken| before.checkpoint) + 1;
        assert_eq!(taken.checkpoint, number, "{taken:?}");
        // A busy host has done less by then, and never more.
        let due = points[number as usize - 1];
        let before = last[place].map_or(0, |before| before.done_ppm);
        assert!(before < taken.done_ppm && taken.done_ppm <= due, "due {due}: {taken:?}");
        // It begins a little after it was due, and ends when it was to.
        assert!(taken.real_owed_us == 300_000 && taken.real_held_us > 200_000, "{taken:?}");
        assert!(taken.emulated_held_at_us.is_some(), "{taken:?}");
        assert!(taken.real_dump_us > 1_000 && taken.bytes > 0, "{taken:?}");
        if place == 0 && number == 1 {
            older = taken.done_ppm;
        }
        last[place] = Some(taken);
    }
    // The foreground's runs to its end here, and not before the time of its work and of two
    // checkpoints: they are .6 s.
    let first: TaskFinished = await_report!(seat, TaskFinished, r => r.task == Some(one));
    let account = first.job.unwrap();
    assert!(first.verified && account.real_late_us > -300_000, "{account:?}");
    let mut agent = agent;
    agent.signal(Signal::SIGKILL);
    agent.wait(Duration::from_secs(10));

    let mut seat = fake.seat("w2", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w2");
    create_machine(&mut seat, 2);
    let [above_kept, below_kept] = last.map(Option::unwrap);
    let from = |kept: CheckpointTaken| {
        Some(Kept { checkpoint: kept.checkpoint, attempt: 1, done_ppm: kept.done_ppm })
    };
    let again = [job(1, 2), job(2, 2)];
    // The image of the foreground's last is not what was stored: the one before serves.
    fake.damage(1, 2);
    // A point that lies behind what was kept.
    let behind = |which, seats, tier, kept| {
        checkpointed(start(which, seats, tier, ".6", 5_000), &[100_000], from(kept))
    };
    seat.commands(vec![
        behind(again[0], &[0, 1], Tier::Foreground, above_kept),
        behind(again[1], &[1, 0], Tier::Background, below_kept),
    ]);
    for (which, done_ppm) in again.into_iter().zip([older, below_kept.done_ppm]) {
        let started: TaskStarted = await_report!(seat, TaskStarted, r => r.task == Some(which));
        assert_eq!(started.done_ppm, done_ppm);
    }
    for which in again {
        let end: TaskFinished = await_report!(seat, TaskFinished, r => r.task == Some(which));
        assert!(end.verified, "{end:?}");
        let ledger = end.job.unwrap().ledger.unwrap();
        println!("  job {}: {ledger:?}", which.task);
    }
    // It is not taken again.
    let taken = |r: &&Report| matches!(r, Report::CheckpointTaken(_) | Report::CheckpointFailed(_));
    assert_eq!(seat.heard().iter().filter(taken).count(), 0);
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

/// CPU time used in both slots of two vCPUs.
fn used(agent: &Agent) -> Vec<Duration> {
    let vcpus = ["vm1/cpu0", "vm1/cpu1"].into_iter();
    vcpus.flat_map(|vcpu| ["a", "b"].map(|slot| agent.slot_cpu(vcpu, slot))).collect()
}

pub(crate) fn jobs_are_frozen_with_their_vm() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    let (one, two, three) = (job(1, 1), job(2, 1), job(3, 1));
    seat.commands(vec![
        start(one, &[0, 1], Tier::Foreground, ".6", 2_000),
        start(two, &[1, 0], Tier::Background, ".6", 2_000),
    ]);
    await_report!(seat, TaskStarted, r => r.task == Some(one));
    await_report!(seat, TaskStarted, r => r.task == Some(two));
    seat.command(Command::FreezeVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmFrozen);
    let before = used(&agent);
    // Longer than what is left of them.
    seat.command(start(three, &[0], Tier::Foreground, "1", 100));
    let refused = await_report!(seat, TaskFailed);
    assert!(refused.task == Some(three) && refused.why.contains("frozen"), "{refused:?}");
    seat.listen(Duration::from_millis(4_000));
    assert_eq!(used(&agent), before, "a frozen VM works");
    let is_end = |r: &Report| matches!(r, Report::TaskFinished(_));
    assert!(!seat.heard().iter().any(is_end), "{:?}", seat.heard());
    seat.command(Command::ThawVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmThawed);
    for which in [one, two] {
        let end: TaskFinished = await_report!(seat, TaskFinished, r => r.task == Some(which));
        let account = end.job.unwrap();
        let ledger = account.ledger.unwrap();
        assert!(end.verified, "{account:?}");
        // What it should do stood still with it: it is not behind by the time of the freeze.
        assert!(ledger.real_behind_us < 1_500_000, "{ledger:?}");
        assert!(account.real_late_us.abs() < 1_500_000, "{account:?}");
    }
    end(agent, seat);
}

pub(crate) fn a_job_that_was_stopped_on_a_frozen_vm_is_over() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    let (one, again) = (job(1, 1), job(1, 2));
    seat.command(start(one, &[0, 1], Tier::Foreground, "1", 60_000));
    await_report!(seat, TaskStarted);
    seat.command(Command::FreezeVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmFrozen);
    seat.command(Command::StopTask(StopTask { task: Some(one), keep: false }));
    let stopped: TaskStopped = await_report!(seat, TaskStopped);
    assert_eq!((stopped.task, stopped.checkpoint), (Some(one), None));
    seat.command(Command::ThawVm(VmRef { vm: MACHINE }));
    await_report!(seat, VmThawed);
    // Its slots are free.
    seat.command(start(again, &[1, 0], Tier::Foreground, "1", 200));
    finished(&mut seat, again);
    let is_stopped = |r: &Report| matches!(r, Report::TaskStopped(_));
    assert!(!seat.heard().iter().any(is_stopped), "reported twice: {:?}", seat.heard());
    end(agent, seat);
}

/// A job that hangs is noticed: one of its processes is stopped, and the others wait for it.
pub(crate) fn a_job_that_hangs_is_noticed() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    seat.command(start(job(1, 1), &[0, 1], Tier::Foreground, "1", 200_000));
    await_report!(seat, TaskStarted);
    let lists = agent.groups().into_iter().map(|group| group.join("vm1/cpu0/a/cgroup.procs"));
    let list = lists.filter_map(|list| std::fs::read_to_string(list).ok()).next().unwrap();
    let pid: i32 = list.lines().next().unwrap().parse().unwrap();
    let begun = Instant::now();
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    seat.listen(Duration::from_secs(28));
    assert!(seat.heard().iter().all(|r| !matches!(r, Report::TaskFailed(_))));
    seat.listen(Duration::from_secs(20));
    let failed = await_report!(seat, TaskFailed);
    println!("  within {:?}: {}", begun.elapsed(), failed.why);
    assert!(failed.why.contains("it hangs"), "{failed:?}");
    // What it used until then is not forgotten.
    let account = failed.job.unwrap();
    assert!(failed.real_cpu_us > 0 && cpu_us(&account.uses, Tier::Foreground, &[0, 1]) > 0);
    // Nobody is left in its slots.
    let again = job(1, 2);
    seat.command(start(again, &[1, 0], Tier::Foreground, "1", 200));
    finished(&mut seat, again);
    end(agent, seat);
}

/// A task of one process and a job share a VM, on different vCPUs.
pub(crate) fn a_job_and_a_task_share_a_vm_and_no_vcpu() {
    let fake = Fake::start();
    let (agent, mut seat) = with_machine(&fake, 2);
    let one = job(1, 1);
    let task = |vcpu, number| {
        let seats = Some(Seats { tier: Tier::Foreground.into(), vcpus: vec![vcpu] });
        Command::StartTask(StartTask { seats, ..vector(MACHINE, number, 1, 30) })
    };
    seat.command(start(one, &[1], Tier::Background, "1", 2_500));
    seat.commands(vec![task(1, 7), task(0, 8)]);
    let refused = await_report!(seat, TaskFailed);
    assert!(is_task(refused.task, 7) && refused.why.contains("can't share a vCPU"), "{refused:?}");
    assert!(await_report!(seat, TaskFinished, r => is_task(r.task, 8)).verified);
    finished(&mut seat, one);
    // The vCPU that it had is free for any.
    seat.command(task(1, 9));
    assert!(await_report!(seat, TaskFinished, r => is_task(r.task, 9)).verified);
    end(agent, seat);
}

/// An agent that is killed with jobs in both slots leaves nothing behind; dropping `Agent` checks that.
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
