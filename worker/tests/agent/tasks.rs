//! Tasks on VMs of one worker.

use std::time::{Duration, Instant};

use dormouse_proto::v1::{
    Burstable, CheckpointTaken, CreateVm, Kept, Mode, Program, Seats, SetSupply, StartTask,
    StopTask, TaskFinished, TaskRef, TaskStarted, TaskStopped, Tier, VmRef, VmShare, Welcome,
    command::Command, report::Report,
};

use crate::{
    agent::Agent,
    coordinator::{Fake, Seat, run_name, welcome},
};

/// Waits for a report of one kind.
#[macro_export]
macro_rules! await_report {
    ($seat:expr, $kind:ident) => {
        $crate::await_report!($seat, $kind, _r => true)
    };
    ($seat:expr, $kind:ident, $r:ident => $test:expr) => {
        $seat.expect(stringify!($kind), |report| match report {
            ::dormouse_proto::v1::report::Report::$kind($r) if $test => Some($r.clone()),
            _ => None,
        })
    };
}

pub(crate) fn create(vm: u32, vcpus: u32) -> Command {
    let kind = "c4.large".to_owned();
    Command::CreateVm(CreateVm {
        vm,
        kind,
        vcpus,
        memory_bytes: Some(1 << 30),
        ..CreateVm::default()
    })
}

/// A vector task that takes `runtime_s` emulated seconds, which at the tests' speed-up of 30 gives it half a core.
pub(crate) fn vector(vm: u32, task: u32, attempt: u32, runtime_s: u64) -> StartTask {
    let args = ["vector", "--memory", "4MiB"].map(str::to_owned).to_vec();
    StartTask {
        task: Some(TaskRef { vm, task, attempt }),
        program: Some(Program { args }),
        memory_bytes: 16 << 20,
        emulated_runtime_us: runtime_s * 1_000_000,
        real_cpu_us: runtime_s * 1_000_000 / 30 / 2,
        ..StartTask::default()
    }
}

pub(crate) const fn stop(vm: u32, task: u32, attempt: u32, keep: bool) -> StopTask {
    StopTask { task: Some(TaskRef { vm, task, attempt }), keep }
}

pub(crate) fn is_task(task: Option<TaskRef>, number: u32) -> bool {
    task.is_some_and(|t| t.task == number)
}

/// A worker that is ready, with one VM of two vCPUs.
pub(crate) fn with_vm(fake: &Fake) -> (Agent, Seat<'_>) {
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    assert!(seat.ready().is_empty());
    seat.command(create(1, 2));
    await_report!(seat, VmCreated);
    (agent, seat)
}

/// Ends the run, and checks that the worker leaves nothing behind.
pub(crate) fn over(mut agent: Agent, seat: &Seat<'_>) {
    seat.goodbye(true);
    assert!(agent.wait(Duration::from_secs(10)).success());
    assert_eq!(agent.groups(), Vec::<std::path::PathBuf>::new());
    let left = std::fs::read_dir(agent.root.path().join("tasks")).unwrap().count();
    assert_eq!(left, 0, "directories of tasks are left");
    let left = std::fs::read_dir(agent.root.path().join("checkpoints")).unwrap().count();
    assert_eq!(left, 0, "checkpoints are left");
}

pub(crate) fn a_task_runs_and_is_verified() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let asked = Instant::now();
    seat.command(Command::StartTask(vector(1, 7, 1, 30)));
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert_eq!(started.done_ppm, 0);
    assert!(started.real_took_us > 0);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    let took = asked.elapsed();
    assert!(finished.verified && is_task(finished.task, 7));
    assert!(finished.result.as_ref().is_some_and(|r| r.contains("\"vector\"")), "{finished:?}");
    // Half a second of CPU time at half a core.
    assert!((450_000..700_000).contains(&finished.real_cpu_us), "{finished:?}");
    assert!(took > Duration::from_millis(850), "too fast: {took:?}");
    seat.command(Command::DestroyVm(VmRef { vm: 1 }));
    let share: VmShare = await_report!(seat, VmShare);
    assert!(share.real_promised_us > 400_000 && share.real_received_us > 400_000, "{share:?}");
    await_report!(seat, VmDestroyed);
    over(agent, &seat);
}

