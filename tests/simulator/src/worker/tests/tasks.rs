//! Tests of tasks on a simulated worker.

use std::time::Duration;

use dormouse_proto::v1::{self, command, report::Report};
use dormouse_tasks::answer::{self, Verdict};
use dormouse_units::{Attempt, Ppm, TaskId};
use tokio::time::{Instant, sleep};

use super::coordinator::{Coordinator, NONCE, arguments, create, start, task};
use crate::{
    witness::Deed,
    worker::{Leftovers, WorkerPlan},
};

const SOON: Duration = Duration::from_secs(10);
/// Tolerance for the time that operations on a machine take.
const SLACK: Duration = Duration::from_millis(200);

fn created(report: &Report) -> Option<()> {
    matches!(report, Report::VmCreated(_)).then_some(())
}

fn started(report: &Report) -> Option<v1::TaskStarted> {
    match report {
        Report::TaskStarted(started) => Some(started.clone()),
        _ => None,
    }
}

fn finished(report: &Report) -> Option<v1::TaskFinished> {
    match report {
        Report::TaskFinished(finished) => Some(finished.clone()),
        _ => None,
    }
}

fn stopped(report: &Report) -> Option<v1::TaskStopped> {
    match report {
        Report::TaskStopped(stopped) => Some(stopped.clone()),
        _ => None,
    }
}

fn taken(report: &Report) -> Option<v1::CheckpointTaken> {
    match report {
        Report::CheckpointTaken(taken) => Some(*taken),
        _ => None,
    }
}

fn assert_about(is: Duration, should: Duration) {
    assert!(is.abs_diff(should) < SLACK, "{is:?} and not {should:?}");
}

