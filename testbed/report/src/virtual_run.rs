//! Runs an experiment in virtual time.

use dormouse_engine::Run;
use dormouse_engine::drive::{
    BOUNDLESS, MachineWorld, ModelledMachines, PlayError, RequestEvents, beginning_events,
    in_order, play_handing_over,
};
use dormouse_engine::jobs::SubmissionEvents;
use dormouse_model::{Step, Submission, VmRequest};
use dormouse_policies::Policy;
use dormouse_units::Time;
use dormouse_workload::WorkloadError;

use crate::jobs::JobsError;
use dormouse_experiment::{Experiment, ProgramStart};

/// Runs an experiment to its end, its bag under the scheduler `bag`; `see` gets every step.
///
/// # Errors
///
/// Tasks are left and nothing more can happen, the run exceeds its time limit, or its parallel jobs
/// can't be read.
pub fn virtual_run(
    experiment: &Experiment,
    bag: Option<Box<dyn Policy>>,
    mut see: impl FnMut(&Step),
) -> Result<Run, PlayError<JobsError>> {
    let jobs = experiment.submissions().map_err(|error| PlayError::Outside(error.into()))?;
    let started = experiment.start(bag, ProgramStart::VIRTUAL);
    let mut run = started.map_err(|error| PlayError::Outside(error.into()))?;
    let see = |step: &Step| {
        see(step);
        Ok(())
    };
    play_out(experiment, &mut run, &mut model(experiment), jobs, see)?;
    Ok(run)
}

/// The modelled machines of an experiment.
pub fn model(experiment: &Experiment) -> ModelledMachines {
    experiment
        .simulation()
        .map_or_else(ModelledMachines::default, |jobs| ModelledMachines::new(jobs.two_tier_law()))
}

/// Runs an experiment to its end on these machines, with these parallel jobs, if any. `see` gets
/// every step; its error ends the run.
///
/// # Errors
///
/// As [`virtual_run`], and those of `see`.
pub fn play_out<E: Into<JobsError>>(
    experiment: &Experiment,
    run: &mut Run,
    world: &mut impl MachineWorld,
    jobs: Option<impl Iterator<Item = Result<Submission, E>>>,
    mut see: impl FnMut(&Step) -> Result<(), JobsError>,
) -> Result<(), PlayError<JobsError>> {
    let requests = experiment.requests().map_err(|error| PlayError::Outside(error.into()))?;
    play_requests(experiment, run, world, (jobs, requests), |step| see(step))
}

/// Like [`play_out`], with requests for VMs as well. The streams are borrowed, so that the caller
/// keeps their sources. `see` may keep a step and leave another in its place.
///
/// # Errors
///
/// As [`play_out`].
pub(crate) fn play_requests<E: Into<JobsError>>(
    experiment: &Experiment,
    run: &mut Run,
    world: &mut impl MachineWorld,
    (jobs, requests): (
        Option<impl Iterator<Item = Result<Submission, E>>>,
        Option<impl Iterator<Item = Result<(Time, VmRequest), WorkloadError>>>,
    ),
    see: impl FnMut(&mut Step) -> Result<(), JobsError>,
) -> Result<(), PlayError<JobsError>> {
    let hosts = match experiment.hosts.as_slice() {
        [] => &[BOUNDLESS],
        hosts => hosts,
    };
    let (machine, first) = (run.setup().space_of_jobs(), run.next_task());
    let jobs = jobs.map(|jobs| jobs.map(|job| job.map_err(Into::into)));
    let submissions = jobs.map(|jobs| SubmissionEvents::with_followers(jobs, machine, first));
    let submissions = submissions.transpose();
    let submissions = submissions.map_err(|error| PlayError::Outside(JobsError::from(error)))?;
    let (submissions, followers) = submissions.unzip();
    let submissions = submissions.into_iter().flatten().map(|event| event.map_err(JobsError::from));
    let requests = requests.map(|requests| RequestEvents::from(requests, run.next_request()));
    let requests = requests.into_iter().flatten().map(|event| event.map_err(JobsError::from));
    let beginning = beginning_events(hosts).into_iter().map(Ok);
    let outside = beginning.chain(in_order(submissions, requests));
    let followers = followers.unwrap_or_default();
    play_handing_over(run, world, outside, followers, experiment.time_limit(), see)
}