/// A program that does nothing is not verified: its answer counts only if the kernel has measured CPU time for it.
pub(crate) fn a_program_that_does_nothing_is_not_verified() {
    let fake = Fake::start();
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("idler");
    let text = "#!/bin/sh\nfor last; do :; done\ncat > \"$last\" <<END\n{\"kind\": \"vector\", \
                \"class\": null, \"id\": null, \"memory_bytes\": null, \"verified\": true, \
                \"figures\": [], \"repetitions\": 1, \"cpu_seconds\": 0.5, \
                \"cpu_seconds_wanted\": 0.5, \"units\": 1}\nEND\n";
    std::fs::write(&program, text).unwrap();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start_program(&fake.address.to_string(), "w1", &program);
    assert!(seat.ready().is_empty());
    seat.command(create(1, 1));
    await_report!(seat, VmCreated);
    seat.command(Command::StartTask(vector(1, 7, 1, 30)));
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    let result = finished.result.unwrap_or_default();
    assert!(!finished.verified, "{result}");
    assert!(result.contains("CPU time that the kernel counted"), "{result}");
    over(agent, &seat);
}

pub(crate) fn a_wrong_task_fails() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let mut wrong = vector(1, 7, 1, 30);
    wrong.program.as_mut().unwrap().args[0] = "victor".to_owned();
    seat.command(Command::StartTask(wrong));
    let failed = await_report!(seat, TaskFailed);
    assert!(failed.why.contains("victor"), "{failed:?}");
    // Its seat is free again.
    seat.commands(vec![
        Command::StartTask(vector(1, 8, 1, 6)),
        Command::StartTask(vector(1, 9, 1, 6)),
        Command::StartTask(vector(1, 10, 1, 6)),
    ]);
    let full = await_report!(seat, TaskFailed);
    assert!(is_task(full.task, 10) && full.why.contains("taken"), "{full:?}");
    await_report!(seat, TaskFinished, f => is_task(f.task, 8));
    await_report!(seat, TaskFinished, f => is_task(f.task, 9));
    over(agent, &seat);
}

pub(crate) fn checkpoints_are_taken_when_due() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    // 12 emulated seconds each: .4 s.
    let order = StartTask {
        checkpoints_ppm: vec![250_000, 500_000, 750_000],
        emulated_checkpoint_cost_us: 12_000_000,
        ..vector(1, 7, 1, 60)
    };
    seat.command(Command::StartTask(order));
    let mut held_us = 0;
    for k in 1..=3_u32 {
        let taken: CheckpointTaken = await_report!(seat, CheckpointTaken);
        assert_eq!(taken.checkpoint, k);
        let due = 250_000 * k;
        assert!((due..due + 60_000).contains(&taken.done_ppm), "due {due}: {taken:?}");
        // What is left, once it stands, of the .4 s from when it was to: what it worked till then
        // it is ahead, and stands still for as well; what it lacked it had not to stand for.
        assert!(taken.real_owed_us > 0 && taken.real_held_us >= taken.real_owed_us, "{taken:?}");
        assert!(taken.real_held_us < 700_000, "{taken:?}");
        held_us += taken.real_held_us;
        assert!(
            taken.real_dump_us > 1_000 && taken.real_dump_us <= taken.real_held_us,
            "{taken:?}"
        );
        assert!(taken.bytes > 4 << 20);
    }
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    // Two seconds of work and .4 s for each, and it was not done before.
    let ledger = finished.ledger.unwrap();
    assert_eq!((ledger.real_promised_us, ledger.missed_checkpoints), (3_200_000, 0), "{ledger:?}");
    assert!(
        ledger.real_took_us >= ledger.real_promised_us && ledger.real_stood_us >= held_us,
        "{ledger:?}"
    );
    // Nor was it ever ahead by what it would work in .4 s: it stood still for each.
    assert!(ledger.real_ahead_us < 200_000, "{ledger:?}");
    assert_eq!(fake.checkpoints(), [(7, 1), (7, 2), (7, 3)]);
    over(agent, &seat);
}

