//! Tests of which workers a run takes and which it sends away.

use crate::common::*;
use dormouse_coordinator::LiveRunPlan;
use dormouse_proto::v1;

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_criu_is_refused_where_tasks_are_checkpointed() {
    let dir = tempfile::tempdir().unwrap();
    let coordinator =
        Under::start(LiveRunPlan { needs_criu: true, ..live(1, 1, dir.path()) }).await;
    let no = FakeWorker::new("bare", &coordinator.at).connect().await.unwrap_err();
    assert_eq!(no.code(), tonic::Code::AlreadyExists, "{no}");
    for words in ["worker bare has no working CRIU", "checkpoints", "scripts/get-criu"] {
        assert!(no.message().contains(words), "no '{words}' in: {no}");
    }
    let mut worker = FakeWorker::new("w", &coordinator.at);
    worker.capabilities = vec![dormouse_proto::CRIU.to_owned(), "levitation".to_owned()];
    worker.join().await;
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.facts.hosts.len()), (0, 1));
}

/// Starts a run of one task on a worker that holds one vCPU for each of its cores.
async fn begun_on_first(dir: &std::path::Path) -> (Under, FakeWorker, u32) {
    begun("first", LiveRunPlan { noop: false, ..live(1, 1, dir) }).await
}

/// Connects a late worker that reports this time for a repetition; returns the worker and the coordinator's answer.
async fn comes_late(mut worker: FakeWorker, repetition_us: u64) -> (FakeWorker, Said) {
    worker.connect().await.unwrap();
    assert_eq!(worker.welcome().await.programs.len(), 1);
    let real_repetition_us = vec![repetition_us];
    worker.report(v1::report::Report::Ready(v1::Ready { real_repetition_us })).await;
    let said = loop {
        let said = worker.hear_message().await;
        match said {
            Some(said) => break said,
            // It is on record: it was taken.
            None if worker.acked > 0 => break Said::Ended(None),
            None => {}
        }
    };
    (worker, said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_worker_that_does_not_suit_the_run_is_sent_away_for_good_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let (coordinator, mut first, vm) = begun_on_first(dir.path()).await;
    // A core × 100 s / 30 is what the task is given in all.
    let slow = FakeWorker::new("slow", &coordinator.at);
    let mut small = FakeWorker::new("small", &coordinator.at);
    small.millicores = 900;
    let (_, said) = comes_late(slow, 3_333_334).await;
    let Said::Goodbye(v1::Goodbye { why, over: false }) = said else { panic!("{said:?}") };
    for words in ["'t' takes it 3333334 µs", "gives that task 3333333 µs", "faster"] {
        assert!(why.contains(words), "no '{words}' in: {why}");
    }
    let (_, said) = comes_late(small, 1).await;
    let Said::Goodbye(v1::Goodbye { why, over: false }) = said else { panic!("{said:?}") };
    for words in ["holds 0 vCPUs (0.9 cores", "the smallest VM has 1"] {
        assert!(why.contains(words), "no '{words}' in: {why}");
    }
    // In another life neither is better.
    for (name, word) in [("slow", "3333334"), ("small", "0 vCPUs")] {
        let no = FakeWorker::new(name, &coordinator.at).connect().await.unwrap_err();
        assert!(no.code() == tonic::Code::AlreadyExists && no.message().contains(word), "{no}");
    }
    let (_fit, said) = comes_late(FakeWorker::new("fit", &coordinator.at), 3_333_333).await;
    assert!(matches!(said, Said::Ended(None)), "{said:?}");
    first.report(vm_created(vm)).await;
    first.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    let names: Vec<_> = done.facts.hosts.values().map(|host| &host.name[..4]).collect();
    assert_eq!((done.run.unfinished_count(), &names[..]), (0, &["firs", "fit@"][..]));
    assert_eq!(done.run.counts().hosts_lost, 0);
}
