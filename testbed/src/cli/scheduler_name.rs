//! The names of schedulers on the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use dormouse_cloud::SchedulerName as PlacedBy;
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;

/// Every scheduler with a line about it: those of bags, of parallel jobs, of VMs on hosts, of other
/// crates, and programs.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let bags = BagSchedulerName::ALL.into_iter().map(|one| (one.as_str(), one.about()));
    let jobs = Algorithm::ALL.into_iter().map(|one| (one.name(), one.about()));
    let hosts = PlacedBy::ALL.into_iter().map(|one| (one.name(), one.about()));
    let about = "a scheduler of another crate that is part of this program";
    let linked = dormouse_program::linked().into_iter().map(move |name| (name, about));
    let of_ones_own = ("./PROGRAM", BagSchedulerName::Program.about());
    bags.chain(jobs).chain(hosts).chain(linked).chain([of_ones_own])
}

/// Takes any name, and lets shells complete the known ones: what is wrong with another is said with the
/// experiment, which knows what it can be scheduled by.
#[derive(Clone, Debug)]
pub(crate) struct SchedulerName;

impl TypedValueParser for SchedulerName {
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
        Some(Box::new(all().map(|(name, about)| PossibleValue::new(name).help(about))))
    }
}
