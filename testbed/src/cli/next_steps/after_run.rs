//! The next steps after a run.

use std::path::Path;

use dormouse_analysis::RunMode;
use dormouse_experiment::Experiment;
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;
use dormouse_report::run_view::RunResults;
use dormouse_reproduce::sweep::{OwnProgram, SharedInputs};

use super::step::{NextStep, pasted};
use crate::cli::compare::comparison;

/// Number of seeds with which a comparison takes only seconds.
const FEW: &str = "10";

/// The next steps after the run whose results are in a folder.
pub(in crate::cli) fn after_run(results: &RunResults<'_>, folder: &Path) -> Vec<NextStep> {
    if results.broke().is_some() {
        return Vec::new();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let dir = folder.strip_prefix(&here).unwrap_or(folder).to_string_lossy();
    let on = |words: &[&str]| pasted(words.iter().copied());
    let watch = NextStep::new(on(&["dormouse", "watch", &dir, "--open-page"]), "the run on a page");
    let check = NextStep::new(on(&["dormouse", "check", &dir]), "whether a rule is broken in it");
    if results.header.mode == RunMode::Live {
        let twin = on(&["dormouse", "twin", &dir]);
        return vec![
            check,
            NextStep::new(twin, "where virtual time would have gone otherwise"),
            watch,
        ];
    }
    let explain = last(results)
        .map(|(what, why)| NextStep::new(on(&["dormouse", "explain", &dir, &what]), why));
    let other = other_scheduler(results, folder)
        .map_or(check, |line| NextStep::new(line, "another scheduler, seed by seed"));
    explain.into_iter().chain([watch, other]).collect()
}

/// The name of a task, request or job of the run for the `explain` command, and what that command explains about it; `None` if the
/// run has no such item.
fn last(results: &RunResults<'_>) -> Option<(String, &'static str)> {
    if let Some(record) = results.record.as_ref().filter(|record| !record.tasks.is_empty()) {
        let tasks = record.tasks.iter().enumerate();
        let (task, _) = tasks.max_by_key(|(n, task)| (task.finished, *n))?;
        return Some((format!("task{task}"), "why the task that ended last did so then"));
    }
    if results.requests.is_some() {
        return Some(("request0".to_owned(), "what became of the first request"));
    }
    let jobs = results.jobs.as_ref()?;
    let job = jobs.drawn.jobs().max_by_key(|job| job.heard)?;
    Some((job.job.number.to_string(), "what became of the last job"))
}

/// A command that compares the run's scheduler with another one, if another one can schedule its experiment.
fn other_scheduler(results: &RunResults<'_>, folder: &Path) -> Option<String> {
    let words = shlex::split(&results.header.command)?;
    if words.iter().any(|word| ["--job", "--plan"].contains(&word.as_str())) {
        return None;
    }
    let name = words.get(2).filter(|word| !word.starts_with('-'))?;
    let set: Vec<String> = after_each("--set", &words);
    let experiment = &results.header.experiment;
    let ours = after_each("--scheduler", &words).pop();
    let ours = ours.or_else(|| Some(experiment.scheduler_name().to_string()))?;
    let other = rival(experiment, &ours)?;
    let schedulers = [ours, other.to_owned()];
    // Not every scheduler takes every experiment: one that does not is not offered.
    let on = (std::slice::from_ref(name), &OwnProgram::default());
    comparison((&schedulers, &[]), on, &set, &SharedInputs::default()).ok()?;
    let list = schedulers.join(",");
    let mut line = ["dormouse", "compare", "--schedulers", &list, "--on", name, "--seeds", FEW]
        .map(str::to_owned)
        .to_vec();
    // Each run has a comparison of its own: a folder holds one.
    let run = folder.file_name()?.to_string_lossy();
    line.extend(["--out".to_owned(), format!("runs/compare-{run}")]);
    line.extend(set.into_iter().flat_map(|set| ["--set".to_owned(), set]));
    Some(pasted(line))
}

fn rival(experiment: &Experiment, ours: &str) -> Option<&'static str> {
    let rivals = match (&experiment.scheduler, &experiment.jobs) {
        (Some(_), None) => [BagSchedulerName::BurstHads.as_str(), BagSchedulerName::Hads.as_str()],
        (None, Some(_)) => [Algorithm::Easy.name(), Algorithm::Measy.name()],
        _ => return None,
    };
    rivals.into_iter().find(|rival| *rival != ours)
}

/// The values of an option in a command line, in order.
fn after_each(option: &str, words: &[String]) -> Vec<String> {
    words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].clone()).collect()
}
