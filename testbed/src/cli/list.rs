//! `dormouse list`, `show`, `reference` and `schema`: the available experiments and schedulers, and the format of
//! experiment files.

use serde_json::json;

use super::failure::Failure;
use super::input_args::InputArgs;
use super::known_name::all_schedulers as schedulers;
use super::print::print;
use super::terminal;
use dormouse_experiment::{BuiltinExperiment, ExperimentSource, open, reference, schema};

pub(crate) fn list(as_json: bool) -> Result<(), Failure> {
    let all: Vec<_> = BuiltinExperiment::all().map(|b| (b.name(), b.description())).collect();
    if as_json {
        let list: Vec<_> =
            all.iter().map(|(name, about)| json!({ "name": name, "description": about })).collect();
        return print(&format!("{:#}", json!(list)));
    }
    let to = terminal::stdout();
    let mut lines = Vec::new();
    for (heading, is_of_it) in GROUPS {
        let named: Vec<_> = all.iter().filter(|(name, _)| group_of(name) == *is_of_it).collect();
        lines.push(to.dim(heading));
        let is_scenario = |name: &str| {
            let family = family_of(name);
            family != name && all.iter().any(|(other, _)| *other == family)
        };
        let has_scenarios =
            |name: &str| all.iter().any(|(other, _)| *other == format!("{name}-sc1"));
        let line =
            |(name, about): &&(String, String)| to.wrapped(&format!("  {name:<26} {about}"), 29);
        let shown = named.iter().copied().filter(|(name, _)| !is_scenario(name));
        let (families, others): (Vec<_>, Vec<_>) = shown.partition(|(name, _)| has_scenarios(name));
        lines.extend(families.iter().map(line));
        if let Some((first, _)) = families.first() {
            let text = format!(
                "  each with -sc1 to -sc5     such as {first}-sc2: the same with hibernations"
            );
            lines.push(to.wrapped(&text, 29));
        }
        lines.extend(scenarios(&named).map(|line| to.wrapped(&line, 29)));
        lines.extend(others.iter().map(line));
    }
    lines.push(to.dim("schedulers"));
    lines
        .extend(schedulers().map(|(name, about)| to.wrapped(&format!("  {name:<26} {about}"), 29)));
    print(&lines.join("\n"))
}

/// Headings of the list's groups of experiments, each with the beginning of its names; the last one is for all others.
const GROUPS: &[(&str, &str)] = &[
    ("experiments: bags on spot and burstable VMs (Burst-HADS)", "j"),
    ("experiments: spot VMs under a bid (ACC)", "acc"),
    ("experiments: batch services on preemptible VMs (bathtub paper)", "bathtub"),
    ("experiments: parallel jobs on two tiers (MEASY)", "batch"),
    ("experiments: requests for VMs at a provider (OPIE)", "provider"),
    ("experiments: tenants of one provider (combined)", "shared"),
];

/// The group of an experiment's name, as in [`GROUPS`].
fn group_of(name: &str) -> &'static str {
    let is_bag =
        |name: &str| name.starts_with("ed") || name[1..].starts_with(|c: char| c.is_ascii_digit());
    match name.split('-').next().unwrap_or(name) {
        "acc" => "acc",
        "bathtub" => "bathtub",
        "provider" if name == "provider-j60" => "shared",
        "provider" => "provider",
        "batch" | "fw" | "jw" | "kth" => "batch",
        first if is_bag(first) => "j",
        _ => "shared",
    }
}

/// The name without its scenario: `j60` for `j60-sc2`.
fn family_of(name: &str) -> &str {
    match name.rsplit_once("-sc") {
        Some((family, scenario)) if scenario.bytes().all(|b| b.is_ascii_digit()) => family,
        _ => name,
    }
}

/// A line for each scenario number (`-sc1` to `-sc9`) of these experiments: the text after the first semicolon in the description
/// of the first experiment with that number.
fn scenarios<'a>(named: &'a [&'a (String, String)]) -> impl Iterator<Item = String> + 'a {
    let of = |n: u32| {
        let end = format!("-sc{n}");
        let (_, about) = named.iter().find(|(name, _)| name.ends_with(&end))?;
        let (_, about) = about.split_once("; ")?;
        Some(format!("    {end:<24} {about}"))
    };
    (1..=9).filter_map(of)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_in_a_group_and_scenarios_have_their_bags() {
        for one in BuiltinExperiment::all() {
            let group = group_of(&one.name());
            assert!(GROUPS.iter().any(|(_, of)| *of == group), "{}", one.name());
        }
        for (name, group, family) in [
            ("j60-sc2", "j", "j60"),
            ("ed200", "j", "ed200"),
            ("j60-faults", "j", "j60-faults"),
            ("jw-like", "batch", "jw-like"),
            ("provider-j60", "shared", "provider-j60"),
            ("provider-opie", "provider", "provider-opie"),
        ] {
            assert_eq!((group_of(name), family_of(name)), (group, family));
        }
    }
}
