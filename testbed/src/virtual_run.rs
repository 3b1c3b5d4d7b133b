//! An experiment in virtual time.

use std::convert::Infallible;

use dormouse_engine::drive::{BOUNDLESS, Modelled, PlayError, beginning, play};
use dormouse_engine::{Run, Step};
use dormouse_policies::Policy;
use dormouse_units::{Span, Time};

use crate::experiment::Experiment;

/// Runs an experiment to its end; `see` is shown every step.
///
/// # Errors
///
/// Tasks are left and nothing will ever happen again, or it goes on beyond any sense.
pub fn virtual_run(
    experiment: &Experiment,
    policy: Box<dyn Policy>,
    mut see: impl FnMut(&Step),
) -> Result<Run, PlayError<Infallible>> {
    let mut run = Run::new(experiment.setup.clone(), policy);
    let hosts = match experiment.hosts.as_slice() {
        [] => &[BOUNDLESS],
        hosts => hosts,
    };
    let outside = beginning(hosts).into_iter().map(Ok);
    let see = |step: &Step| {
        see(step);
        Ok(())
    };
    play(&mut run, &mut Modelled::default(), outside, limit(experiment), see)?;
    Ok(run)
}

/// A hundred deadlines and a day: a run that takes longer goes nowhere.
pub(crate) fn limit(experiment: &Experiment) -> Time {
    Time::ZERO + experiment.setup.bag.deadline.times(100) + Span::from_secs(86_400)
}