/// A checkpoint that is not stored by the end of its task is reported as missed. (The report was missing once, and the
/// coordinator blamed the worker.)
pub(crate) fn a_checkpoint_that_is_not_stored_by_the_end_is_said_to_be_missed() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    fake.withhold(true);
    let order = StartTask {
        // Half a second of real time before its end: when it was due, the coordinator's clock says, and no worker's.
        checkpoints_ppm: vec![750_000],
        emulated_checkpoint_cost_us: 3_000_000,
        ..vector(1, 7, 1, 60)
    };
    seat.command(Command::StartTask(order));
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert_eq!(finished.ledger.unwrap().missed_checkpoints, 1);
    assert_eq!(fake.checkpoints(), [(7, 1)], "it was sent");
    fake.withhold(false);
    over(agent, &seat);
    let is_taken = |r: &Report| matches!(r, Report::CheckpointTaken(_));
    assert!(!seat.heard().iter().any(is_taken), "{:?}", seat.heard());
}

pub(crate) fn a_checkpoint_is_taken_now() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let cost = StartTask { emulated_checkpoint_cost_us: 3_000_000, ..vector(1, 7, 1, 60) };
    seat.command(Command::StartTask(cost));
    await_report!(seat, TaskStarted);
    seat.listen(Duration::from_millis(600));
    let [here, gone] = [1, 2].map(|attempt| TaskRef { vm: 1, task: 7, attempt });
    seat.commands(vec![Command::CheckpointNow(gone), Command::CheckpointNow(here)]);
    let failed = await_report!(seat, CheckpointFailed);
    assert!(failed.task == Some(gone) && failed.why.contains("not on this worker"), "{failed:?}");
    let taken: CheckpointTaken = await_report!(seat, CheckpointTaken);
    assert!(taken.checkpoint == 1 && (200_000..700_000).contains(&taken.done_ppm), "{taken:?}");
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    // The checkpoint stood still for 3 of 63 emulated seconds.
    assert!(finished.ledger.is_some_and(|l| l.real_promised_us > 2_050_000), "{finished:?}");
    assert_eq!(fake.checkpoints(), [(7, 1)]);
    over(agent, &seat);
}

/// An old checkpoint may stay: there is one too many to keep after the fourth, and the first can't be removed.
pub(crate) fn an_old_checkpoint_may_stay() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let order = StartTask {
        checkpoints_ppm: vec![200_000, 400_000, 600_000, 800_000],
        emulated_checkpoint_cost_us: 3_000_000,
        ..vector(1, 7, 1, 60)
    };
    seat.command(Command::StartTask(order));
    await_report!(seat, CheckpointTaken);
    let first = agent.root.path().join("checkpoints").join(run_name()).join("7/00000001");
    let change = |how| {
        let status = std::process::Command::new("chattr").arg(how).arg(&first).status();
        assert!(status.unwrap().success(), "its attributes can't be changed");
    };
    change("+i");
    let rest: Vec<CheckpointTaken> = (0..3).map(|_| await_report!(seat, CheckpointTaken)).collect();
    change("-i");
    assert_eq!(rest.iter().map(|t| t.checkpoint).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(await_report!(seat, TaskFinished).verified);
    over(agent, &seat);
}

pub(crate) fn hibernation_stops_and_resumes() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    seat.command(Command::FreezeVm(VmRef { vm: 1 }));
    let frozen = await_report!(seat, VmFrozen);
    assert!(frozen.real_took_us < 2_000_000, "{frozen:?}");
    let before: VmShare = await_report!(seat, VmShare);
    seat.command(Command::StartTask(vector(1, 8, 1, 60)));
    let refused = await_report!(seat, TaskFailed);
    assert!(is_task(refused.task, 8) && refused.why.contains("frozen"), "{refused:?}");
    // Longer than the rest of the task would take.
    seat.listen(Duration::from_millis(2_500));
    assert!(seat.heard().iter().all(|r| !matches!(r, Report::TaskFinished(_))));
    seat.command(Command::ThawVm(VmRef { vm: 1 }));
    await_report!(seat, VmThawed);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    seat.command(Command::DestroyVm(VmRef { vm: 1 }));
    let after: VmShare = await_report!(seat, VmShare);
    // Nothing was promised while it was frozen.
    assert!(after.real_promised_us < 1_300_000, "{before:?} {after:?}");
    await_report!(seat, VmDestroyed);
    over(agent, &seat);
}

