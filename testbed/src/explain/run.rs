//! A recorded run, asked about whatever work it has.

use dormouse_engine::{Event, Step, part_of};

use super::{Explainer, jobs};
use crate::experiment::Experiment;
use crate::output::RunLog;
use crate::replay::{ReplayError, play};

/// What there is to say of `task7`, `vm3`, a task by its name, or a parallel job by its number;
/// `None` if there is no such.
///
/// # Errors
///
/// The steps were left out of its log, and it can't be made again.
pub fn explain(log: &RunLog, what: &str) -> Result<Option<String>, ReplayError> {
    if log.header.experiment.scheduler.is_some() {
        let of_bag = match &log.steps {
            Some(steps) => Explainer::new(&log.header, steps).explain(what),
            None => Explainer::new(&log.header, &made_again(log)?).explain(what),
        };
        if of_bag.is_some() {
            return Ok(of_bag);
        }
    }
    jobs::job(log, what)
}

/// The steps of a bag in a run with so many parallel jobs that its log has none.
fn made_again(log: &RunLog) -> Result<Vec<Step>, ReplayError> {
    let (of, mut steps) = (log.header.experiment.tenants(), Vec::new());
    play(log, |step| {
        let step = part_of(step, &of, 0);
        let Step { event, notices, decisions, effects, .. } = &step;
        let is_empty = notices.is_empty() && decisions.is_empty() && effects.is_empty();
        if !is_empty || !matches!(event, Event::Tick | Event::InstantOver) {
            steps.push(step);
        }
    })?;
    Ok(steps)
}

/// What can be asked about the runs of an experiment, in words.
#[must_use]
pub fn ask_for(experiment: &Experiment) -> &'static str {
    match (&experiment.scheduler, &experiment.jobs) {
        (None, _) => "a job by its number, such as 1",
        (Some(_), None) => "a task such as task0, or a VM such as vm0",
        (Some(_), Some(_)) => {
            "a task such as task0, a VM such as vm0, or a job by its number, such as 1"
        }
    }
}
