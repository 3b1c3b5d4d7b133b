//! A run of parallel jobs on exact simulated processors, and its twin.

use std::convert::Infallible;

use dormouse_analysis::fidelity::{RunPace, SubmittedJobs, promises};
use dormouse_analysis::twin::{LiveAndTwin, Moves, TwinComparison, TwoTier};
use dormouse_analysis::{JobFacts, RunMode};
use dormouse_engine::drive::{BOUNDLESS, beginning_events, credit_spec, play_run};
use dormouse_engine::jobs::SubmissionEvents;
use dormouse_experiment::Experiment;
use dormouse_model::{Decision, Event, Notice, PromotionMethod, Report, Step, Submission};
use dormouse_policies::batch::Algorithm;
use dormouse_report::output::{LogHeader, RunLogWriter};
use dormouse_report::twin::twin_of;
use dormouse_units::{Bytes, Credits, HostId, Ppm, Span, Speedup, TaskId, Time, VmId};
use dormouse_vm::ideal;

use super::runs::under;

/// Time of a move in emulated microseconds, at speed-up 60.
const MOVE_US: u64 = 400_000;

fn header(scheduler: Algorithm) -> LogHeader {
    let set = ["live.speedup=60", "scheduler.migration-cost='24s'"];
    let experiment = under("batch-small", scheduler.name(), 1, &set);
    LogHeader::new(RunMode::Live, "a test".to_owned(), experiment)
}

fn jobs(experiment: &Experiment) -> Vec<Submission> {
    let jobs = experiment.submissions().unwrap().unwrap();
    jobs.collect::<Result<_, _>>().unwrap()
}

/// The steps of a run on these processors.
fn played(experiment: &Experiment, on: &mut TwoTier) -> Vec<Step> {
    let (mut run, mut steps) = (experiment.run(None), Vec::new());
    let jobs = jobs(experiment).into_iter().map(Ok::<_, Infallible>);
    let jobs = SubmissionEvents::new(jobs, run.setup().space_of_jobs(), run.next_task());
    let outside = beginning_events(&[BOUNDLESS]).into_iter().map(Ok).chain(jobs);
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    play_run(&mut run, on, outside, Time::from_micros(u64::MAX), see).unwrap();
    steps
}

fn pace() -> RunPace {
    RunPace::at(Speedup::times_real(60))
}

/// The steps that a live run would have on exact processors, with a report of each move.
fn exact(header: &LogHeader) -> Vec<Step> {
    let simulation = header.experiment.simulation().unwrap();
    let mut on = TwoTier::new(pace(), Moves::new(), simulation.migration_cost);
    let mut run = simulation.run();
    let mut steps = Vec::new();
    for step in played(&header.experiment, &mut on) {
        steps.push(run.handle_event(step.at, step.event.clone()).0);
        for (task, vm) in moved(std::slice::from_ref(&step)) {
            let report = Report::TaskMoved {
                vm,
                task,
                attempt: run.tasks().get(task).unwrap().attempt,
                done: Ppm::ONE,
                lost: String::new(),
                real_took_us: MOVE_US,
                real_dump_us: 0,
                real_restore_us: 0,
                bytes: Bytes::new(1),
            };
            let event = Event::Machine { host: HostId::new(0), number: 0, report };
            steps.push(run.handle_event(step.at, event).0);
        }
    }
    steps
}

/// The jobs that are moved, in order, and the VM of each.
fn moved(steps: &[Step]) -> Vec<(TaskId, VmId)> {
    let all = steps.iter().flat_map(|step| &step.decisions);
    all.filter_map(|decision| match decision {
        Decision::Promote { task, vm, by: PromotionMethod::Migrate { .. }, .. } => {
            Some((*task, *vm))
        }
        _ => None,
    })
    .collect()
}

fn compared_of(header: &LogHeader, steps: &[Step]) -> TwinComparison {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RunLogWriter::begin(folder.path(), header).unwrap();
    for step in steps {
        log.step(step).unwrap();
    }
    log.finish().unwrap();
    twin_of(folder.path()).unwrap()
}

#[test]
fn a_live_run_on_exact_processors_is_its_own_twin() {
    for scheduler in Algorithm::ALL {
        let header = header(scheduler);
        let steps = exact(&header);
        let twin = compared_of(&header, &steps);
        assert_eq!(twin.divergence, None, "{scheduler}");
        for row in &twin.tasks {
            assert_eq!(row.sides.live, row.sides.twin, "{scheduler}: job {}", row.number);
            assert_eq!(row.difference, Some(0.0), "{scheduler}: job {}", row.number);
        }
        let of_moves = moved(&steps).first().map(|_| Span::from_secs(24));
        assert_eq!((twin.migration, twin.tasks.len()), (of_moves, 40), "{scheduler}");
        assert_eq!(of_moves.is_some(), scheduler == Algorithm::Measy, "{scheduler}");
    }
}

/// Every job of a twin takes the time that its decisions promise, by the check for live runs.
#[test]
fn every_job_of_a_twin_takes_what_its_decisions_promise_it() {
    let burstable = dormouse_cloud::BurstableTerms {
        baseline: Ppm::new(250_000),
        earned_per_hour: Credits::whole_credits(90),
        initial: Credits::whole_credits(10),
        cap: Credits::whole_credits(100),
        surplus: None,
    };
    let machines = [None, Some(burstable)];
    for (scheduler, burstable) in
        Algorithm::ALL.into_iter().flat_map(|it| machines.map(|b| (it, b)))
    {
        let mut header = header(scheduler);
        if let Some(batch) = &mut header.experiment.jobs {
            batch.workload.burstable = burstable;
        }
        let steps = exact(&header);
        let credits = burstable.map(credit_spec);
        let machine = ideal::IdealMachine::with_credits(credits, pace().speedup);
        let jobs = jobs(&header.experiment);
        let promises =
            promises(&steps, SubmittedJobs::alone(&jobs), &JobFacts::default(), pace(), machine);
        assert_eq!(promises.len(), 40, "{scheduler}");
        for promise in promises {
            assert!(promise.error().abs() < 1e-4, "{scheduler}: {promise:?}");
        }
    }
}

/// A job is planted that ends late: it and the jobs that it delays are late in the live run and not in the twin.
#[test]
fn what_is_late_live_differs_from_the_twin_and_no_other() {
    let header = header(Algorithm::Easy);
    let mut steps = exact(&header);
    let last = steps.iter().rfind(|step| step.event == Event::InstantOver).unwrap();
    let [Notice::TaskFinished { task: late, .. }] = last.notices[..] else { panic!("{last:?}") };
    let end = last.at;
    for step in steps.iter_mut().filter(|step| step.at == end) {
        step.at += Span::from_secs(50);
    }
    let twin = compared_of(&header, &steps);
    let LiveAndTwin { live: Some(live), twin: Some(exact) } = twin.makespan else { panic!() };
    assert_eq!(live.as_micros() - exact.as_micros(), 50_000_000);
    for (n, row) in twin.tasks.iter().enumerate() {
        let differs = row.difference.unwrap() > 0.01;
        assert_eq!(differs, n == late.get() as usize, "job {}: {:?}", row.number, row.sides);
    }
}
