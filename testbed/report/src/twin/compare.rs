//! Compares the run in a folder with its twin.

use std::path::Path;

use dormouse_analysis::RunMode;
use dormouse_analysis::fidelity::{RunPace, TwinDistance, expected, jobs_in};
use dormouse_analysis::twin::{
    ComparedRun, LiveAndTwin, MeasuredMoves, TwinComparison, TwinInputs, TwoTier, decided_again,
    has_begun, twin_of_bag, twin_of_jobs,
};
use dormouse_engine::Run;
use dormouse_engine::drive::{MachineWorld, PlayError};
use dormouse_model::{Setup, Step, Submission};
use dormouse_workload::WorkloadError;

use super::TwinError;
use crate::jobs::JobsError;
use crate::output::{LiveHeader, LogHeader, RunLog, live_header};
use crate::virtual_run::{model, play_out};
use dormouse_experiment::Experiment;

/// Makes the twin of the run in this folder in virtual time and compares the two.
///
/// A virtual run is its own twin: everything is equal. A run that was ended before its tasks were
/// finished, by its user or a crash, has a twin that ends at the same time.
///
/// # Errors
///
/// There is no run in the folder, or none that has a twin: see [`TwinError`].
pub fn twin_of(dir: &Path) -> Result<TwinComparison, TwinError> {
    let RunLog { header, steps, .. } = RunLog::read(dir)?;
    header.check_inputs()?;
    let steps = steps.ok_or_else(|| TwinError::NoSteps(dir.to_owned()))?;
    match header.experiment.scheduler {
        Some(_) => of_bag(&header, steps, dir),
        None => {
            let pace = pace_of(&header, dir)?;
            of_jobs(&header, steps, (dir, pace))
        }
    }
}

/// Distance of a live run with these steps from its twin; `None` if it has no twin, or several
/// tenants.
pub(crate) fn distance_of(
    header: &LogHeader,
    live: &LiveHeader,
    steps: &[Step],
) -> Option<TwinDistance> {
    let (steps, dir) = (steps.to_vec(), Path::new(dormouse_log::FILE));
    let experiment = &header.experiment;
    // Neither customers nor callers of the provider's API are modelled.
    if experiment.requests.is_some() || experiment.ec2.is_some() {
        return None;
    }
    let pace = RunPace { phase: live.phase(), ..RunPace::at(experiment.live.speedup) };
    let twin = match experiment.scheduler {
        Some(_) => of_bag(header, steps, dir),
        None => of_jobs(header, steps, (dir, pace)),
    };
    // A run that never began, or whose decisions differ, has no twin: others report that.
    twin.ok().map(|twin| twin.distance())
}

fn compared_run(header: &LogHeader) -> ComparedRun {
    let experiment = &header.experiment;
    ComparedRun {
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name(),
        mode: header.mode,
        seed: experiment.setup.seed,
        speedup: header.live_speedup(),
    }
}

/// Returns a function that makes the error for a run in which the step with the given number
/// differs.
fn other_version(header: &LogHeader, dir: &Path) -> impl FnOnce(u64) -> TwinError {
    let (path, made_by) = (dir.to_owned(), header.dormouse.clone());
    move |step| TwinError::OtherVersion { path, step, made_by }
}

fn of_bag(header: &LogHeader, steps: Vec<Step>, dir: &Path) -> Result<TwinComparison, TwinError> {
    let given = TwinInputs::from_steps(&steps);
    if !given.began() {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    if experiment.jobs.is_some() {
        return Err(TwinError::Shared(dir.to_owned()));
    }
    let mut setup = Setup { interruptions: given.interruptions(), ..experiment.setup.clone() };
    // The recommendations that were made are among the inputs.
    (setup.terms.rebalance_lead, setup.terms.rebalance) = (None, None);
    let scheduler = || {
        experiment
            .scheduler()
            .map_err(|source| TwinError::Scheduler { path: dir.to_owned(), source })
    };
    let again = Run::of_tenants(setup.clone(), experiment.policies(scheduler()?));
    let twin = Run::of_tenants(setup, experiment.following(scheduler()?, &steps));
    let (of, runs) = ((compared_run(header), &experiment.setup), [again, twin]);
    twin_of_bag(of, header.record(), (given, steps), runs, experiment.time_limit())
        .map_err(other_version(header, dir))
}

/// Compares a run of parallel jobs with its twin. The twin of a live run uses the exact processors
/// by which its jobs are judged, that of a virtual run its own model.
fn of_jobs(
    header: &LogHeader,
    live: Vec<Step>,
    (dir, pace): (&Path, RunPace),
) -> Result<TwinComparison, TwinError> {
    if !has_begun(&live) {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    decided_again(experiment.run(None), &live).map_err(other_version(header, dir))?;
    let (twin, migration) = match header.mode {
        RunMode::Virtual => {
            (play_twin(experiment, &mut model(experiment), (header.mode, &live))?, None)
        }
        RunMode::Live => {
            let MeasuredMoves { pace, migration, moves } = MeasuredMoves::from_steps(&live, pace);
            let modelled = experiment.simulation().map(|jobs| jobs.migration_cost);
            let cost = migration.or(modelled).unwrap_or_default();
            (
                play_twin(experiment, &mut TwoTier::new(pace, moves, cost), (header.mode, &live))?,
                migration,
            )
        }
    };
    Ok(twin_of_jobs(compared_run(header), &LiveAndTwin { live, twin }, migration))
}

/// Speed of a live run's clock, and length of its jobs' phases.
fn pace_of(header: &LogHeader, dir: &Path) -> Result<RunPace, JobsError> {
    let phase = live_header(dir)?.phase();
    Ok(RunPace { phase, ..RunPace::at(header.experiment.live.speedup) })
}

/// The steps of this run in virtual time on these machines, with the jobs that were submitted from
/// outside.
fn play_twin(
    experiment: &Experiment,
    on: &mut impl MachineWorld,
    (mode, live): (RunMode, &[Step]),
) -> Result<Vec<Step>, JobsError> {
    let came = jobs_in(live);
    let is_open = expected(live, &[]) > 0;
    // In a live run the ends of other jobs decided when following jobs came, and which ids they
    // got: they come at the same times again.
    let is_given = is_open || mode == RunMode::Live && came.iter().any(|job| job.after.is_some());
    // The log has all jobs: an open run ends once all have come.
    let as_they_came = |job| Ok(Submission { after: None, ..job });
    let jobs: Box<dyn Iterator<Item = Result<Submission, WorkloadError>>> = match is_given {
        true => Box::new(came.into_iter().map(as_they_came)),
        false => Box::new(experiment.submissions()?.into_iter().flatten()),
    };
    let policies = experiment.following(None, live);
    let mut run = Run::of_tenants(experiment.whole_setup(), policies);
    let mut steps = Vec::new();
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
