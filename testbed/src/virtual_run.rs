//! An experiment in virtual time.

use dormouse_engine::drive::{BOUNDLESS, Modelled, PlayError, beginning, play};
use dormouse_engine::jobs::Submissions;
use dormouse_engine::{Run, Step};
use dormouse_policies::Policy;
use dormouse_units::{Span, Time};

use crate::batch::{BatchError, Jobs};
use crate::experiment::Experiment;

/// Runs an experiment to its end; `see` is shown every step.
///
/// # Errors
///
/// Tasks are left and nothing will ever happen again, it goes on beyond any sense, or its parallel
/// jobs can't be had.
pub fn virtual_run(
    experiment: &Experiment,
    policy: Box<dyn Policy>,
    mut see: impl FnMut(&Step),
) -> Result<Run, PlayError<BatchError>> {
    let mut run = experiment.run(policy);
    let hosts = match experiment.hosts.as_slice() {
        [] => &[BOUNDLESS],
        hosts => hosts,
    };
    let jobs = experiment.jobs.as_deref();
    let submissions = jobs.map(|jobs| {
        let stream = Jobs::open(jobs).map_err(PlayError::Outside)?;
        Ok(Submissions::new(stream, jobs.processors(), run.next_task()))
    });
    let submissions = submissions.transpose()?.into_iter().flatten();
    let submissions = submissions.map(|event| event.map_err(BatchError::from));
    let outside = beginning(hosts).into_iter().map(Ok).chain(submissions);
    let see = |step: &Step| {
        see(step);
        Ok(())
    };
    let mut world = match jobs {
        None => Modelled::default(),
        Some(jobs) => Modelled::new(jobs.simulation(jobs.processors()).law()),
    };
    play(&mut run, &mut world, outside, limit(experiment), see)?;
    Ok(run)
}

/// A hundred deadlines and a day: a run that takes longer goes nowhere. Where there are parallel
/// jobs, nobody can say so.
pub(crate) fn limit(experiment: &Experiment) -> Time {
    match experiment.jobs {
        None => Time::ZERO + experiment.setup.bag.deadline.times(100) + Span::from_secs(86_400),
        Some(_) => Time::from_micros(u64::MAX),
    }
}
