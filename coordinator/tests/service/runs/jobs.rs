//! Live runs of parallel jobs, with workers that a test controls.

use std::path::Path;
use std::time::Duration;

use crate::common::{FakeWorker, PATIENCE, Said, Under, answer, joined, live as bag};
use dormouse_coordinator::admission::RunDemand;
use dormouse_coordinator::{LiveRunPlan, RemoteCoordinator, replay_log};
use dormouse_engine::Run;
use dormouse_identity::Role;
use dormouse_model::{Decision, Event, Setup, Submission, TenantWork, UsageInformation};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config};
use dormouse_proto::v1;
use dormouse_units::{Bytes, Ppm, Span, Speedup, Time, Usage};
use v1::{command::Command as C, report::Report as R};

/// Number of processors of the machine for parallel jobs.
const MACHINE: u32 = 4;

fn submissions(n: u64) -> Vec<Submission> {
    (1..=n)
        .map(|number| Submission {
            number,
            submitted: Time::from_secs(10 * number),
            processes: 1 + number as u32 % 3,
            runtime: Span::from_secs(50),
            estimate: Span::from_secs(60),
            usage: Usage::Uniform(Ppm::new(500_000)),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        })
        .collect()
}

fn setup() -> Setup {
    Setup::of_jobs(MACHINE, UsageInformation::Exact, 1)
}

fn policy(algorithm: Algorithm) -> Box<BatchScheduler> {
    let kind = setup().jobs.unwrap().machine;
    Box::new(BatchScheduler::new(Config::new(algorithm, MACHINE), kind))
}

fn live(algorithm: Algorithm, submissions: Vec<Submission>, out: &Path) -> LiveRunPlan {
    LiveRunPlan {
        setup: setup(),
        policies: vec![(TenantWork::All, policy(algorithm))],
        submissions,
        demand: RunDemand {
            vms: vec![MACHINE],
            kinds: [setup().jobs.unwrap().machine].into(),
            ..RunDemand::default()
        },
        programs: Vec::new(),
        inputs: std::collections::BTreeMap::new(),
        noop: false,
        api: None,
        faults: Vec::new(),
        speedup: Speedup::from_f64(1_000.0).unwrap(),
        lost_after: Duration::from_millis(300),
        hold: Duration::from_millis(300),
        workers_stay: false,
        ..bag(0, 1, out)
    }
}

/// Checks that the log of a run of this algorithm is replayed without a difference; returns the number of decisions in
/// it.
fn comes_out_again(algorithm: Algorithm, log: &Path) -> usize {
    let report = replay_log(log, |_| Ok(Run::new(setup(), policy(algorithm)))).unwrap();
    assert_eq!((report.difference, report.torn), (None, false), "{algorithm}");
    let steps: Vec<dormouse_model::Step> = std::fs::read_to_string(log)
        .unwrap()
        .lines()
        .skip(1)
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(steps.is_sorted_by_key(|step| step.at), "{algorithm}");
    let over = steps.iter().filter(|step| step.event == Event::InstantOver);
    over.map(|step| step.decisions.len()).sum()
}

#[tokio::test]
async fn every_decision_is_on_record_and_comes_out_again() {
    for algorithm in Algorithm::ALL {
        let folder = tempfile::tempdir().unwrap();
        let (under, mut worker, _) =
            joined("w", live(algorithm, submissions(12), folder.path())).await;
        worker.obey_to_the_end().await;
        let done = under.outcome().await.unwrap();
        let (finished, rejected) = (done.run.tasks().finished_count(), done.run.counts().rejected);
        assert_eq!((finished, rejected, done.facts.jobs.verified), (12, 0, 12), "{algorithm}");
        let decided = comes_out_again(algorithm, &done.log);
        assert!(decided > 12, "{algorithm}: {decided} decisions");
    }
}

/// Makes the report that a started job has ended with the right answer.
fn ended(start: v1::StartTask, verified: bool) -> R {
    let (task, job, result) = (start.task, Some(v1::JobAccount::default()), answer(start.program));
    R::TaskFinished(v1::TaskFinished { task, job, verified, result, ..Default::default() })
}

/// Counts of a worker's commands about running jobs: promotions in place, moves, kills.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    swaps: u32,
    moves: u32,
    kills: u32,
}

