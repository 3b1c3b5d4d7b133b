//! Built-in experiments with other settings, and their runs in virtual time.

use dormouse_analysis::{RunRecord, check_bag};
use dormouse_engine::Run;
use dormouse_experiment::{
    Experiment, ExperimentSource, InputError, LoadedExperiment, Override, open,
};
use dormouse_model::Step;
use dormouse_report::virtual_run::virtual_run;
use dormouse_units::Span;

fn opened(name: &str, overrides: Vec<Override>) -> Result<Experiment, InputError> {
    let opened = open(&ExperimentSource {
        experiment: Some(name),
        overrides,
        ..ExperimentSource::default()
    });
    opened.map(|LoadedExperiment { experiment, .. }| experiment)
}

/// A built-in experiment with these settings, each as after `--set`; an error says why there is none.
pub(crate) fn with(name: &str, set: &[&str]) -> Result<Experiment, InputError> {
    opened(name, set.iter().map(|text| Override::set(text).unwrap()).collect())
}

/// A built-in experiment under a scheduler and a seed, with these settings.
pub(crate) fn under(name: &str, scheduler: &str, seed: u64, set: &[&str]) -> Experiment {
    let seed = format!("seed={seed}");
    let set = [&*seed].into_iter().chain(set.iter().copied());
    let mut overrides = vec![Override::text("--scheduler", "scheduler.name", scheduler)];
    overrides.extend(set.map(|text| Override::set(text).unwrap()));
    opened(name, overrides).unwrap()
}

/// The steps of the experiment's run, and the run in its final state.
pub(crate) fn played(experiment: &Experiment) -> (Vec<Step>, Run) {
    let mut steps = Vec::new();
    let scheduler = experiment.scheduler().unwrap();
    let run = virtual_run(experiment, scheduler, |step| steps.push(step.clone()));
    (steps, run.unwrap())
}

/// The record that these steps give.
pub(crate) fn record_of(experiment: &Experiment, steps: &[Step]) -> RunRecord {
    let mut record = RunRecord::new(&experiment.setup);
    steps.iter().for_each(|step| record.see(step));
    record
}

/// The steps of the experiment's run and the record of its log; checks that the record agrees with the engine and that
/// the log keeps the rules.
pub(crate) fn sound(experiment: &Experiment) -> (Vec<Step>, RunRecord) {
    let (steps, run) = played(experiment);
    let what =
        format!("{} {} {}", experiment.name, experiment.scheduler_name(), experiment.setup.seed);
    let violations = check_bag(&experiment.setup, &steps, Span::ZERO, true);
    assert!(violations.is_empty(), "{what}: {}", violations[0]);
    let record = record_of(experiment, &steps);
    assert_eq!(record.counts, *run.counts(), "{what}");
    assert_eq!(record.makespan(), run.makespan(), "{what}");
    assert_eq!(record.cost(), run.owed_now(record.end()), "{what}");
    assert_eq!(record.digest(), run.digest(), "{what}");
    for (id, vm) in &record.vms {
        assert_eq!(vm.charges(), run.provider().find_vm(*id).unwrap().charges(), "{what}: {id}");
    }
    (steps, record)
}
