//! Answers that another host computes again: liars are found, honest hosts aren't accused, and the checks affect no
//! decision or bill.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::judged::{Judged, judged};
use crate::common::*;
use dormouse_analysis::LiveFacts;
use dormouse_model::{CheckFinding, Event};
use dormouse_proto::v1;
use dormouse_tasks::own::{OwnProgram, Saves, TaskProgram, Verify};
use dormouse_tasks::result::TaskResult;
use dormouse_tasks::trail::WorkTrail;
use dormouse_units::{Bytes, Ppm};
use v1::command::Command as C;
use v1::report::Report as R;

/// Value of an honest kernel's trail at a point, in these tests.
const HONEST: u64 = 100;
/// Value of a liar's trail at a point, in these tests.
const FORGED: u64 = 7;
/// CPU time that each task took, in microseconds, as its worker reports.
const CPU_US: u64 = 1_000_000;

/// Makes a worker's report on a task from its start command and the CPU time in microseconds that each task of the run
/// was ordered to take; `None`: the task failed.
type Answering = Box<dyn Fn(&v1::StartTask, u64) -> Option<v1::TaskFinished> + Send>;

/// A run with spot checks: its tasks, their program, and the part of the CPU time for checks.
struct Scene {
    tasks: usize,
    program: TaskProgram,
    spot_checks: Ppm,
}

impl Scene {
    fn of_kernel(tasks: usize) -> Self {
        let kernel = "ed --class S --id 7".split(' ').map(str::to_owned).collect();
        Self { tasks, program: TaskProgram::Kernel(kernel), spot_checks: Ppm::new(30_000) }
    }

    /// Plays the run with these workers, the first of which does all the tasks; returns the findings of the checks, and
    /// the verdict.
    async fn play(self, answering: Vec<Answering>) -> (Vec<CheckFinding>, Judged) {
        let dir = tempfile::tempdir().unwrap();
        let tasks = self.tasks;
        let live = dormouse_coordinator::LiveRunPlan {
            workers: u32::try_from(answering.len()).unwrap(),
            noop: false,
            spot_checks: self.spot_checks,
            programs: vec![self.program; tasks],
            ..live(tasks, 1, dir.path())
        };
        let coordinator = Under::start(live).await;
        let mut playing = Vec::new();
        let ordered = Arc::new(AtomicU64::new(0));
        for (number, answering) in answering.into_iter().enumerate() {
            let mut worker = FakeWorker::new(&format!("w{number}"), &coordinator.at);
            let can = [dormouse_proto::METADATA, dormouse_proto::TRAILS];
            worker.capabilities.extend(can.map(str::to_owned));
            worker.join().await;
            playing.push(tokio::spawn(play_worker(worker, answering, Arc::clone(&ordered))));
        }
        for worker in playing {
            worker.await.unwrap();
        }
        let done = coordinator.outcome().await.unwrap();
        let report =
            dormouse_coordinator::replay_log(&done.log, |_| Ok(run_again(tasks, 1))).unwrap();
        assert_eq!((report.difference, report.torn), (None, false));
        assert_eq!(report.decisions_sha256, done.run.digest(), "they are in no decision");
        let judged = judged(&done.log, &setup(tasks, 1));
        assert_eq!((judged.record.vms.len(), judged.record.finished()), (1, tasks));
        let found = judged.steps.iter().filter_map(|step| match &step.event {
            Event::SpotCheck { finding, .. } => Some(finding.clone()),
            _ => None,
        });
        (found.collect(), judged)
    }
}

/// Plays a worker that carries out all commands, to the end of the run.
async fn play_worker(mut worker: FakeWorker, answering: Answering, ordered: Arc<AtomicU64>) {
    loop {
        match worker.hear().await {
            Said::Commands(commands) => {
                for command in commands {
                    let C::StartTask(start) = command else {
                        worker.carry_out(command);
                        continue;
                    };
                    let task = start.task.unwrap();
                    if !is_check(&start) {
                        ordered.store(start.real_cpu_us, Ordering::Relaxed);
                    }
                    match answering(&start, ordered.load(Ordering::Relaxed)) {
                        Some(end) => worker.make(R::TaskFinished(end)),
                        None => worker.make(task_failed(task.vm, task.task, task.attempt)),
                    }
                }
                worker.flush().await;
            }
            Said::Welcome(_) => {}
            end => {
                let is_over = matches!(end, Said::Goodbye(v1::Goodbye { over: true, .. }));
                assert!(is_over, "{end:?}");
                return;
            }
        }
    }
}