pub(crate) fn a_stop_on_a_frozen_vm_is_final() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    seat.command(Command::FreezeVm(VmRef { vm: 1 }));
    await_report!(seat, VmFrozen);
    seat.command(Command::StopTask(stop(1, 7, 1, false)));
    let stopped: TaskStopped = await_report!(seat, TaskStopped);
    assert_eq!(stopped.checkpoint, None);
    // The next attempt at the same task, in the same directory, elsewhere.
    seat.commands(vec![create(2, 1), Command::StartTask(vector(2, 7, 2, 15))]);
    await_report!(seat, TaskStarted);
    seat.command(Command::ThawVm(VmRef { vm: 1 }));
    await_report!(seat, VmThawed);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified && finished.task.unwrap().attempt == 2);
    // Both seats of the first VM are free.
    seat.commands(vec![
        Command::StartTask(vector(1, 8, 1, 6)),
        Command::StartTask(vector(1, 9, 1, 6)),
    ]);
    await_report!(seat, TaskFinished, f => is_task(f.task, 8));
    await_report!(seat, TaskFinished, f => is_task(f.task, 9));
    assert!(seat.heard().iter().all(|r| !matches!(r, Report::TaskStopped(_))), "reported twice");
    over(agent, &seat);
}

pub(crate) fn a_task_is_kept_and_goes_on() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    seat.listen(Duration::from_millis(600));
    seat.command(Command::StopTask(stop(1, 7, 1, true)));
    let stopped: TaskStopped = await_report!(seat, TaskStopped);
    assert_eq!(stopped.checkpoint, Some(1));
    assert!(stopped.done_ppm > 100_000, "{stopped:?}");
    let order = StartTask {
        from: Some(Kept { checkpoint: 1, attempt: 1, done_ppm: stopped.done_ppm }),
        ..vector(1, 7, 2, 60)
    };
    seat.command(Command::StartTask(order));
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert_eq!(started.done_ppm, stopped.done_ppm);
    let finished: TaskFinished = await_report!(seat, TaskFinished);
    assert!(finished.verified);
    // What was done was not done again: both lives together took the CPU time of one.
    let both = stopped.real_cpu_us + finished.real_cpu_us;
    assert!((950_000..1_150_000).contains(&both), "{stopped:?} {finished:?}");
    over(agent, &seat);
}

pub(crate) fn a_former_lifes_checkpoint_is_not_used() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    seat.command(Command::StartTask(vector(1, 7, 1, 60)));
    await_report!(seat, TaskStarted);
    seat.listen(Duration::from_millis(600));
    seat.command(Command::StopTask(stop(1, 7, 1, true)));
    let stopped: TaskStopped = await_report!(seat, TaskStopped);
    assert!(stopped.checkpoint == Some(1) && stopped.done_ppm > 100_000, "{stopped:?}");
    // Another worker's attempt 2 has taken a checkpoint 1 of its own, which the coordinator can't
    // give: nothing is left to go on from, though the one of attempt 1 is here.
    fake.damage(7, 1);
    let from = Some(Kept { checkpoint: 1, attempt: 2, done_ppm: 0 });
    let order = StartTask { from, ..vector(1, 7, 3, 6) };
    seat.command(Command::StartTask(order));
    let started: TaskStarted = await_report!(seat, TaskStarted);
    assert_eq!(started.done_ppm, 0);
    assert!(await_report!(seat, TaskFinished).verified);
    over(agent, &seat);
}

pub(crate) fn the_background_gets_the_rest() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    seat.ready();
    let (vm, vcpus) = (1, 1);
    seat.command(Command::CreateVm(CreateVm { vm, vcpus, two_tier: true, ..CreateVm::default() }));
    let background = Some(Seats { tier: Tier::Background.into(), vcpus: Vec::new() });
    let behind = StartTask { seats: background, ..vector(1, 8, 1, 30) };
    let asked = Instant::now();
    seat.commands(vec![Command::StartTask(behind), Command::StartTask(vector(1, 7, 1, 30))]);
    await_report!(seat, TaskStarted, s => is_task(s.task, 8));
    await_report!(seat, TaskStarted, s => is_task(s.task, 7));
    let used = || ["a", "b"].map(|slot| agent.slot_cpu("vm1/cpu0", slot).as_secs_f64());
    let [fore_before, back_before] = used();
    let first: TaskFinished = await_report!(seat, TaskFinished);
    let [fore, back] = used();
    let (fore, back) = (fore - fore_before, back - back_before);
    println!("  while both ran: foreground {fore:.3} s, background {back:.3} s of CPU time");
    assert!(is_task(first.task, 7), "the background ended first");
    // Less than one per cent by the kernel's doing; the rest is for the time until the end of the
    // foreground is heard of here, on a host that may be busy.
    assert!(fore > 0.4 && back < fore / 5.0, "foreground {fore} s, background {back} s");
    await_report!(seat, TaskFinished, f => is_task(f.task, 8) && f.verified);
    // Half a second of CPU time each, at half a core for both together.
    let both = asked.elapsed();
    assert!(both > Duration::from_millis(1_700), "both in {both:?}");
    over(agent, &seat);
}

