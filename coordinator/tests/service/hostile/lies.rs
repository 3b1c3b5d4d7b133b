//! Workers that lie: their claims are refused or disbelieved, in the log and in the verdict, and the rest of the run
//! continues.

use std::sync::Arc;
use std::time::Duration;

use super::judged::{SPEEDUP, judged};
use crate::common::*;
use dormouse_log::LogReader;
use dormouse_model::{CheckpointConfig, CheckpointScheme, Event, Report, Setup, Step};
use dormouse_proto::v1;
use dormouse_units::{Ppm, Span};
use v1::report::Report as R;

fn load(busy_us: u64, ours_us: u64) -> R {
    R::HostLoad(v1::HostLoad {
        real_elapsed_us: 1_000,
        millicores: 2_000,
        real_busy_us: busy_us,
        real_ours_us: ours_us,
        machine: "m".to_owned(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_that_end_in_milliseconds_without_an_account_are_neither_verified_nor_judged() {
    const TASKS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, _) = joined("liar", live(TASKS, 4, dir.path())).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let judged = judged(&done.log, &setup(TASKS, 4));
    assert_eq!(
        (judged.record.finished(), judged.record.outcomes().reported),
        (TASKS, TASKS as u64)
    );
    assert_eq!(judged.evidence.early().len(), TASKS);
    let tasks = &judged.fidelity.tasks;
    assert_eq!((tasks.tasks_finished, tasks.tasks_judged), (TASKS, 0));
    judged.assert_denied("judged 0 of 20");
    judged.assert_denied("can have been done");
    judged.assert_denied("no worker said what these VMs received");
    // It never said what else its host did, which is not taken for nothing.
    judged.assert_denied("these workers did not say");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_no_host_can_have_is_refused_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("liar", live(1, 1, dir.path())).await;
    worker.report(load(900, 500)).await;
    worker.report(load(1_000, 1 << 47)).await;
    worker.report(load(1_100, 600)).await;
    worker.report(vm_created(vm)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let judged = judged(&done.log, &setup(1, 1));
    let loads = judged.steps.iter().filter(|step| matches!(step.event, Event::HostLoad { .. }));
    assert_eq!(loads.count(), 1, "none is taken after the one that can't be");
    let said = judged.steps.iter().find_map(|step| match &step.event {
        Event::Disbelieved { why, .. } => Some(why.as_str()),
        _ => None,
    });
    assert!(said.unwrap().contains("140737488355328 us is impossible"), "{said:?}");
    judged.assert_denied("is not believed");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reports_of_anothers_vm_is_sent_away_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let live = dormouse_coordinator::LiveRunPlan { workers: 2, ..live(1, 1, dir.path()) };
    let coordinator = Under::start(live).await;
    let mut honest = FakeWorker::new("a", &coordinator.at);
    let mut liar = FakeWorker::new("b", &coordinator.at);
    honest.join().await;
    liar.join().await;
    let vm = created(&honest.commands().await);
    honest.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&honest.commands().await);
    liar.report(finished(vm, task, attempt)).await;
    let goodbye = liar.goodbye().await;
    assert!(goodbye.why.contains("it reports of vm"), "{goodbye:?}");
    honest.report(finished(vm, task, attempt)).await;
    honest.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let steps: Vec<Step> = LogReader::open(&done.log).unwrap().steps().unwrap();
    let finishes = steps.iter().filter_map(|step| match &step.event {
        Event::Machine { host, report: Report::TaskFinished { .. }, .. } => Some(host.get()),
        _ => None,
    });
    assert_eq!(finishes.collect::<Vec<_>>(), [0], "the lie is in no step");
    let lost = |step: &Step| matches!(&step.event, Event::HostLost { why, .. } if why.contains("which is on host0"));
    assert!(steps.iter().any(lost), "it is in the log why it was sent away");
}

/// Found by the simulator: a report about machines was the first step of a log without hosts, and a coordinator that
/// resumed that log began a run that had already received the report.
#[tokio::test(flavor = "multi_thread")]
async fn who_reports_of_machines_before_the_run_has_begun_is_sent_away() {
    let dir = tempfile::tempdir().unwrap();
    let live = dormouse_coordinator::LiveRunPlan { workers: 2, ..live(1, 1, dir.path()) };
    let coordinator = Under::start(live).await;
    let mut liar = FakeWorker::new("liar", &coordinator.at);
    liar.join().await;
    liar.report(vm_created(7)).await;
    let goodbye = liar.goodbye().await;
    assert!(goodbye.why.contains("before it has any"), "{goodbye:?}");
    let mut honest = ["a", "b"].map(|name| FakeWorker::new(name, &coordinator.at));
    for worker in &mut honest {
        worker.join().await;
    }
    let [first, _second] = &mut honest;
    first.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let steps: Vec<Step> = LogReader::open(&done.log).unwrap().steps().unwrap();
    assert!(matches!(steps[0].event, Event::HostJoined { .. }), "{:?}", steps[0].event);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_punctual_and_takes_no_checkpoint_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let points = (1..10).map(|n| Ppm::new(n * 100_000)).collect::<Vec<_>>();
    let with_points = |mut setup: Setup| {
        let scheme = CheckpointScheme::Points(Arc::from(points.clone()));
        setup.checkpoint = CheckpointConfig { scheme, ..setup.checkpoint };
        setup
    };
    let mut live = live(1, 1, dir.path());
    live.setup = with_points(live.setup);
    let (coordinator, mut worker, vm) = begun("idle", live).await;
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let begun = std::time::Instant::now();
    let of = Some(v1::TaskRef { vm, task, attempt });
    worker.report(R::TaskStarted(v1::TaskStarted { task: of, ..Default::default() })).await;
    // It computes nothing for as long as its work takes, and beats.
    while begun.elapsed() < SPEEDUP.to_real(Span::from_secs(100)) {
        worker.beat().await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    worker.report(finished(vm, task, attempt)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let judged = judged(&done.log, &with_points(setup(1, 1)));
    assert!(judged.evidence.early().is_empty(), "it is punctual");
    // The last ones are due so late that they may have come after the end.
    let (short, due, answered) = judged.evidence.short_of_checkpoints();
    assert_eq!((short.len(), due, answered), (1, 7, 0));
    judged.assert_denied("checkpoints 0 of 7");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_wrong_whatever_its_worker_says() {
    let dir = tempfile::tempdir().unwrap();
    let live =
        dormouse_coordinator::LiveRunPlan { programs: vec![checked()], ..live(1, 1, dir.path()) };
    let (coordinator, mut worker, vm) = begun("liar", live).await;
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let forged = serde_json::json!({
        "kind": "vector", "class": null, "id": null, "memory_bytes": 10_060_000, "verified": true,
        "figures": [], "repetitions": 9, "cpu_seconds": 1.0, "cpu_seconds_wanted": 1.0,
        "units": 429, "digest": "0123456789abcdef",
    });
    let R::TaskFinished(finished) = finished(vm, task, attempt) else { panic!("it is one") };
    // No answer at all is none that nobody can check.
    for (attempt, result) in (attempt..).zip([Some(forged.to_string()), None]) {
        let of = Some(v1::TaskRef { vm, task, attempt });
        let finished = v1::TaskFinished { task: of, result, ..finished.clone() };
        worker.report(R::TaskFinished(finished)).await;
        // It is to be done again.
        let (_, again, next) = started(&worker.commands().await);
        assert_eq!((again, next), (task, attempt + 1));
    }
    coordinator.cancel.cancel();
    worker.obey().await;
    let done = coordinator.outcome().await.unwrap();
    let judged = judged(&done.log, &setup(1, 1));
    assert_eq!((judged.record.finished(), judged.record.counts.attempts_failed), (0, 2));
}

/// Attack: a worker reports checkpoints of which it has sent no byte. The run would begin the next attempt with them.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_was_never_stored_does_not_count_and_its_host_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("liar", live(1, 1, dir.path())).await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    let of = (vm, task, attempt);
    // One that is stored and of another length, one of which nothing is stored, and one of a former life, which is
    // nobody's any more.
    let bytes = worker.store(&welcome, (task, attempt), 1).await;
    worker.report(checkpoint_taken(of, 1, bytes + 1)).await;
    worker.report(checkpoint_taken(of, 2, bytes)).await;
    worker.report(checkpoint_taken((vm, task, attempt + 1), 3, bytes)).await;
    worker.report(task_failed(vm, task, attempt)).await;
    let commands = worker.commands().await;
    let [v1::command::Command::StartTask(start)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(start.from, None, "there is nothing to begin with");
    worker.carry_out(commands[0].clone());
    worker.flush().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.counts().checkpoints, done.run.counts().checkpoints_failed), (0, 2));
    let judged = judged(&done.log, &setup(1, 1));
    let why_not = judged.steps.iter().filter_map(|step| match &step.event {
        Event::Machine { report: Report::CheckpointFailed { why, .. }, .. } => Some(why.as_str()),
        _ => None,
    });
    let why_not: Vec<_> = why_not.collect();
    assert!(why_not[0].contains(&format!("{bytes} were stored here")), "{why_not:?}");
    assert!(why_not[1].contains("no part of it was ever stored"), "{why_not:?}");
    judged.assert_denied("host0 is not believed: ckpt1 of task0, which it reports as stored");
}

/// A checkpoint that was stored and reported before the coordinator was killed counts for the next coordinator too.
#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_counts_for_a_coordinator_that_goes_on_with_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (runtime, coordinator) = start_apart(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let welcome = worker.join().await;
    let vm = created(&worker.commands().await);
    worker.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&worker.commands().await);
    worker.on_record().await;
    let bytes = worker.store(&welcome, (task, attempt), 1).await;
    let listen = coordinator.at.address;
    kill(runtime).await;
    worker.disconnect();
    let again =
        dormouse_coordinator::LiveRunPlan { listen, resume: true, ..live(1, 1, dir.path()) };
    let coordinator = Under::start(again).await;
    worker.connect().await.unwrap();
    worker.welcome().await;
    // Of the second the one before may have had a receipt: it does not count, and nobody is blamed.
    worker.report(checkpoint_taken((vm, task, attempt), 1, bytes)).await;
    worker.report(checkpoint_taken((vm, task, attempt), 2, bytes)).await;
    worker.report(finished(vm, task, attempt)).await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.counts().checkpoints, done.run.counts().checkpoints_failed), (1, 1));
    let judged = judged(&done.log, &setup(1, 1));
    assert!(!judged.steps.iter().any(|step| matches!(step.event, Event::Disbelieved { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_tasks_are_in_no_jail_is_in_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.capabilities.push(dormouse_proto::NO_JAIL.to_owned());
    worker.join().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let said = done.facts.evidence.sentences(None).join("|");
    assert!(said.contains("host0 (w) ran its tasks without a jail (--jail none)"), "{said}");
    let judged = judged(&done.log, &setup(1, 1));
    let lacking =
        |step: &Step| matches!(&step.event, Event::JailLacking { host, .. } if host.get() == 0);
    assert_eq!(judged.steps.iter().filter(|step| lacking(step)).count(), 1);
}