/// Carries out all commands, but ends a job only after two messages without commands, so that there are jobs to
/// promote, move and kill.
async fn obey_slowly(worker: &mut FakeWorker) -> Told {
    let (mut told, mut held, mut quiet) = (Told::default(), Vec::new(), 0);
    loop {
        match worker.hear_message().await {
            Some(Said::Commands(commands)) => {
                quiet = 0;
                for command in commands {
                    match command {
                        C::StartTask(job) => {
                            let task = job.task;
                            held.push(job);
                            let started = v1::TaskStarted {
                                task,
                                done_ppm: 0,
                                real_took_us: 7,
                                ..Default::default()
                            };
                            worker.make(R::TaskStarted(started));
                        }
                        C::PromoteTask(job) => {
                            told.swaps += 1;
                            let task = Some(job);
                            let promoted = v1::TaskPromoted { task, real_took_us: 7 };
                            worker.make(R::TaskPromoted(promoted));
                        }
                        C::MoveTask(v1::MoveTask { task, .. }) => {
                            told.moves += 1;
                            let done_ppm = 1;
                            let moved = v1::TaskMoved { task, done_ppm, ..Default::default() };
                            worker.make(R::TaskMoved(moved));
                        }
                        C::StopTask(v1::StopTask { task: Some(job), .. }) => {
                            told.kills += 1;
                            held.retain(|other: &v1::StartTask| other.task != Some(job));
                            let (task, job) = (Some(job), Some(v1::JobAccount::default()));
                            let stopped = v1::TaskStopped { task, job, ..Default::default() };
                            worker.make(R::TaskStopped(stopped));
                        }
                        other => worker.carry_out(other),
                    }
                }
                worker.flush().await;
            }
            None if quiet > 0 && !held.is_empty() => {
                quiet = 0;
                worker.report(ended(held.remove(0), true)).await;
            }
            None => {
                quiet += 1;
                worker.beat().await;
            }
            Some(Said::Goodbye(v1::Goodbye { over: true, .. })) => return told,
            other => panic!("it was not to end so: {other:?}"),
        }
    }
}

#[tokio::test]
async fn jobs_are_promoted_moved_and_killed_as_decided() {
    for (algorithm, promotes) in [
        (Algorithm::Keasy, (|told| told.kills) as fn(Told) -> u32),
        (Algorithm::Reasy, |told| told.swaps),
        (Algorithm::Measy, |told| told.moves + told.swaps),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (under, mut worker, _) =
            joined("w", live(algorithm, submissions(24), folder.path())).await;
        let told = obey_slowly(&mut worker).await;
        let done = under.outcome().await.unwrap();
        let counts = done.run.counts();
        assert_eq!((done.run.tasks().finished_count(), counts.rejected), (24, 0), "{algorithm}");
        let counted = Told { swaps: counts.swaps, moves: counts.migrations, kills: counts.kills };
        assert_eq!(told, counted, "{algorithm}");
        assert!(promotes(told) > 0, "{algorithm}: {told:?}");
        comes_out_again(algorithm, &done.log);
    }
}

/// Creates the machine for parallel jobs; returns the start of the first job on it.
async fn first_job(worker: &mut FakeWorker) -> v1::StartTask {
    // It may be a while until a machine is made: until the worker that had it is lost.
    let commands = loop {
        match worker.hear_message().await {
            Some(Said::Commands(commands)) => break commands,
            None => worker.beat().await,
            other => panic!("expected commands, got {other:?}"),
        }
    };
    let [C::CreateVm(machine)] = &commands[..] else { panic!("{commands:?}") };
    assert!((machine.vcpus, machine.two_tier) == (MACHINE, true) && machine.core_ppm.is_some());
    worker.report(R::VmCreated(v1::VmRef { vm: machine.vm })).await;
    let mut commands = worker.take(1).await.into_iter();
    let Some(C::StartTask(start)) = commands.next() else { panic!("no job is started first") };
    // All others end at once.
    commands.for_each(|other| worker.carry_out(other));
    worker.flush().await;
    start
}

#[tokio::test]
async fn a_lost_machine_is_made_again_on_another_worker() {
    let folder = tempfile::tempdir().unwrap();
    let (under, mut worker, _) =
        joined("first", live(Algorithm::Measy, submissions(3), folder.path())).await;
    let before = first_job(&mut worker).await.task.unwrap();
    worker.disconnect();
    let mut second = FakeWorker::new("second", &under.at);
    second.join().await;
    let again = tokio::time::timeout(PATIENCE, first_job(&mut second)).await.unwrap();
    let is = again.task.unwrap();
    assert_eq!((is.task, is.attempt), (before.task, before.attempt + 1));
    second.report(ended(again, true)).await;
    second.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.run.counts().hosts_lost), (3, 1));
    comes_out_again(Algorithm::Measy, &done.log);
}