pub(crate) fn a_vcpu_has_what_it_is_left() {
    let fake = Fake::start();
    let (agent, mut seat) = with_vm(&fake);
    let share = |vcpu, share_ppm| Command::SetSupply(SetSupply { vm: 1, vcpu, share_ppm });
    let on = |task, vcpu| {
        let seats = Some(Seats { tier: Tier::Foreground.into(), vcpus: vec![vcpu] });
        Command::StartTask(StartTask { seats, ..vector(1, task, 1, 30) })
    };
    // A second of work each.
    seat.commands(vec![share(1, 400_000), on(7, 0), on(8, 1)]);
    let promised_s = |seat: &mut Seat<'_>, task| {
        let end: TaskFinished = await_report!(seat, TaskFinished, f => is_task(f.task, task));
        assert!(end.verified);
        let ledger = end.ledger.unwrap();
        let promised = ledger.real_promised_us as f64 / 1e6;
        let took = ledger.real_took_us as f64 / 1e6;
        println!("  task {task}: promised {promised:.3} s, took {took:.3} s");
        assert!(took > promised - 0.1, "it took {took} s of {promised} s");
        promised
    };
    let whole = promised_s(&mut seat, 7);
    let part = promised_s(&mut seat, 8);
    assert!((0.99..1.05).contains(&whole) && (2.45..2.6).contains(&part), "{whole} {part}");
    // It is left nothing for a while.
    seat.commands(vec![share(1, 0), on(9, 1)]);
    await_report!(seat, TaskStarted, s => is_task(s.task, 9));
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(400));
    seat.command(share(1, 1_000_000));
    let stood = begun.elapsed().as_secs_f64();
    let late = promised_s(&mut seat, 9);
    assert!(
        (0.99 + stood..).contains(&late),
        "{late} s, of which it was left nothing for {stood} s"
    );
    over(agent, &seat);
}

pub(crate) fn programs_are_measured() {
    let fake = Fake::start();
    let program = |text: &str| Program { args: text.split(' ').map(str::to_owned).collect() };
    let programs = ["vector --memory 1MiB", "ed --class S --id 1", "ed --class S --id 2"];
    let programs = programs.map(program).to_vec();
    let mut seat = fake.seat("w1", Welcome { programs, ..welcome() });
    let agent = Agent::start(&fake.address.to_string(), "w1");
    let us = seat.ready();
    assert_eq!((us.len(), us[0]), (3, 0));
    assert!(us[1] > 1_000 && us[1] == us[2], "{us:?}");
    over(agent, &seat);
}

pub(crate) fn credits_run_out() {
    let fake = Fake::start();
    let mut seat = fake.seat("w1", welcome());
    let agent = Agent::start(&fake.address.to_string(), "w1");
    seat.ready();
    let burstable = Burstable {
        baseline_ppm: 200_000,
        emulated_earned_us_per_hour: 0,
        emulated_initial_us: 10_000_000,
        emulated_cap_us: 60_000_000,
    };
    seat.command(Command::CreateVm(CreateVm {
        vm: 1,
        kind: "t3.large".to_owned(),
        vcpus: 1,
        memory_bytes: Some(1 << 30),
        burstable: Some(burstable),
        ..CreateVm::default()
    }));
    // 20 emulated seconds of work, credits for the first 10; the others take 50.
    let asked = Instant::now();
    seat.command(Command::StartTask(StartTask { mode: Mode::Burst.into(), ..vector(1, 7, 1, 20) }));
    await_report!(seat, Credits, c => c.emulated_us > 0);
    await_report!(seat, Credits, c => c.emulated_us == 0);
    let ran_out = asked.elapsed();
    await_report!(seat, TaskFinished);
    let took = asked.elapsed();
    assert!((250..700).contains(&ran_out.as_millis()), "ran out after {ran_out:?}");
    assert!((1_600..2_600).contains(&took.as_millis()), "took {took:?}");
    over(agent, &seat);
}
