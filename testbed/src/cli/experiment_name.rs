//! The names of experiments on the command line.

use clap::builder::PossibleValue;
use dormouse_experiment::BuiltinExperiment;

use super::known_name::KnownName;

/// Parser of an experiment's name; built-in experiments are offered as completions, and any other name is that of a
/// file.
pub(super) const EXPERIMENT: KnownName = KnownName(known);

fn known() -> Vec<PossibleValue> {
    BuiltinExperiment::all()
        .map(|one| PossibleValue::new(one.name()).help(one.description()))
        .collect()
}