#[tokio::test]
async fn a_machine_that_cannot_be_made_is_asked_for_again_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let (under, mut worker, _) =
        joined("w", live(Algorithm::Easy, submissions(2), folder.path())).await;
    let commands = worker.take(1).await;
    let [C::CreateVm(first)] = &commands[..] else { panic!("{commands:?}") };
    let why = "no room for its groups".to_owned();
    worker.report(R::VmFailed(v1::VmFailed { vm: first.vm, why })).await;
    worker.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.facts.vms_lost), (2, 1));
    // The clock has not stood meanwhile: a minute passed until it was asked for again.
    assert!(done.run.over_at().unwrap() >= Time::from_secs(60), "{:?}", done.run.over_at());
    comes_out_again(Algorithm::Easy, &done.log);
}

#[tokio::test]
async fn a_run_does_not_go_on_with_other_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let first = live(Algorithm::Easy, submissions(3), folder.path());
    let pause = first.pause.clone();
    let (under, mut worker, _) = joined("w", first).await;

    first_job(&mut worker).await;
    pause.cancel();
    under.outcome().await.unwrap_err();
    let mut others = submissions(3);
    others[0].runtime = Span::from_secs(51);
    let mut again = live(Algorithm::Easy, others, folder.path());
    again.resume = true;
    let no = again.conduct_run().await.unwrap_err().to_string();
    assert!(no.contains("job 1 has changed since"), "{no}");
}

#[tokio::test]
async fn a_job_that_fails_or_answers_wrongly_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (under, mut worker, _) =
        joined("w", live(Algorithm::Easy, submissions(3), folder.path())).await;
    let first = first_job(&mut worker).await.task.unwrap();
    let why = "it fell over".to_owned();
    let failed = v1::TaskFailed { task: Some(first), why, ..Default::default() };
    worker.report(R::TaskFailed(failed)).await;
    let second = started_again(&mut worker, first).await;
    worker.report(ended(second.clone(), false)).await;
    let third = started_again(&mut worker, second.task.unwrap()).await;
    worker.carry_out(C::StartTask(third));
    worker.flush().await;
    worker.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.run.counts().attempts_failed), (3, 2));
    assert_eq!(done.facts.jobs.wrong.len(), 1);
}

/// Returns the next start of the job `before`; other jobs that are started meanwhile end at once.
async fn started_again(worker: &mut FakeWorker, before: v1::TaskRef) -> v1::StartTask {
    let mut found = None;
    while found.is_none() {
        for command in worker.take(1).await {
            match command {
                C::StartTask(start) if start.task.is_some_and(|of| of.task == before.task) => {
                    found = Some(start);
                }
                other => worker.carry_out(other),
            }
        }
        worker.flush().await;
    }
    let found = found.unwrap();
    assert_eq!(found.task.unwrap().attempt, before.attempt + 1);
    found
}

#[tokio::test]
async fn a_run_that_was_stopped_goes_on_with_the_jobs_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let first = live(Algorithm::Keasy, submissions(9), folder.path());
    let pause = first.pause.clone();
    let (under, mut worker, before) = joined("w", first).await;
    let address = under.at.address;

    let job = first_job(&mut worker).await;
    pause.cancel();
    let stopped = under.outcome().await.unwrap_err();
    assert!(stopped.to_string().contains("paused"), "{stopped}");
    worker.disconnect();
    // Its last report comes when it is back.
    worker.make(ended(job, true));
    let mut again = live(Algorithm::Keasy, submissions(9), folder.path());
    (again.listen, again.resume, again.lost_after) = (address, true, PATIENCE);
    let under = Under::start(again).await;
    worker.connect().await.unwrap();
    assert_eq!(worker.welcome().await.run, before.run);
    worker.obey_to_the_end().await;
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.run.counts().hosts_lost), (9, 0));
    assert_eq!(done.facts.outages.len(), 1);
    comes_out_again(Algorithm::Keasy, &done.log);
}

