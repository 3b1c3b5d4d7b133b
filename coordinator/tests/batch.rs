//! Live runs of parallel jobs, with a worker that only says what it is told to say.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{At, FakeWorker, Said, within};
use dormouse_batch::{Algorithm, Config, Scheduler, Submission, Usage, UsageInformation};
use dormouse_coordinator::{BatchConducted, BatchLive, BatchStep, BoundBatch, Speedup};
use dormouse_proto::v1;
use dormouse_units::{Ppm, Span, Time};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use v1::{command::Command as C, report::Report as R};

fn submissions(n: u64) -> Vec<Submission> {
    (1..=n)
        .map(|number| Submission {
            number,
            submitted: Time::from_secs(10 * number),
            processes: 1 + number as u32 % 3,
            runtime: Span::from_secs(50),
            estimate: Span::from_secs(60),
            usage: Usage::Uniform(Ppm::new(500_000)),
        })
        .collect()
}

fn live(algorithm: Algorithm, jobs: Vec<Submission>, out: &Path) -> BatchLive {
    BatchLive {
        config: Config::new(algorithm, 4),
        information: UsageInformation::Exact,
        submissions: jobs,
        experiment: "test".to_owned(),
        header: common::header(),
        listen: ([127, 0, 0, 1], 0).into(),
        speedup: Speedup::from_f64(1_000.0).unwrap(),
        reserve: Ppm::new(100_000),
        phase: Duration::from_millis(100),
        needs_criu: false,
        out: out.to_path_buf(),
        lost_after: Duration::from_secs(1),
        limit: Time::from_secs(1_000_000),
        progress: None,
        cancel: CancellationToken::new(),
    }
}

type Running = JoinHandle<Result<BatchConducted, dormouse_coordinator::CoordinatorError>>;

fn conduct(bound: BoundBatch) -> (FakeWorker, Running) {
    let at = At::new(bound.address(), &bound.secret_file());
    let worker = FakeWorker::new("w", 1, &at);
    (worker, tokio::spawn(bound.conduct()))
}

fn steps(log: &Path) -> Vec<BatchStep> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_decision_is_on_record_and_comes_out_again() {
    for algorithm in Algorithm::ALL {
        let folder = tempfile::tempdir().unwrap();
        let bound = live(algorithm, submissions(12), folder.path()).bind().await.unwrap();
        let (mut worker, running) = conduct(bound);
        worker.join().await;
        let end = worker.obey().await;
        assert!(matches!(end, Said::Goodbye(v1::Goodbye { over: true, .. })), "{end:?}");
        let conducted = within("the run's end", running).await.unwrap().unwrap();
        assert_eq!((conducted.facts.verified, conducted.cancelled), (12, None), "{algorithm}");
        let mut scheduler = Scheduler::new(Config::new(algorithm, 4));
        let mut decided = 0;
        for step in steps(&conducted.log).into_iter().filter(|step| !step.events.is_empty()) {
            let mut again = Vec::new();
            scheduler.handle(step.at, step.events, &mut again).unwrap();
            assert_eq!(again, step.decisions, "{algorithm}");
            decided += again.len();
        }
        assert!(decided >= 12, "{algorithm}: {decided} decisions");
    }
}

#[tokio::test]
async fn a_machine_that_is_lost_ends_the_run_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let bound = live(Algorithm::Measy, submissions(3), folder.path()).bind().await.unwrap();
    let (mut worker, running) = conduct(bound);
    worker.join().await;
    assert!(matches!(worker.commands().await[..], [C::CreateMachine(_)]));
    worker.report(R::VmCreated(v1::VmRef { vm: 0 })).await;
    assert!(matches!(worker.commands().await[..], [C::StartJob(_), ..]));
    worker.disconnect();
    let conducted = within("the run's end", running).await.unwrap().unwrap();
    let why = conducted.cancelled.unwrap();
    assert!(why.contains("worker w") && why.contains("lost"), "{why}");
    assert_eq!(steps(&conducted.log).last().unwrap().cancelled, Some(why));
}

#[tokio::test]
async fn a_job_that_fails_ends_the_run_and_the_machine_goes() {
    let folder = tempfile::tempdir().unwrap();
    let bound = live(Algorithm::Easy, submissions(3), folder.path()).bind().await.unwrap();
    let (mut worker, running) = conduct(bound);
    worker.join().await;
    worker.commands().await;
    worker.report(R::VmCreated(v1::VmRef { vm: 0 })).await;
    let started = worker.commands().await;
    let [C::StartJob(start), ..] = &started[..] else { panic!("{started:?}") };
    let why = "it fell over".to_owned();
    worker.report(R::JobFailed(v1::JobFailed { job: start.job, why })).await;
    loop {
        let commands = worker.commands().await;
        if commands.iter().any(|c| matches!(c, C::DestroyVm(_))) {
            break;
        }
    }
    worker.report(R::VmDestroyed(v1::VmRef { vm: 0 })).await;
    let conducted = within("the run's end", running).await.unwrap().unwrap();
    assert!(conducted.cancelled.unwrap().contains("job0 failed: it fell over"));
}

#[tokio::test]
async fn particulars_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = async |change: fn(&mut BatchLive), word: &str| {
        let mut live = live(Algorithm::Easy, submissions(3), folder.path());
        change(&mut live);
        let error = live.bind().await.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(|live| live.submissions[1].processes = 5, "job 2 wants 5 processors").await;
    refused(|live| live.submissions.reverse(), "order of submission").await;
    refused(|live| live.reserve = Ppm::ONE, "below 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_without_criu_is_refused_where_jobs_migrate() {
    let dir = tempfile::tempdir().unwrap();
    let live = live(Algorithm::Measy, submissions(1), dir.path());
    let live = BatchLive { needs_criu: true, ..live };
    let cancel = live.cancel.clone();
    let (mut worker, running) = conduct(live.bind().await.unwrap());
    let no = worker.connect().await.unwrap_err();
    assert!(no.message().contains("worker w has no CRIU"), "{no}");
    cancel.cancel();
    within("the end", running).await.unwrap().unwrap();
}
