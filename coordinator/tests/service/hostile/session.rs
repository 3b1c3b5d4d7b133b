//! The session protocol against a fake worker over loopback.

use std::time::Duration;

use crate::common::*;
use dormouse_coordinator::{CoordinatorError, RemoteCoordinator, replay_log};
use dormouse_identity::Role;
use dormouse_log::LogReader;
use dormouse_model::{Effect, Event, Step, TenantWork};
use dormouse_proto::v1;
use dormouse_units::{TaskId, Time};

#[tokio::test(flavor = "multi_thread")]
async fn every_task_is_done_and_the_log_replays_to_the_same_decisions() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, welcome) = joined("w", live(200, 8, dir.path())).await;
    assert!(welcome.noop && welcome.host == 0 && welcome.emulated_us_per_second == 30_000_000);
    let Said::Goodbye(goodbye) = worker.obey().await else { panic!("no goodbye") };
    assert!(goodbye.over, "{}", goodbye.why);
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(done.run.unfinished_count(), 0);
    assert_eq!(worker.acked, worker.reports.len() as u64, "all that is durable is acknowledged");
    assert_eq!(done.run.tasks().get(TaskId::new(7)).unwrap().real_cpu_us, 11);
    assert_eq!(done.facts.starts.len(), 200);
    let report = replay_log(&done.log, |_| Ok(run_again(200, 8))).unwrap();
    assert_eq!(report.difference, None);
    assert_eq!(report.decisions_sha256, done.run.digest());
    assert!(!report.torn);
    // The same events through another scheduler come out differently, and that is seen.
    let other = replay_log(&done.log, |_| Ok(run_again(200, 7))).unwrap();
    assert!(other.difference.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_broken_connection_both_sides_say_again_what_was_not_heard() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("w", live(3, 1, dir.path())).await;
    worker.report(vm_created(vm)).await;
    // The command comes, but the worker dies before it has taken it.
    let (vm, task, attempt) = started(&worker.commands().await);
    worker.taken -= 1;
    worker.disconnect();
    worker.connect().await.unwrap();
    worker.welcome().await;
    assert_eq!(started(&worker.commands().await), (vm, task, attempt), "it is sent again");
    // The report is made while nobody listens, and sent twice for good measure.
    worker.disconnect();
    worker.make(finished(vm, task, attempt));
    worker.connect().await.unwrap();
    worker.welcome().await;
    let reports = v1::Reports { first: 1, reports: worker.reports.clone() };
    worker.say(v1::from_worker::Body::Reports(reports)).await;
    let Said::Goodbye(goodbye) = worker.obey().await else { panic!("no goodbye") };
    assert!(goodbye.over);
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
    assert_eq!(
        done.run.tasks().get(TaskId::new(task)).unwrap().real_cpu_us,
        11,
        "its report counted once"
    );
    assert!(done.run.tasks().iter().all(|t| t.attempt.get() == 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_started_anew_is_another_host_and_its_former_life_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut first, vm) = begun("w", live(2, 1, dir.path())).await;
    first.report(vm_created(vm)).await;
    let (_, task, attempt) = started(&first.commands().await);
    // Somewhere for the scheduler's next VM.
    let mut second = FakeWorker::new("x", &coordinator.at);
    second.join().await;
    second.on_record().await;
    let mut anew = first.anew();
    first.disconnect();
    assert_eq!(anew.take_over().await.host, 2);
    let (address, token) =
        (coordinator.at.address.to_string(), coordinator.at.token(Role::Observer));
    let status = RemoteCoordinator::dial_coordinator(&address, token)
        .await
        .unwrap()
        .get_status()
        .await
        .unwrap();
    assert_eq!((status.workers, status.workers_lost), (2, 1));
    // Its former life dials again: it must clean up.
    first.connect().await.unwrap();
    let goodbye = first.goodbye().await;
    assert!(!goodbye.over && goodbye.why.contains("continues without it"), "{}", goodbye.why);
    let obeying = tokio::spawn(async move { second.obey().await });
    let Said::Goodbye(goodbye) = anew.obey().await else { panic!("no goodbye") };
    assert!(goodbye.over, "{}", goodbye.why);
    within("the other worker's end", obeying).await.unwrap();
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 1));
    assert_eq!(done.run.tasks().get(TaskId::new(task)).unwrap().attempt.get(), attempt + 1);
    assert_eq!(done.facts.hosts.len(), 3);
    let report = replay_log(&done.log, |_| Ok(run_again(2, 1))).unwrap();
    assert_eq!(report.difference, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_workers_of_one_name_the_second_is_refused_while_the_first_lives() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut first, vm) = begun("w", live(2, 1, dir.path())).await;
    for _ in 0..3 {
        let no = FakeWorker::new("w", &coordinator.at).connect().await.unwrap_err();
        assert_eq!(no.code(), tonic::Code::AlreadyExists, "{no}");
        assert!(no.message().contains("name w is connected"), "{no}");
        assert!(no.message().contains("--name"), "{no}");
    }
    // The first is none the worse for it.
    first.report(vm_created(vm)).await;
    first.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_a_lost_worker_goes_on_elsewhere_from_its_last_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut first, welcome) = joined("w", live(1, 1, dir.path())).await;
    let vm = created(&first.commands().await);
    first.report(vm_created(vm)).await;
    let (vm, task, attempt) = started(&first.commands().await);
    let of = Some(v1::TaskRef { vm, task, attempt });
    let bytes = first.store(&welcome, (task, attempt), 1).await;
    let taken = v1::CheckpointTaken {
        task: of,
        checkpoint: 1,
        done_ppm: 400_000,
        bytes,
        real_held_us: 9,
        real_dump_us: 8,
        ..v1::CheckpointTaken::default()
    };
    first.report(v1::report::Report::CheckpointTaken(taken)).await;
    // It must be on record before the worker goes.
    first.on_record().await;
    let mut second = FakeWorker::new("x", &coordinator.at);
    second.join().await;
    second.on_record().await;
    let mut anew = first.anew();
    first.disconnect();
    anew.take_over().await;
    let vm = created(&second.commands().await);
    second.report(vm_created(vm)).await;
    let commands = second.commands().await;
    let [v1::command::Command::StartTask(start)] = &commands[..] else { panic!("{commands:?}") };
    assert_eq!(start.from.map(|kept| (kept.checkpoint, kept.done_ppm)), Some((1, 400_000)));
    assert_eq!(start.task, Some(v1::TaskRef { vm, task, attempt: attempt + 1 }));
    // The former life dials again, and says it has finished: nobody believes it.
    first.connect().await.unwrap();
    first.report(finished(1, task, attempt)).await;
    second.carry_out(commands[0].clone());
    second.flush().await;
    second.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().restores), (0, 1));
    assert_eq!(done.facts.checkpoints[0].real_dump_us, 8);
    assert_eq!(done.run.tasks().get(TaskId::new(0)).unwrap().real_cpu_us, 11);
    assert!(!dir.path().join("checkpoints").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_worker_is_lost_and_its_tasks_run_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(2, 1, dir.path());
    live.workers = 2;
    live.lost_after = Duration::from_secs(1);
    let (coordinator, mut silent, _) = joined("a", live).await;

    let mut other = FakeWorker::new("b", &coordinator.at);
    other.join().await;
    let vm = created(&silent.commands().await);
    silent.report(vm_created(vm)).await;
    started(&silent.commands().await);
    // From here on `silent` says nothing; `other` does as told, and beats.
    let beating = tokio::spawn(async move {
        let mut beats = tokio::time::interval(Duration::from_millis(100));
        loop {
            tokio::select! {
                said = other.hear_message() => match said {
                    Some(Said::Commands(commands)) => {
                        commands.into_iter().for_each(|c| other.carry_out(c));
                        other.flush().await;
                    }
                    None | Some(Said::Welcome(_)) => {}
                    Some(end) => return end,
                },
                _ = beats.tick() => other.beat().await,
            }
        }
    });
    let goodbye = silent.goodbye().await;
    assert!(!goodbye.over && goodbye.why.contains("silent"), "{}", goodbye.why);
    let end = within("the other's end", beating).await.unwrap();
    assert!(matches!(end, Said::Goodbye(v1::Goodbye { over: true, .. })), "{end:?}");
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 1));
    assert!(
        done.facts.hosts[&dormouse_units::HostId::new(0)].lost.is_some()
            && done.facts.hosts[&dormouse_units::HostId::new(1)].lost.is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_beats_and_answers_nothing_is_given_up_and_its_tasks_run_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(1, 1, dir.path());
    (live.workers, live.answer_within) = (2, Duration::from_secs(3));
    let (coordinator, mut deaf, _) = joined("deaf", live).await;

    let mut other = FakeWorker::new("other", &coordinator.at);
    other.join().await;
    // It takes the command, and goes on beating.
    let vm = created(&deaf.commands().await);
    let beating = async {
        let mut beats = tokio::time::interval(Duration::from_millis(100));
        loop {
            tokio::select! {
                said = deaf.hear_message() => if let Some(said) = said { return said },
                _ = beats.tick() => deaf.beat().await,
            }
        }
    };
    let (said, end) = tokio::join!(within("the goodbye", beating), other.obey());
    let Said::Goodbye(v1::Goodbye { why, over: false }) = said else { panic!("{said:?}") };
    assert!(why.contains(&format!("told to make vm{vm} and has not answered for 3 s")), "{why}");
    assert!(matches!(end, Said::Goodbye(v1::Goodbye { over: true, .. })), "{end:?}");
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_loses_the_worker_that_says_it_and_says_what_was_wrong() {
    let report =
        |report| v1::from_worker::Body::Reports(v1::Reports { first: 2, reports: vec![report] });
    let gap = v1::Reports { first: 9, reports: vec![v1::Report { report: Some(vm_created(1)) }] };
    let again = v1::report::Report::Ready(v1::Ready { real_repetition_us: vec![] });
    let damaged = v1::report::Report::TaskFinished(v1::TaskFinished::default());
    let cases = [
        (0, v1::from_worker::Body::Reports(gap), "missing"),
        (0, report(v1::Report { report: Some(damaged) }), "name its task"),
        (0, report(v1::Report { report: Some(again) }), "must be Ready"),
        (99, v1::from_worker::Body::Heartbeat(v1::Heartbeat {}), "acknowledged command 99"),
    ];
    let mut all = tokio::task::JoinSet::new();
    for (ack, body, word) in cases {
        all.spawn(nonsense(ack, body, word));
    }
    while let Some(case) = all.join_next().await {
        case.unwrap();
    }
}

async fn nonsense(ack: u64, body: v1::from_worker::Body, word: &str) {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(1, 1, dir.path());
    // Nobody else is waited for.
    (live.lost_after, live.hold) = (Duration::from_secs(2), Duration::from_secs(2));
    let (coordinator, mut worker, _) = joined("w", live).await;

    created(&worker.commands().await);
    worker.say_raw(v1::FromWorker { ack, body: Some(body) }).await;
    let goodbye = worker.goodbye().await;
    assert!(!goodbye.over && goodbye.why.contains(word), "{}", goodbye.why);
    // No worker is left, so the scheduler's next launch was refused: nothing will ever happen
    // again, and the coordinator says so.
    let done = coordinator.outcome().await.unwrap();
    let why = done.run.cancel_reason().unwrap();
    assert!(why.contains("nothing will ever happen") && why.contains("no host"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_message_breaks_the_connection_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("w", live(1, 1, dir.path())).await;
    let why = "x".repeat(5 << 20);
    let huge = v1::report::Report::VmFailed(v1::VmFailed { vm, why });
    let reports = vec![v1::Report { report: Some(huge) }];
    worker.say(v1::from_worker::Body::Reports(v1::Reports { first: 2, reports })).await;
    let end = worker.hear().await;
    assert!(matches!(end, Said::Ended(_)), "{end:?}");
    worker.disconnect();
    worker.connect().await.unwrap();
    worker.welcome().await;
    worker.report(vm_created(vm)).await;
    assert!(matches!(worker.obey().await, Said::Goodbye(_)));
    assert_eq!(coordinator.outcome().await.unwrap().run.unfinished_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_say_hello_properly_gets_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator = Under::start(live(1, 1, dir.path())).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    let beat =
        v1::FromWorker { ack: 0, body: Some(v1::from_worker::Body::Heartbeat(v1::Heartbeat {})) };
    let no = worker.open(beat).await.unwrap_err();
    assert_eq!(no.code(), tonic::Code::InvalidArgument);
    let hello = v1::Hello {
        worker: "w".to_owned(),
        millicores: 1,
        newest_protocol: 99,
        ..Default::default()
    };
    let hello = v1::FromWorker { ack: 0, body: Some(v1::from_worker::Body::Hello(hello)) };
    let no = worker.open(hello).await.unwrap_err();
    assert!(no.message().contains("speaks protocol 99,"), "{no}");
    coordinator.cancel.cancel();
    let done = coordinator.outcome().await.unwrap();
    assert!(done.run.cancel_reason().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_hosts_cannot_hold_is_refused_and_the_workers_sent_home() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(1, 1, dir.path());
    live.noop = false;
    live.programs = vec![checked()];
    let coordinator = Under::start(live).await;
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.connect().await.unwrap();
    let welcome = worker.welcome().await;
    assert_eq!(welcome.programs, [v1::Program { args: vec!["vector".to_owned()] }]);
    let real_repetition_us = vec![60_000_000];
    worker.report(v1::report::Report::Ready(v1::Ready { real_repetition_us })).await;
    let goodbye = worker.goodbye().await;
    assert!(goodbye.over && goodbye.why.contains("--speedup 1 or less"), "{}", goodbye.why);
    let no = coordinator.outcome().await.unwrap_err();
    assert!(matches!(no, CoordinatorError::Admission(_)), "{no}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_cleanly_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut worker, vm) = begun("w", live(1, 1, dir.path())).await;
    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    coordinator.cancel.cancel();
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!(done.run.cancel_reason(), Some("the user ended it"));
    let mut log = LogReader::open(&done.log).unwrap();
    assert!(log.header()["live"]["share_ppm"].is_u64());
    let (mut over, mut destroyed) = (false, false);
    while let Some(step) = log.next_step::<Step>().unwrap() {
        over |= step.effects.contains(&Effect::Over { complete: false });
        destroyed |= matches!(
            step.event,
            Event::Machine { report: dormouse_model::Report::VmDestroyed { .. }, .. }
        );
    }
    assert!(over && destroyed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_limit_ends_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(1, 1, dir.path());
    live.limit = Time::from_secs(6);
    let (coordinator, mut worker, vm) = begun("w", live).await;

    worker.report(vm_created(vm)).await;
    started(&worker.commands().await);
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert!(done.run.cancel_reason().unwrap().contains("time limit of 6s"));
    assert!(done.run.over_at().unwrap() >= Time::from_secs(6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_of_the_scheduler_ends_the_run_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = live(9, 1, dir.path());
    live.policies = vec![(TenantWork::All, Box::new(Fifo::new(9, 1).panicking_at(3)))];
    let (coordinator, mut worker, _) = joined("w", live).await;

    let Said::Goodbye(goodbye) = worker.obey().await else { panic!("no goodbye") };
    assert!(goodbye.over && goodbye.why.contains("scheduler has a bug"), "{}", goodbye.why);
    let no = coordinator.outcome().await.unwrap_err();
    assert!(matches!(no, CoordinatorError::Part { .. }), "{no}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_port_is_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut live = live(1, 1, dir.path());
    live.listen = taken.local_addr().unwrap();
    let no = live.bind_run().await.unwrap_err();
    assert!(no.to_string().contains("another program listens there"), "{no}");
}
