//! From the folder of a run to its comparison with its twin.

use std::path::Path;
use std::time::Duration;

use dormouse_engine::drive::{PlayError, World};
use dormouse_engine::{Run, Setup, Step};
use dormouse_policies::batch::Submission;
use dormouse_tell::Mode;
use dormouse_tell::fidelity::{Pace, expected, jobs_in};
use dormouse_tell::twin::{
    About, Both, Given, Measured, Twin, TwoTier, decided_again, has_begun, twin_of_bag,
    twin_of_jobs,
};
use dormouse_workload::WorkloadError;
use serde::Deserialize;

use super::TwinError;
use crate::experiment::Experiment;
use crate::jobs::JobsError;
use crate::output::{Header, OutputError, RunLog, open_log};
use crate::virtual_run::{limit, model, play_out};

/// Plays the run in this folder again in virtual time and compares the two.
///
/// A run of virtual time is its own twin: everything is equal then. A run that was ended before
/// its tasks were finished, by its user or a crash, has a twin that ends at the same time.
///
/// # Errors
///
/// There is no run there, or none that can be played again: see [`TwinError`].
pub fn twin_of(dir: &Path) -> Result<Twin, TwinError> {
    let RunLog { header, steps, .. } = RunLog::read(dir)?;
    header.check_inputs()?;
    let steps = steps.ok_or_else(|| TwinError::NoSteps(dir.to_owned()))?;
    match header.experiment.scheduler {
        Some(_) => of_bag(&header, steps, dir),
        None => of_jobs(&header, steps, dir),
    }
}

fn about(header: &Header) -> About {
    let experiment = &header.experiment;
    About {
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name().to_owned(),
        mode: header.mode,
        seed: experiment.setup.seed,
        speedup: header.live_speedup(),
    }
}

/// What is wrong where this step comes out otherwise.
fn other_version(header: &Header, dir: &Path) -> impl FnOnce(u64) -> TwinError {
    let (path, made_by) = (dir.to_owned(), header.dormouse.clone());
    move |step| TwinError::OtherVersion { path, step, made_by }
}