#[tokio::test]
async fn a_machine_that_could_not_be_had_is_asked_for_again_as_soon_as_a_host_joins() {
    let folder = tempfile::tempdir().unwrap();
    let under = Under::start(live(Algorithm::Easy, submissions(3), folder.path())).await;
    let mut worker = FakeWorker::new("w", &under.at);
    worker.join().await;
    first_job(&mut worker).await;
    worker.disconnect();
    // Nobody else is there: until it has measured, no host has a machine.
    let mut anew = worker.anew();
    anew.take_over().await;
    let job = first_job(&mut anew).await;
    anew.report(R::TaskFailed(v1::TaskFailed {
        task: job.task,
        why: "no matter".to_owned(),
        ..v1::TaskFailed::default()
    }))
    .await;
    anew.obey().await;
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.run.counts().launches_refused), (3, 1));
    comes_out_again(Algorithm::Easy, &done.log);
    let log = std::fs::read_to_string(&done.log).unwrap();
    assert!(log.contains("no host has 4 vCPUs free for a VM of type"), "said plainly");
    let steps: Vec<dormouse_model::Step> =
        log.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let joined = |step: &dormouse_model::Step| matches!(step.event, Event::HostJoined { .. });
    let last = steps.iter().rposition(joined).unwrap();
    let launches = |step: &&dormouse_model::Step| {
        let launch = |d: &Decision| matches!(d, Decision::Launch { .. });
        step.decisions.iter().any(launch)
    };
    let launched = steps[last..].iter().find(launches).unwrap();
    assert_eq!(launched.at, steps[last].at, "not when it would have been tried again anyway");
}

#[tokio::test]
async fn a_machine_without_criu_is_refused_where_jobs_migrate() {
    let folder = tempfile::tempdir().unwrap();
    let live = live(Algorithm::Measy, submissions(1), folder.path());
    let under = Under::start(LiveRunPlan { needs_criu: true, ..live }).await;
    let mut worker = FakeWorker::new("w", &under.at);
    let no = worker.connect().await.unwrap_err();
    assert!(no.message().contains("worker w has no working CRIU"), "{no}");
    worker.capabilities = vec![dormouse_proto::CRIU.to_owned()];
    let no = worker.connect().await.unwrap_err();
    assert!(no.message().contains("does not offer 'tiers'"), "{no}");
    under.cancel.cancel();
    under.outcome().await.unwrap();
}

#[tokio::test]
async fn particulars_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = async |change: fn(&mut LiveRunPlan), word: &str| {
        let mut live = live(Algorithm::Easy, submissions(3), folder.path());
        change(&mut live);
        let error = live.bind_run().await.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused(|live| live.submissions[1].processes = 5, "job 2 can't be run").await;
    refused(|live| live.submissions.reverse(), "order of submission").await;
    refused(|live| live.reserve = Ppm::ONE, "below 1").await;
    refused(|live| live.setup.jobs = None, "no machine for them").await;
}

fn asked(key: &str, processes: u32) -> v1::SubmitRequest {
    let (emulated_runtime_us, usage_ppm) = (40_000_000, vec![500_000]);
    v1::SubmitRequest {
        memory_bytes_each: 0,
        key: key.to_owned(),
        processes,
        emulated_runtime_us,
        emulated_estimate_us: 0,
        usage_ppm,
    }
}

async fn remote(under: &Under) -> RemoteCoordinator {
    RemoteCoordinator::dial_coordinator(
        &under.at.address.to_string(),
        under.at.token(Role::Operator),
    )
    .await
    .unwrap()
}

/// Makes an open run of `n` jobs, which is resumed if `resume` is set.
fn open(n: u64, out: &Path, resume: bool) -> LiveRunPlan {
    LiveRunPlan { open: true, resume, ..live(Algorithm::Measy, submissions(n), out) }
}