async fn with_vm(coordinator: &Coordinator) {
    coordinator.ready().await;
    coordinator.command(create(1)).await;
    coordinator.report(SOON, created).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_for_as_long_as_it_should_and_its_answer_is_right() {
    let coordinator = Coordinator::new();
    let worker = coordinator.worker(&WorkerPlan::sound("w", 1));
    with_vm(&coordinator).await;
    let order = v1::StartTask { checkpoints_ppm: vec![500_000], ..start(1, 1) };
    let began = Instant::now();
    coordinator.is_away_for(2);
    coordinator.command(command::Command::StartTask(order)).await;
    let (at, _) = coordinator.report(SOON, started).await;
    assert_about(at - began, Duration::ZERO);
    let (at, checkpoint) = coordinator.report(SOON, taken).await;
    // At its half, and then it stood still; and the coordinator was away for some time.
    assert_about(at - began, Duration::from_millis(800));
    // A job counts the work that it has done when it is stopped, which is a few milliseconds before half of it.
    assert!((495_000..=500_000).contains(&checkpoint.done_ppm), "{}", checkpoint.done_ppm);
    assert_eq!(checkpoint.checkpoint, 1);
    let (at, finished) = coordinator.report(SOON, finished).await;
    assert_about(at - began, Duration::from_millis(1100));
    let answer = finished.result.expect("it has an answer");
    assert_eq!(answer::check(&arguments()[..3], NONCE, &answer), Verdict::Right);
    assert!(finished.verified && finished.due.is_some());
    let worked = Deed::WorkDone { task: TaskId::new(3), attempt: Attempt::new(1) };
    assert!(coordinator.deeds().contains(&worked));
    coordinator.command(command::Command::DestroyVm(v1::VmRef { vm: 1 })).await;
    let destroyed = |report: &Report| matches!(report, Report::VmDestroyed(_)).then_some(());
    coordinator.report(SOON, destroyed).await;
    sleep(SLACK).await;
    assert_eq!((worker.left(), worker.is_over()), (Leftovers::default(), false));
    worker.terminate();
    sleep(SLACK).await;
    assert!(worker.is_over());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_stopped_goes_on_from_its_checkpoint_on_another_vm() {
    let coordinator = Coordinator::new();
    let _worker = coordinator.worker(&WorkerPlan::sound("w", 2));
    with_vm(&coordinator).await;
    coordinator.command(command::Command::StartTask(start(1, 1))).await;
    coordinator.report(SOON, started).await;
    sleep(Duration::from_millis(500)).await;
    let stop = v1::StopTask { task: task(1, 1), keep: true };
    coordinator.command(command::Command::StopTask(stop)).await;
    let (_, was) = coordinator.report(SOON, stopped).await;
    let number = was.checkpoint.expect("it is kept");
    assert!((450_000..700_000).contains(&was.done_ppm), "{was:?}");
    coordinator.command(create(2)).await;
    coordinator.report(SOON, created).await;
    let from = v1::Kept { checkpoint: number, attempt: 1, done_ppm: was.done_ppm };
    let again = v1::StartTask { from: Some(from), ..start(2, 2) };
    let began = Instant::now();
    coordinator.command(command::Command::StartTask(again)).await;
    let (_, begun) = coordinator.report(SOON, started).await;
    assert_eq!(begun.done_ppm, was.done_ppm);
    let (at, _) = coordinator.report(SOON, finished).await;
    let left = Duration::from_micros(u64::from(1_000_000 - was.done_ppm));
    assert_about(at - began, left);
    let restored = coordinator.deeds().into_iter().find_map(|deed| match deed {
        Deed::Restored { task, attempt, image: Some(image) } => Some((task, attempt, image)),
        _ => None,
    });
    let (task, attempt, image) = restored.expect("it was restored");
    assert_eq!((task, attempt, image.attempt), (TaskId::new(3), Attempt::new(2), Attempt::new(1)));
    assert_eq!((image.number.get(), image.done), (number, Ppm::new(was.done_ppm)));
}

/// A task waits for CRIU while another one is dumped there. The other task's VM ends, which frees CRIU, but the first
/// task must not be restored.
#[tokio::test(start_paused = true)]
async fn a_task_whose_turn_at_criu_comes_after_its_vms_end_is_not_born() {
    for seed in 0..200 {
        let coordinator = Coordinator::new();
        // One core: one place at CRIU.
        let plan = WorkerPlan { millicores: 1_000, ..WorkerPlan::sound("w", seed) };
        let worker = coordinator.worker(&plan);
        with_vm(&coordinator).await;
        coordinator.command(command::Command::StartTask(start(1, 1))).await;
        coordinator.report(SOON, started).await;
        let stop = v1::StopTask { task: task(1, 1), keep: true };
        coordinator.command(command::Command::StopTask(stop)).await;
        let (_, was) = coordinator.report(SOON, stopped).await;
        let Some(checkpoint) = was.checkpoint else { continue };
        coordinator.command(create(2)).await;
        coordinator.report(SOON, created).await;
        let other = v1::TaskRef { vm: 2, task: 4, attempt: 1 };
        let order = v1::StartTask { task: Some(other), ..start(2, 1) };
        coordinator.command(command::Command::StartTask(order)).await;
        coordinator.report(SOON, started).await;
        coordinator.command(command::Command::CheckpointNow(other)).await;
        let from = v1::Kept { checkpoint, attempt: 1, done_ppm: was.done_ppm };
        let again = v1::StartTask { from: Some(from), ..start(1, 2) };
        coordinator.command(command::Command::StartTask(again)).await;
        sleep(Duration::from_millis(3)).await;
        for vm in [1, 2] {
            coordinator.command(command::Command::DestroyVm(v1::VmRef { vm })).await;
        }
        sleep(SLACK).await;
        assert_eq!((worker.left().vms, worker.left().processes), (0, 0), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_should_be_over_before_it_is_born_ends_all_the_same() {
    for seed in 0..20 {
        let coordinator = Coordinator::new();
        let _worker = coordinator.worker(&WorkerPlan::sound("w", seed));
        with_vm(&coordinator).await;
        let short = v1::StartTask { emulated_runtime_us: 1, ..start(1, 1) };
        coordinator.command(command::Command::StartTask(short)).await;
        coordinator.report(SOON, finished).await;
    }
}

/// A command to start a parallel job of two processes, which takes a real second, in slots of this tier.
fn job(attempt: u32, tier: v1::Tier, vcpus: &[u32]) -> v1::StartTask {
    let line = "parallel --processes 2 --phases 20 --usage 1 --speed .2 --seed 5 --nonce 77";
    let args = line.split(' ').map(str::to_owned).collect();
    v1::StartTask {
        program: Some(v1::Program { args }),
        seats: Some(v1::Seats { tier: tier.into(), vcpus: vcpus.to_vec() }),
        plan: Some(v1::Plan {
            real_runtime_us: 1_000_000,
            phases: 20,
            usage_ppm: vec![1_000_000; 2],
        }),
        ..start(1, attempt)
    }
}

async fn with_vm_of_jobs(coordinator: &Coordinator) {
    coordinator.ready().await;
    let create = v1::CreateVm {
        vm: 1,
        kind: "machine".to_owned(),
        vcpus: 4,
        two_tier: true,
        core_ppm: Some(200_000),
        ..v1::CreateVm::default()
    };
    coordinator.command(command::Command::CreateVm(create)).await;
    coordinator.report(SOON, created).await;
}

#[tokio::test(start_paused = true)]
async fn a_parallel_job_is_checkpointed_and_takes_as_long_as_its_plan() {
    let coordinator = Coordinator::new();
    let _worker = coordinator.worker(&WorkerPlan::sound("w", 6));
    with_vm_of_jobs(&coordinator).await;
    let order =
        v1::StartTask { checkpoints_ppm: vec![500_000], ..job(1, v1::Tier::Foreground, &[0, 1]) };
    let began = Instant::now();
    coordinator.command(command::Command::StartTask(order)).await;
    let (_, checkpoint) = coordinator.report(SOON, taken).await;
    // A job counts the work that it has done when it is stopped, which is a few milliseconds before half of it.
    assert!((495_000..=500_000).contains(&checkpoint.done_ppm), "{}", checkpoint.done_ppm);
    assert_eq!(checkpoint.checkpoint, 1);
    let (at, finished) = coordinator.report(SOON, finished).await;
    assert_about(at - began, Duration::from_millis(1100));
    let answer = finished.result.expect("it has an answer");
    assert_eq!(answer::check_job(2, 20, (5, NONCE), &answer), Verdict::Right);
    assert!(finished.job.is_some() && finished.due.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_parallel_job_is_moved_from_the_background_and_goes_on_where_it_was() {
    let coordinator = Coordinator::new();
    let _worker = coordinator.worker(&WorkerPlan::sound("w", 7));
    with_vm_of_jobs(&coordinator).await;
    let order = job(1, v1::Tier::Background, &[0, 1]);
    coordinator.command(command::Command::StartTask(order)).await;
    coordinator.report(SOON, started).await;
    sleep(Duration::from_millis(400)).await;
    let promote = command::Command::PromoteTask(task(1, 1).expect("a task"));
    coordinator.command(promote).await;
    let promoted = |report: &Report| matches!(report, Report::TaskPromoted(_)).then_some(());
    coordinator.report(SOON, promoted).await;
    let to = v1::MoveTask { task: task(1, 1), vcpus: vec![2, 3] };
    coordinator.command(command::Command::MoveTask(to)).await;
    let moved = |report: &Report| match report {
        Report::TaskMoved(moved) => Some(moved.clone()),
        _ => None,
    };
    let (_, moved) = coordinator.report(SOON, moved).await;
    assert_eq!(moved.lost, None);
    assert!((200_000..700_000).contains(&moved.done_ppm), "{moved:?}");
    coordinator.report(SOON, finished).await;
    let deeds = coordinator.deeds();
    let count = |is: fn(&Deed) -> bool| deeds.iter().filter(|deed| is(deed)).count();
    assert_eq!(count(|deed| matches!(deed, Deed::Began { .. })), 2);
    assert_eq!(count(|deed| matches!(deed, Deed::Gone { .. })), 2);
    assert_eq!(count(|deed| matches!(deed, Deed::WorkDone { .. })), 1);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_vm_does_nothing_and_goes_on_after_it() {
    let coordinator = Coordinator::new();
    let _worker = coordinator.worker(&WorkerPlan::sound("w", 3));
    with_vm(&coordinator).await;
    let began = Instant::now();
    coordinator.command(command::Command::StartTask(start(1, 1))).await;
    sleep(Duration::from_millis(300)).await;
    coordinator.command(command::Command::FreezeVm(v1::VmRef { vm: 1 })).await;
    let frozen = |report: &Report| matches!(report, Report::VmFrozen(_)).then_some(());
    coordinator.report(SOON, frozen).await;
    sleep(Duration::from_secs(5)).await;
    coordinator.command(command::Command::ThawVm(v1::VmRef { vm: 1 })).await;
    let (at, _) = coordinator.report(SOON, finished).await;
    assert_about(at - began, Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn of_a_killed_worker_nothing_is_heard_and_nothing_is_left() {
    let coordinator = Coordinator::new();
    let worker = coordinator.worker(&WorkerPlan::sound("w", 4));
    with_vm(&coordinator).await;
    coordinator.command(command::Command::StartTask(start(1, 1))).await;
    coordinator.report(SOON, started).await;
    assert_eq!(worker.left(), Leftovers { vms: 1, processes: 1, checkpoints: 0 });
    coordinator.deeds();
    worker.kill();
    assert_eq!((worker.left(), worker.is_over()), (Leftovers::default(), true));
    let gone = Deed::Gone { task: TaskId::new(3), attempt: Attempt::new(1) };
    assert_eq!(coordinator.deeds(), [gone]);
    sleep(SLACK).await;
    let heard = coordinator.messages();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(coordinator.messages(), heard);
}

#[tokio::test(start_paused = true)]
async fn a_paused_worker_is_silent_and_its_tasks_run_on() {
    let coordinator = Coordinator::new();
    let worker = coordinator.worker(&WorkerPlan::sound("w", 5));
    with_vm(&coordinator).await;
    let began = Instant::now();
    coordinator.command(command::Command::StartTask(start(1, 1))).await;
    coordinator.report(SOON, started).await;
    worker.pause(Duration::from_millis(1500));
    sleep(SLACK).await;
    let heard = coordinator.messages();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(coordinator.messages(), heard);
    let (at, _) = coordinator.report(SOON, finished).await;
    assert_about(at - began, Duration::from_millis(1500));
}
