//! `dormouse list`, `show`, `reference` and `schema`: the available experiments and schedulers, and the format of
//! experiment files.

use serde_json::json;

use super::failure::Failure;
use super::input_args::InputArgs;
use super::print::print;
use super::scheduler_name::all as schedulers;
use dormouse_experiment::{BuiltinExperiment, ExperimentSource, open, reference, schema};

pub(crate) fn list(as_json: bool) -> Result<(), Failure> {
    let all: Vec<_> = BuiltinExperiment::all().map(|b| (b.name(), b.description())).collect();
    if as_json {
        let list: Vec<_> =
            all.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
        return print(&format!("{:#}", json!(list)));
    }
    let mut lines = vec!["experiments".to_owned()];
    lines.extend(all.iter().map(|(name, about)| format!("  {name:<20} {about}")));
    lines.push("schedulers".to_owned());
    lines.extend(schedulers().map(|(name, about)| format!("  {name:<20} {about}")));
    print(&lines.join("\n"))
}

/// Prints the keys of experiment files.
pub(crate) fn print_reference() -> Result<(), Failure> {
    print(reference().trim_end())
}

/// Prints the JSON schema of experiment files, or of the lines that a scheduler program reads and writes.
pub(crate) fn print_schema(of_scheduler: bool) -> Result<(), Failure> {
    let of_lines = of_scheduler.then(dormouse_program::schema);
    print(&format!("{:#}", of_lines.as_ref().unwrap_or_else(|| schema())))
}

pub(crate) fn show(name: &str, as_json: bool, inputs: &InputArgs) -> Result<(), Failure> {
    inputs.apply()?;
    let read = || open(&ExperimentSource { experiment: Some(name), ..ExperimentSource::default() });
    match BuiltinExperiment::named(name) {
        _ if as_json => print(&format!("{:#}", read()?.experiment.shown())),
        Some(builtin) => print(builtin.text().trim_end()),
        None => {
            read()?;
            let what = "it is a file of yours, and there to be read; show --json prints what is read of it";
            Err(Failure::BadInput(format!("{name}: {what}")))
        }
    }
}