/// Returns whether a start command belongs to a spot check, by its VM's large number.
fn is_check(start: &v1::StartTask) -> bool {
    start.task.unwrap().vm > u32::MAX / 2
}

fn end_of(start: &v1::StartTask, result: Option<TaskResult>) -> v1::TaskFinished {
    let task = start.task.unwrap();
    let R::TaskFinished(end) = finished(task.vm, task.task, task.attempt) else {
        panic!("it is one")
    };
    let result = result.map(|result| serde_json::to_string(&result).unwrap());
    v1::TaskFinished { result, real_cpu_us: CPU_US, ..end }
}

fn args(start: &v1::StartTask) -> &[String] {
    &start.program.as_ref().unwrap().args
}

/// Makes the right answer of a kernel after this many repetitions, whose trail has the value `first` at its first point
/// and grows by one at each point.
fn whole(start: &v1::StartTask, repetitions: u64, first: u64) -> TaskResult {
    let answer = dormouse_tasks::answer::reckoned(args(start), repetitions).unwrap();
    let points = (0..repetitions).map(|point| first + point).collect();
    TaskResult { trail: Some(WorkTrail { every: 1, points }), ..answer }
}

/// Makes a host's answer for one segment, with a trail that has the value `first` at the task's first point. A
/// repetition takes a third of the ordered CPU time, as three repetitions are reported.
fn segment(start: &v1::StartTask, ordered_us: u64, first: u64) -> TaskResult {
    let given = args(start);
    let at = given.iter().position(|word| word == "--segment").unwrap();
    let from: u64 = given[at + 1].split(':').next().unwrap().parse().unwrap();
    let answer = dormouse_tasks::answer::reckoned(given, 1).unwrap();
    let cpu_seconds = ordered_us as f64 / 3e6;
    TaskResult { trail_end: Some(first + from), cpu_seconds, ..answer }
}

/// Makes a worker that reports this many repetitions with a trail that begins with `first`, also when it checks others.
fn kernel(repetitions: u64, first: u64) -> Answering {
    Box::new(move |start, ordered| {
        let result = match is_check(start) {
            true => segment(start, ordered, first),
            false => whole(start, repetitions, first),
        };
        Some(end_of(start, Some(result)))
    })
}

fn sentences(judged: &Judged) -> String {
    let mut facts = LiveFacts::default();
    judged.steps.iter().for_each(|step| facts.see(step));
    facts.evidence.sentences(Some(Ppm::new(30_000))).join("|")
}

fn is_accused(judged: &Judged) -> bool {
    judged.fidelity.notes.iter().any(|note| note.contains("computed again"))
}

/// Makes a worker that answers checks with the right answer as changed by `make`.
fn checking(make: impl Fn(TaskResult) -> Option<TaskResult> + Send + 'static) -> Answering {
    Box::new(move |start, ordered| {
        assert!(is_check(start), "it was to do nothing else");
        Some(end_of(start, Some(make(segment(start, ordered, HONEST))?)))
    })
}

