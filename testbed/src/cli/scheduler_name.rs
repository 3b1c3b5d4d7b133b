//! The names of schedulers on the command line.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command, Error};
use dormouse_cloud::SchedulerName as PlacedBy;
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;

/// Every scheduler with a line about it: those of bags, of parallel jobs, and of VMs on hosts.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let bags = BagSchedulerName::ALL.into_iter().map(|one| (one.as_str(), one.about()));
    let jobs = Algorithm::ALL.into_iter().map(|one| (one.name(), one.about()));
    bags.chain(jobs).chain(PlacedBy::ALL.into_iter().map(|one| (one.name(), one.about())))
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