#[tokio::test]
async fn an_open_run_takes_jobs_once_each_and_ends_when_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let (under, mut worker, _) = joined("w", open(2, folder.path(), false)).await;
    let mut user = remote(&under).await;
    let log = || std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let obeying = tokio::spawn(async move { obey_slowly(&mut worker).await });
    // Until its worker is there it takes none.
    let first = loop {
        match user.submit_job(asked("mine", 2)).await {
            Ok(taken) => break taken,
            Err(no) => assert!(no.to_string().contains("has not begun"), "{no}"),
        }
    };
    assert_eq!((first.number, first.known), (3, false));
    assert!(log().contains(r#""key":"mine""#), "it is in the log before it is answered");
    for (request, word) in [
        (asked("large", MACHINE + 1), "wants 5 processors; the machine has 4"),
        (asked("mine", 1), "is the key of job 3, a different job"),
        (asked("none", 0), "no processor"),
        (v1::SubmitRequest { emulated_runtime_us: 0, ..asked("short", 1) }, "run time of 0"),
        (
            v1::SubmitRequest { memory_bytes_each: 1 << 20, ..asked("fat", 1) },
            "wants 1 MiB for each process, but the machine's memory is not given",
        ),
    ] {
        let no = user.submit_job(request).await.unwrap_err().to_string();
        assert!(no.contains(word), "{no}");
    }
    let again = user.submit_job(asked("mine", 2)).await.unwrap();
    assert_eq!(again, v1::SubmitReply { known: true, ..first });
    assert_eq!(user.submit_job(asked("other", 1)).await.unwrap().number, 4);
    // All that it has may end: it goes on.
    while user.get_status().await.unwrap().completed < 4 {
        tokio::task::yield_now().await;
    }
    assert!(!user.get_status().await.unwrap().over);
    assert_eq!(user.submit_job(asked("late", 1)).await.unwrap().number, 5);
    user.close().await.unwrap();
    assert!(log().contains(r#""event":"closed""#), "that is in the log before it is answered");
    if let Err(no) = user.submit_job(asked("too late", 1)).await {
        // It may be over by now, and its coordinator gone.
        let no = no.to_string();
        assert!(["closed", "over", "ending", "coordinator"].iter().any(|w| no.contains(w)), "{no}");
    } else {
        panic!("a closed run has taken a job");
    }
    obeying.await.unwrap();
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.facts.jobs.verified), (5, 5));
    assert_eq!(done.run.cancel_reason(), None);
    comes_out_again(Algorithm::Measy, &done.log);
    assert_eq!(log().matches(r#""key":"mine""#).count(), 1);
}

#[tokio::test]
async fn jobs_from_outside_are_there_when_a_run_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(1, folder.path(), false);
    let pause = first.pause.clone();
    let (under, mut worker, _) = joined("w", first).await;
    first_job(&mut worker).await;
    let taken = remote(&under).await.submit_job(asked("mine", 2)).await.unwrap();
    pause.cancel();
    under.outcome().await.unwrap_err();

    let under = Under::start(open(1, folder.path(), true)).await;
    let mut user = remote(&under).await;
    let no = user.submit_job(asked("mine", 2)).await.unwrap_err().to_string();
    assert!(no.contains("once its workers are back"), "{no}");
    let mut anew = FakeWorker::new("other", &under.at);
    anew.join().await;
    let again = loop {
        match user.submit_job(asked("mine", 2)).await {
            Ok(again) => break again,
            Err(no) => assert!(no.to_string().contains("once its workers are back"), "{no}"),
        }
    };
    assert_eq!(again, v1::SubmitReply { known: true, ..taken });
    assert_eq!(user.submit_job(asked("more", 1)).await.unwrap().number, taken.number + 1);
    let obeying = tokio::spawn(async move { obey_slowly(&mut anew).await });
    user.close().await.unwrap();
    user.close().await.unwrap();
    obeying.await.unwrap();
    let done = under.outcome().await.unwrap();
    assert_eq!((done.run.tasks().finished_count(), done.facts.jobs.verified), (3, 3));
    comes_out_again(Algorithm::Measy, &done.log);
}

#[tokio::test]
async fn only_an_open_run_of_parallel_jobs_takes_more_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let (under, mut worker, _) =
        joined("w", live(Algorithm::Easy, submissions(1), folder.path())).await;
    first_job(&mut worker).await;
    let mut user = remote(&under).await;
    for no in [
        user.submit_job(asked("k", 1)).await.map(drop).unwrap_err(),
        user.close().await.unwrap_err(),
    ] {
        assert!(no.to_string().contains("--open"), "{no}");
    }
    under.cancel.cancel();
    worker.obey_to_the_end().await;
    under.outcome().await.unwrap();
    let none = LiveRunPlan { open: true, ..bag(1, 1, &folder.path().join("bag")) };
    let no = none.conduct_run().await.unwrap_err().to_string();
    assert!(no.contains("only parallel jobs"), "{no}");
}