fn of_bag(header: &Header, steps: Vec<Step>, dir: &Path) -> Result<Twin, TwinError> {
    let given = Given::of(&steps);
    if !given.began() {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    if experiment.jobs.is_some() {
        return Err(TwinError::Shared(dir.to_owned()));
    }
    let setup = Setup { interruptions: given.interruptions(), ..experiment.setup.clone() };
    let run = || {
        let scheduler = experiment
            .scheduler()
            .map_err(|source| TwinError::Scheduler { path: dir.to_owned(), source });
        Ok::<_, TwinError>(Run::of_tenants(setup.clone(), experiment.policies(scheduler?)))
    };
    let (of, runs) = ((about(header), &experiment.setup), [run()?, run()?]);
    twin_of_bag(of, header.record(), (given, steps), runs, limit(experiment))
        .map_err(other_version(header, dir))
}

/// A live run is played on the processors by which its jobs are judged, one of virtual time by its own
/// model.
fn of_jobs(header: &Header, live: Vec<Step>, dir: &Path) -> Result<Twin, TwinError> {
    if !has_begun(&live) {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    decided_again(experiment.run(None), &live).map_err(other_version(header, dir))?;
    let (twin, migration) = match header.mode {
        Mode::Virtual => (played(experiment, &mut model(experiment), &live)?, None),
        Mode::Live => {
            let Measured { pace, migration, moves } = Measured::of(&live, pace(header, dir)?);
            let modelled = experiment.simulation().map(|jobs| jobs.migration_cost);
            let cost = migration.or(modelled).unwrap_or_default();
            (played(experiment, &mut TwoTier::new(pace, moves, cost), &live)?, migration)
        }
    };
    Ok(twin_of_jobs(about(header), &Both { live, twin }, migration))
}

/// As much of the first line as only a live run's log has.
#[derive(Deserialize)]
struct First {
    live: Option<Live>,
}

#[derive(Deserialize)]
struct Live {
    phase_us: Option<u64>,
}

/// How the clock of a live run went, and how long the phases of its jobs were.
fn pace(header: &Header, dir: &Path) -> Result<Pace, JobsError> {
    let First { live } = open_log(dir)?.header_as().map_err(OutputError::from)?;
    let speedup = header.experiment.live.speedup;
    let pace = Pace::at(speedup)
        .ok_or_else(|| JobsError::Schedule(format!("{speedup} is no speed-up")))?;
    let phase = live.and_then(|live| live.phase_us).map(Duration::from_micros);
    Ok(Pace { phase: phase.unwrap_or(pace.phase), ..pace })
}

/// The steps of this run in virtual time, on these machines, with the jobs that came to it from
/// outside as it went.
fn played(
    experiment: &Experiment,
    on: &mut impl World,
    live: &[Step],
) -> Result<Vec<Step>, JobsError> {
    let came = jobs_in(live);
    let is_open = expected(live, &[]) > 0;
    // What the log has is all of it: an open run ends once all have come.
    let jobs: Box<dyn Iterator<Item = Result<Submission, WorkloadError>>> = match is_open {
        true => Box::new(came.into_iter().map(Ok)),
        false => Box::new(experiment.submissions()?.into_iter().flatten()),
    };
    let (mut run, mut steps) = (experiment.run(None), Vec::new());
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    match play_out(experiment, &mut run, on, Some(jobs), see) {
        Err(PlayError::Outside(error)) => Err(error),
        Err(stuck) => Err(JobsError::Schedule(stuck.to_string())),
        Ok(()) => Ok(steps),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use dormouse_engine::drive::credit_spec;
    use dormouse_engine::{Event, Report};
    use dormouse_policies::batch::Algorithm;
    use dormouse_policies::{Decision, Notice, Promotion};
    use dormouse_tell::JobFacts;
    use dormouse_tell::fidelity::{Submitted, promises};
    use dormouse_tell::twin::Moves;
    use dormouse_units::{Bytes, Credits, HostId, Ppm, Span, TaskId, VmId};
    use dormouse_vm::ideal;

    use super::*;
    use crate::experiment::{Override, Source, open};
    use crate::output::RunLogWriter;

    /// At speed-up 60.
    const MOVE_US: u64 = 400_000;

    fn header(scheduler: Algorithm) -> Header {
        let overrides = vec![
            Override::text("--scheduler", "scheduler.name", scheduler.name()),
            Override::set("live.speedup=60").unwrap(),
            Override::set("scheduler.migration-cost='24s'").unwrap(),
        ];
        let source = Source { experiment: Some("batch-small"), overrides, ..Source::default() };
        Header::new(Mode::Live, "a test".to_owned(), open(&source).unwrap().experiment)
    }

    fn pace() -> Pace {
        Pace::at(60.0).unwrap()
    }

    /// What a live run would have come to on processors that are exact: with a report of each move.
    fn exact(header: &Header) -> Vec<Step> {
        let simulation = header.experiment.simulation().unwrap();
        let mut on = TwoTier::new(pace(), Moves::new(), simulation.migration_cost);
        let mut run = simulation.run();
        let mut steps = Vec::new();
        for step in played(&header.experiment, &mut on, &[]).unwrap() {
            steps.push(run.handle(step.at, step.event.clone()).0);
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
                steps.push(run.handle(step.at, event).0);
            }
        }
        steps
    }

    /// The jobs that are migrated, in order, and where they are.
    fn moved(steps: &[Step]) -> Vec<(TaskId, VmId)> {
        let all = steps.iter().flat_map(|step| &step.decisions);
        all.filter_map(|decision| match decision {
            Decision::Promote { task, vm, by: Promotion::Migrate { .. }, .. } => Some((*task, *vm)),
            _ => None,
        })
        .collect()
    }

    fn compared_of(header: &Header, steps: &[Step]) -> Twin {
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

    /// The twin's decisions, judged as those of a live run: every job took what it is promised.
    #[test]
    fn every_job_of_a_twin_takes_what_its_decisions_promise_it() {
        let burstable = dormouse_cloud::Burstable {
            baseline: Ppm::new(250_000),
            earned_per_hour: Credits::whole(90),
            initial: Credits::whole(10),
            cap: Credits::whole(100),
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
            let machine = ideal::Machine::with_credits(credits, pace().emulated_us_per_second);
            let jobs = header.experiment.submissions().unwrap().unwrap();
            let jobs: Vec<_> = jobs.collect::<Result<_, _>>().unwrap();
            let promises =
                promises(&steps, Submitted::alone(&jobs), &JobFacts::default(), pace(), machine);
            assert_eq!(promises.len(), 40, "{scheduler}");
            for promise in promises {
                assert!(promise.error().abs() < 1e-4, "{scheduler}: {promise:?}");
            }
        }
    }

    /// Planted: a job that ends late. All that it holds up is late live, and the twin is not.
    #[test]
    fn what_is_late_live_differs_from_the_twin_and_no_other() {
        let header = header(Algorithm::Easy);
        let mut steps = exact(&header);
        let last = steps.iter().rfind(|step| step.event == Event::InstantOver).unwrap();
        let [Notice::TaskFinished { task: late, .. }] = last.notices[..] else {
            panic!("{last:?}")
        };
        let end = last.at;
        for step in steps.iter_mut().filter(|step| step.at == end) {
            step.at += Span::from_secs(50);
        }
        let twin = compared_of(&header, &steps);
        let Both { live: Some(live), twin: Some(exact) } = twin.makespan else { panic!() };
        assert_eq!(live.as_micros() - exact.as_micros(), 50_000_000);
        for (n, row) in twin.tasks.iter().enumerate() {
            let differs = row.difference.unwrap() > 0.01;
            assert_eq!(differs, n == late.get() as usize, "job {}: {:?}", row.number, row.sides);
        }
    }
}
