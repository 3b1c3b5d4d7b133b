//! Names of experiments and schedulers on the command line, which shells complete.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use dormouse_cloud::SchedulerName as PlacedBy;
use dormouse_experiment::BuiltinExperiment;
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;

/// Parser that accepts any name and offers the known ones to shells. A wrong name is reported later, when the name is
/// looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownName(pub(super) fn() -> Vec<PossibleValue>);

impl TypedValueParser for KnownName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue>>> {
        Some(Box::new((self.0)().into_iter()))
    }
}

/// Parser of an experiment's name; built-in experiments are offered as completions, and any other name is that of a
/// file.
pub(super) const EXPERIMENT: KnownName = KnownName(known_experiments);

fn known_experiments() -> Vec<PossibleValue> {
    BuiltinExperiment::all()
        .map(|one| PossibleValue::new(one.name()).help(one.description()))
        .collect()
}

/// The name of every scheduler with a line about it: schedulers of bags, of parallel jobs and of VMs on hosts, those of
/// other crates, and programs.
pub(crate) fn all_schedulers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let bags = BagSchedulerName::ALL.into_iter().map(|one| (one.as_str(), one.about()));
    let jobs = Algorithm::ALL.into_iter().map(|one| (one.name(), one.about()));
    let hosts = PlacedBy::ALL.into_iter().map(|one| (one.name(), one.about()));
    let about = "a scheduler of another crate that is part of this program";
    let linked = dormouse_program::linked().into_iter().map(move |name| (name, about));
    let of_ones_own = ("./PROGRAM", BagSchedulerName::Program.about());
    bags.chain(jobs).chain(hosts).chain(linked).chain([of_ones_own])
}

/// Parser of the name of any scheduler; whether the scheduler fits is checked with the experiment.
pub(super) const SCHEDULER: KnownName = KnownName(known_schedulers);

fn known_schedulers() -> Vec<PossibleValue> {
    all_schedulers().map(|(name, about)| PossibleValue::new(name).help(about)).collect()
}
