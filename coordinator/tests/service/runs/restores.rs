//! Checkpoints that can't be restored, with a worker that refuses them.

use std::path::Path;

use crate::common::*;
use dormouse_coordinator::{LiveOutcome, replay_log};
use dormouse_log::LogReader;
use dormouse_model::{Effect, Step};
use dormouse_proto::v1;
use v1::{command::Command as C, report::Report as R};

/// Returns the number of the checkpoint with which a task must begin; zero: none.
fn checkpoint_of(start: &v1::StartTask) -> u32 {
    start.from.map_or(0, |kept| kept.checkpoint)
}

/// Makes the failure report of an attempt from its VM, task and attempt number.
type Failing = fn(u32, u32, u32) -> R;

/// Returns the failure to restore a checkpoint if `is_so` is true; otherwise `None`.
fn refused(is_so: bool) -> Option<Failing> {
    is_so.then_some(could_not_restore as Failing)
}

/// Plays a run of one task whose first attempt keeps two checkpoints and fails. Later attempts fail before they begin,
/// in the way that `fails` returns, until it returns `None`.
async fn run(
    out: &Path,
    mut fails: impl FnMut(&v1::StartTask) -> Option<Failing>,
) -> (LiveOutcome, Vec<u32>) {
    let coordinator = Under::start(live(1, 1, out)).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let welcome = worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let of = Some(v1::TaskRef { vm, task, attempt });
    worker.make(R::TaskStarted(v1::TaskStarted {
        task: of,
        done_ppm: 0,
        real_took_us: 1,
        ..Default::default()
    }));
    for checkpoint in [1, 2] {
        let bytes = worker.store(&welcome, (task, attempt), checkpoint).await;
        worker.make(checkpoint_taken((vm, task, attempt), checkpoint, bytes));
    }
    worker.report(task_failed(vm, task, attempt)).await;
    let mut begun_with = Vec::new();
    loop {
        let commands = worker.commands().await;
        let [C::StartTask(start)] = &commands[..] else { panic!("{commands:?}") };
        begun_with.push(checkpoint_of(start));
        let Some(failing) = fails(start) else {
            worker.carry_out(commands[0].clone());
            worker.flush().await;
            break;
        };
        let of = start.task.unwrap();
        worker.report(failing(of.vm, of.task, of.attempt)).await;
    }
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    (coordinator.outcome().await.unwrap(), begun_with)
}

/// Returns each checkpoint from which the task fell back, and the one to which, by the log; checks that the log can be
/// replayed.
fn fell_back(done: &LiveOutcome) -> Vec<(u32, Option<u32>)> {
    let report = replay_log(&done.log, |_| Ok(run_again(1, 1))).unwrap();
    assert_eq!(report.difference, None);
    let mut log = LogReader::open(&done.log).unwrap();
    let mut all = Vec::new();
    while let Some(step) = log.next_step::<Step>().unwrap() {
        for effect in step.effects {
            if let Effect::RestoreFellBack { from, to, .. } = effect {
                all.push((from.0.get(), to.map(|(seq, _)| seq.get())));
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_refused_is_followed_by_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (done, begun_with) = run(dir.path(), |start| refused(checkpoint_of(start) == 2)).await;
    assert_eq!(begun_with, [2, 1]);
    assert_eq!(fell_back(&done), [(2, Some(1))]);
    assert_eq!((done.run.unfinished_count(), done.run.counts().restores), (0, 1));
    assert_eq!(done.run.over_at().is_some(), done.run.cancel_reason().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_is_not_given_up_for_what_else_goes_wrong() {
    let dir = tempfile::tempdir().unwrap();
    // As where it could not be fetched: nothing says that it is damaged.
    let mut times = 0..3;
    let failed = |_: &v1::StartTask| times.next().map(|_| task_failed as Failing);
    let (done, begun_with) = run(dir.path(), failed).await;
    assert_eq!(begun_with, [2, 2, 2, 2]);
    assert_eq!(fell_back(&done), []);
    assert_eq!((done.run.unfinished_count(), done.run.counts().restores), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_none_of_whose_checkpoints_can_be_restored_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (done, begun_with) = run(dir.path(), |start| refused(checkpoint_of(start) > 0)).await;
    assert_eq!(begun_with, [2, 1, 0]);
    assert_eq!(fell_back(&done), [(2, Some(1)), (1, Some(1)), (1, None)]);
    assert_eq!((done.run.unfinished_count(), done.run.counts().restores), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_its_worker_could_not_have_is_not_offered_again() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let welcome = worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let bytes = worker.store(&welcome, (task, attempt), 1).await;
    worker.make(checkpoint_taken((vm, task, attempt), 1, bytes));
    worker.report(task_failed(vm, task, attempt)).await;
    let (vm, task, attempt) = started(&worker.commands().await);
    let of = Some(v1::TaskRef { vm, task, attempt });
    worker.make(R::TaskStarted(v1::TaskStarted {
        task: of,
        done_ppm: 0,
        real_took_us: 1,
        ..Default::default()
    }));
    worker.report(task_failed(vm, task, attempt)).await;
    let commands = worker.commands().await;
    let [C::StartTask(start)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(start.from, None);
    worker.carry_out(commands[0].clone());
    worker.flush().await;
    assert!(matches!(worker.obey().await, Said::Goodbye(v1::Goodbye { over: true, .. })));
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(fell_back(&done), [(1, None)]);
}
