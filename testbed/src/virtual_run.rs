//! An experiment in virtual time.

use dormouse_engine::{Run, Step};
use dormouse_policies::Scheduler;
use dormouse_units::{Span, Time};

use crate::experiment::Experiment;
use crate::virtual_time::{BOUNDLESS, StuckError, beginning, play};

/// Runs an experiment to its end; `see` is shown every step.
///
/// # Errors
///
/// Tasks are left and nothing will ever happen again, or it goes on beyond any sense.
pub fn virtual_run(
    experiment: &Experiment,
    scheduler: Box<dyn Scheduler>,
    see: impl FnMut(&Step),
) -> Result<Run, StuckError> {
    let mut run = Run::new(experiment.setup.clone(), scheduler);
    let hosts = match experiment.hosts.as_slice() {
        [] => &[BOUNDLESS],
        hosts => hosts,
    };
    play(&mut run, beginning(hosts), limit(experiment), see)?;
    Ok(run)
}

/// A hundred deadlines and a day: a run that takes longer goes nowhere.
pub(crate) fn limit(experiment: &Experiment) -> Time {
    Time::ZERO + experiment.setup.bag.deadline.times(100) + Span::from_secs(86_400)
}