/// Makes a worker whose checks are right: three repetitions take the ordered CPU time.
fn honest_check() -> Answering {
    checking(Some)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_host_computes_again_is_as_it_was_reported() {
    let (found, judged) = Scene::of_kernel(1).play(vec![kernel(3, HONEST), honest_check()]).await;
    assert_eq!(found, [CheckFinding::Equal]);
    let said = sentences(&judged);
    assert!(said.starts_with("1 of 1 tasks were computed again in part on another host"), "{said}");
    assert!(said.contains("all as reported") && !is_accused(&judged), "{said}");
}

/// Attack: the worker computes one repetition and reports the full CPU time; the answer is right by its digest.
#[tokio::test(flavor = "multi_thread")]
async fn who_computed_one_repetition_of_a_hundred_is_found_by_another_host() {
    let fast = |right: TaskResult| Some(TaskResult { cpu_seconds: 1e-6, ..right });
    let (found, judged) = Scene::of_kernel(1).play(vec![kernel(1, HONEST), checking(fast)]).await;
    let [CheckFinding::Differs { why }] = &found[..] else { panic!("{found:?}") };
    assert!(why.contains("it claims 1 repetitions"), "{why}");
    judged.assert_denied("that host0 (w0) reported is not what host1 (w1) computed again");
}

/// Attack: the worker computes one repetition, but reports the right number of repetitions.
#[tokio::test(flavor = "multi_thread")]
async fn who_says_the_right_number_of_repetitions_and_computed_one_is_found_by_another_host() {
    let (found, judged) = Scene::of_kernel(1).play(vec![kernel(3, FORGED), honest_check()]).await;
    let [CheckFinding::Differs { why }] = &found[..] else { panic!("{found:?}") };
    assert!(why.contains("point 1 of its trail is 8, but 65 when"), "{why}");
    judged.assert_denied("that host0 (w0) reported is not what host1 (w1) computed again");
    // A trail without points is none.
    let bare: Answering =
        Box::new(|start, _| Some(end_of(start, dormouse_tasks::answer::reckoned(args(start), 3))));
    let (found, _) = Scene::of_kernel(1).play(vec![bare, honest_check()]).await;
    let why = "its trail has 0 points, 0 passes apart, for 3 passes".to_owned();
    assert_eq!(found, [CheckFinding::Differs { why }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_that_come_out_otherwise_on_another_host_are_said_and_silence_blames_nobody() {
    let other = |mut right: TaskResult| {
        right.figures[0].computed *= 1.0 + 1e-12;
        Some(right)
    };
    let (found, judged) = Scene::of_kernel(1).play(vec![kernel(3, HONEST), checking(other)]).await;
    assert!(matches!(&found[..], [CheckFinding::Differs { .. }]), "{found:?}");
    judged.assert_denied("when computed again");
    let silent = checking(|_| None);
    let (found, judged) = Scene::of_kernel(1).play(vec![kernel(3, HONEST), silent]).await;
    assert!(matches!(&found[..], [CheckFinding::Unanswered { .. }]), "{found:?}");
    assert!(!is_accused(&judged), "{:?}", judged.fidelity.notes);
}

/// Attack: two hosts of one owner tell the same lie. There is no other host, and the verdict says so.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_that_tell_one_lie_are_not_found_and_the_verdict_says_that_they_are_two() {
    let liars = vec![kernel(3, FORGED), kernel(3, FORGED)];
    let (found, judged) = Scene::of_kernel(1).play(liars).await;
    assert_eq!(found, [CheckFinding::Equal]);
    let said = sentences(&judged);
    let words = "host0 (w0) and host1 (w1) have only each other as witness: what both lie about is not found";
    assert!(said.contains(words) && !is_accused(&judged), "{said}");
}

/// With a third host the liars can't choose who checks them: the third host checks at least one of twelve tasks, except
/// with a probability of one in 4,096.
#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_that_tell_one_lie_are_found_by_a_third() {
    let scene = Scene { spot_checks: Ppm::new(900_000), ..Scene::of_kernel(12) };
    let (found, judged) =
        scene.play(vec![kernel(3, FORGED), kernel(3, FORGED), honest_check()]).await;
    let differ = found.iter().filter(|it| matches!(it, CheckFinding::Differs { .. })).count();
    assert!(differ > 0, "{found:?}");
    judged.assert_denied("that host0 (w0) reported is not what host2 (w2) computed again");
    let said = sentences(&judged);
    assert!(!said.contains("as witness") && said.contains("not as reported"), "{said}");
}

/// A worker that claims to be of an older version would give answers that can't be checked.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_does_not_choose_that_nobody_checks_it() {
    let dir = tempfile::tempdir().unwrap();
    let Scene { program, spot_checks, .. } = Scene::of_kernel(1);
    let run = dormouse_coordinator::LiveRunPlan {
        noop: false,
        spot_checks,
        programs: vec![program],
        ..live(1, 1, dir.path())
    };
    let coordinator = Under::start(run).await;
    let mut old = FakeWorker::new("old", &coordinator.at);
    let no = old.connect().await.unwrap_err().message().to_owned();
    assert!(no.contains("whose results no other host can check"), "{no}");
    coordinator.cancel.cancel();
    let _ = coordinator.outcome().await;
}

fn own_scene(deterministic: bool, verify: Option<Verify>) -> Scene {
    let program = OwnProgram {
        argv: vec!["solve".to_owned()],
        env: BTreeMap::new(),
        inputs: Vec::new(),
        handed: Vec::new(),
        outputs: vec!["*.csv".to_owned()],
        mounts: Vec::new(),
        quota: Bytes::new(1 << 20),
        processes: 1,
        saves: Saves::Own,
        verify,
        deterministic,
    };
    let program = TaskProgram::Own(Arc::new(program));
    Scene { tasks: 1, program, spot_checks: Ppm::ONE }
}

/// Makes a worker whose users' programs end with this output, and report that their own checks have passed.
fn own(content: &'static [u8]) -> Answering {
    Box::new(move |start, _| {
        let is_to_be_checked = start.own.as_ref().is_some_and(|own| !own.verify.is_empty());
        let output = v1::File {
            path: "outputs/a.csv".to_owned(),
            digest: blake3::hash(content).as_bytes().to_vec().into(),
            bytes: content.len() as u64,
            executable: false,
        };
        let own = v1::OwnEnd {
            end: Some(v1::own_end::End::Status(0)),
            verify_status: is_to_be_checked.then_some(0),
            files: vec![output],
            ..v1::OwnEnd::default()
        };
        let (ledger, own) = (Some(v1::Ledger::default()), Some(own));
        Some(v1::TaskFinished { ledger, own, ..end_of(start, None) })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_deterministic_is_run_again_in_full() {
    let by_command = || Some(Verify::Command(vec!["true".to_owned()]));
    let (found, judged) = own_scene(true, by_command()).play(vec![own(b"1,2"), own(b"1,2")]).await;
    assert_eq!(found, [CheckFinding::Equal]);
    let said = sentences(&judged);
    let words = "1 of 1 tasks were computed again in full on another host (100.0 % of the CPU time), all as reported";
    assert!(said.starts_with(words), "{said}");
    // One whose outputs are those of a reference run is, whatever else is said.
    let digest = blake3::hash(b"1,2").to_hex().to_string();
    let reference = Verify::Outputs(BTreeMap::from([("a.csv".to_owned(), digest)]));
    let (found, _) = own_scene(false, Some(reference)).play(vec![own(b"1,2"), own(b"1,2")]).await;
    assert_eq!(found, [CheckFinding::Equal]);
    // Of others nobody knows what they would leave.
    let (found, judged) = own_scene(false, by_command()).play(vec![own(b"1,2"), own(b"1,2")]).await;
    assert_eq!(found, []);
    let said = sentences(&judged);
    assert!(said.contains("not checked by another host: no answer could be"), "{said}");
}

/// Attack: the worker runs nothing, makes up an output, and reports that the program's own check has passed.
#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_no_program_made_is_found_by_another_host() {
    let verify = Some(Verify::Command(vec!["true".to_owned()]));
    let (found, judged) = own_scene(true, verify).play(vec![own(b"lie"), own(b"1,2")]).await;
    let [CheckFinding::Differs { why }] = &found[..] else { panic!("{found:?}") };
    assert!(
        why.starts_with("outputs/a.csv is ") && why.contains("when its program was run again"),
        "{why}"
    );
    judged.assert_denied("that host0 (w0) reported is not what host1 (w1) computed again");
}

/// Running the whole program again would take more than the part of the run's CPU time that checks may take.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_would_take_too_much_is_not_run_again() {
    let scene = Scene { spot_checks: Ppm::new(30_000), ..own_scene(true, None) };
    let (found, judged) = scene.play(vec![own(b"1,2"), own(b"1,2")]).await;
    assert_eq!(found, []);
    assert!(sentences(&judged).contains("would take more than live.spot-checks"));
}
