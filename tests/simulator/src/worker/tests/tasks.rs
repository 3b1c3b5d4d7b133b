//! What becomes of tasks on a simulated worker.

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
/// What things take on a machine beside what they should.
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
        Report::CheckpointTaken(taken) => Some(taken.clone()),
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
    assert_eq!((checkpoint.done_ppm, checkpoint.checkpoint), (500_000, 1));
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
        Deed::Restored { task, attempt, image } => Some((task, attempt, image)),
        _ => None,
    });
    let (task, attempt, image) = restored.expect("it was restored");
    assert_eq!((task, attempt, image.attempt), (TaskId::new(3), Attempt::new(2), Attempt::new(1)));
    assert_eq!((image.number.get(), image.done), (number, Ppm::new(was.done_ppm)));
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
