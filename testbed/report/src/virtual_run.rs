//! An experiment in virtual time.

use dormouse_engine::Run;
use dormouse_engine::drive::{
    BOUNDLESS, Modelled, PlayError, Requested, World, beginning, in_order, play_handing_over,
};
use dormouse_engine::jobs::Submissions;
use dormouse_model::{Request, Step, Submission};
use dormouse_policies::Policy;
use dormouse_units::{Span, Time};
use dormouse_workload::WorkloadError;

use crate::jobs::JobsError;
use dormouse_experiment::{Experiment, Start};

/// Runs an experiment to its end, its bag under this scheduler; `see` is shown every step.
///
/// # Errors
///
/// Tasks are left and nothing will ever happen again, it goes on beyond any sense, or its parallel
/// jobs can't be had.
pub fn virtual_run(
    experiment: &Experiment,
    bag: Option<Box<dyn Policy>>,
    mut see: impl FnMut(&Step),
) -> Result<Run, PlayError<JobsError>> {
    let jobs = experiment.submissions().map_err(|error| PlayError::Outside(error.into()))?;
    let started = experiment.start(bag, Start::VIRTUAL);
    let mut run = started.map_err(|error| PlayError::Outside(error.into()))?;
    let see = |step: &Step| {
        see(step);
        Ok(())
    };
    play_out(experiment, &mut run, &mut model(experiment), jobs, see)?;
    Ok(run)
}

/// The machines of an experiment as virtual time has them.
pub fn model(experiment: &Experiment) -> Modelled {
    experiment.simulation().map_or_else(Modelled::default, |jobs| Modelled::new(jobs.law()))
}

/// Plays a run of an experiment to its end on machines that are given, with these parallel jobs
/// if it has any; `see` is shown every step, and ends the run if it fails.
///
/// # Errors
///
/// As of [`virtual_run`], and those of `see`.
pub fn play_out<E: Into<JobsError>>(
    experiment: &Experiment,
    run: &mut Run,
    world: &mut impl World,
    jobs: Option<impl Iterator<Item = Result<Submission, E>>>,
    mut see: impl FnMut(&Step) -> Result<(), JobsError>,
) -> Result<(), PlayError<JobsError>> {
    let requests = experiment.requests().map_err(|error| PlayError::Outside(error.into()))?;
    play_requests(experiment, run, world, (jobs, requests), |step| see(step))
}

/// The same with the requests for VMs, too, so that the caller still has what they were read from. A step
/// may be kept by `see`, which leaves another in its place.
pub(crate) fn play_requests<E: Into<JobsError>>(
    experiment: &Experiment,
    run: &mut Run,
    world: &mut impl World,
    (jobs, requests): (
        Option<impl Iterator<Item = Result<Submission, E>>>,
        Option<impl Iterator<Item = Result<(Time, Request), WorkloadError>>>,
    ),
    see: impl FnMut(&mut Step) -> Result<(), JobsError>,
) -> Result<(), PlayError<JobsError>> {
    let hosts = match experiment.hosts.as_slice() {
        [] => &[BOUNDLESS],
        hosts => hosts,
    };
    let (machine, first) = (run.setup().space_of_jobs(), run.next_task());
    let jobs = jobs.map(|jobs| jobs.map(|job| job.map_err(Into::into)));
    let submissions = jobs.map(|jobs| Submissions::with_followers(jobs, machine, first));
    let submissions = submissions.transpose();
    let submissions = submissions.map_err(|error| PlayError::Outside(JobsError::from(error)))?;
    let (submissions, followers) = submissions.unzip();
    let submissions = submissions.into_iter().flatten().map(|event| event.map_err(JobsError::from));
    let requests = requests.map(|requests| Requested::from(requests, run.next_request()));
    let requests = requests.into_iter().flatten().map(|event| event.map_err(JobsError::from));
    let beginning = beginning(hosts).into_iter().map(Ok);
    let outside = beginning.chain(in_order(submissions, requests));
    let followers = followers.unwrap_or_default();
    play_handing_over(run, world, outside, followers, limit(experiment), see)
}

/// A hundred deadlines and a day: a run that takes longer goes nowhere. Where there are parallel
/// jobs, nobody can say so.
pub(crate) fn limit(experiment: &Experiment) -> Time {
    match experiment.jobs {
        None if experiment.scheduler.is_some() => {
            Time::ZERO + experiment.setup.bag.deadline.times(100) + Span::from_secs(86_400)
        }
        _ => Time::from_micros(u64::MAX),
    }
}
