//! Explains a task, VM, host, request or job of a recorded run.

use dormouse_analysis::explain::{BagExplainer, Explanation, HostStory, JobStory, RequestStory};
use dormouse_analysis::jobs::SeenByJobs;
use dormouse_engine::tenants_part;
use dormouse_model::{Event, Step};

use crate::output::RunLog;
use crate::replay::{ReplayError, play};
use dormouse_experiment::Experiment;

/// Explains `task7`, `vm3`, `host0`, a task by its name, a request such as `request7`, or a
/// parallel job by its number, such as `17` or `job17`; `None` if the run has no such thing.
///
/// # Errors
///
/// The log has no steps, and the run can't be repeated.
pub fn explain(log: &RunLog, what: &str) -> Result<Option<Explanation>, ReplayError> {
    let told = explain_from_log(log, what)?;
    Ok(told.map(|told| told.on(log.header.calendar)))
}

fn explain_from_log(log: &RunLog, what: &str) -> Result<Option<Explanation>, ReplayError> {
    let (header, experiment) = (&log.header, &log.header.experiment);
    let setup = experiment.whole_setup();
    if let Some(mut story) = RequestStory::find(&setup, experiment.tenants(), what) {
        play(log, |step| story.see(step))?;
        return Ok(story.told());
    }
    // A task may be called like a host: its name comes second.
    if let Some(mut story) = HostStory::find(what) {
        play(log, |step| story.see(step))?;
        if let Some(told) = story.told() {
            return Ok(Some(told));
        }
    }
    if let Some(scheduler) = &experiment.scheduler {
        let has_plan = scheduler.plan.is_some() || scheduler.name.makes_plan();
        let of = (&experiment.setup, has_plan, experiment.jobs.is_none());
        let of_bag = match &log.steps {
            Some(steps) => BagExplainer::new(of, header.record(), steps).explain(what),
            None => BagExplainer::new(of, header.record(), &made_again(log)?).explain(what),
        };
        if of_bag.is_some() {
            return Ok(of_bag);
        }
    }
    let number = what.strip_prefix("job").unwrap_or(what).trim_start().parse();
    let (Some(simulation), Ok(number)) = (experiment.simulation(), number) else { return Ok(None) };
    let by_jobs = SeenByJobs::new(experiment.tenants());
    let mut story = JobStory::new(&simulation, by_jobs, number);
    play(log, |step| story.see(step))?;
    Ok(story.told())
}

/// Repeats the steps of a bag: its log has none, because the run has too many parallel jobs.
fn made_again(log: &RunLog) -> Result<Vec<Step>, ReplayError> {
    let (tenants, mut steps) = (log.header.experiment.tenants(), Vec::new());
    let bag = tenants.with_bag().unwrap_or_default();
    play(log, |step| {
        let step = tenants_part(step, &tenants, bag);
        let Step { event, notices, decisions, effects, .. } = &step;
        let is_empty = notices.is_empty() && decisions.is_empty() && effects.is_empty();
        if !is_empty || !matches!(event, Event::Tick | Event::InstantOver) {
            steps.push(step);
        }
    })?;
    Ok(steps)
}

/// Words for the things that can be explained in runs of this experiment.
#[must_use]
pub fn ask_for(experiment: &Experiment) -> String {
    let tasks = match experiment.setup.bag.tasks.len() {
        0 | 1 => "task0".to_owned(),
        count => format!("a task, task0 to task{}", count - 1),
    };
    match (&experiment.scheduler, &experiment.jobs) {
        (None, None) => "a request such as request0, or its VM, vm0".to_owned(),
        (None, _) => "a job by its number, such as 1".to_owned(),
        (Some(_), None) => format!("{tasks}, a VM such as vm0, or a host such as host0"),
        (Some(_), Some(_)) => {
            format!(
                "{tasks}, a VM such as vm0, a host such as host0, or a job by its number, such as 1"
            )
        }
    }
}
