//! The names of schedulers on the command line.

use clap::builder::PossibleValue;
use dormouse_cloud::SchedulerName as PlacedBy;
use dormouse_policies::BagSchedulerName;
use dormouse_policies::batch::Algorithm;

use super::known_name::KnownName;

/// The name of every scheduler with a line about it: schedulers of bags, of parallel jobs and of VMs on hosts, those of
/// other crates, and programs.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let bags = BagSchedulerName::ALL.into_iter().map(|one| (one.as_str(), one.about()));
    let jobs = Algorithm::ALL.into_iter().map(|one| (one.name(), one.about()));
    let hosts = PlacedBy::ALL.into_iter().map(|one| (one.name(), one.about()));
    let about = "a scheduler of another crate that is part of this program";
    let linked = dormouse_program::linked().into_iter().map(move |name| (name, about));
    let of_ones_own = ("./PROGRAM", BagSchedulerName::Program.about());
    bags.chain(jobs).chain(hosts).chain(linked).chain([of_ones_own])
}

/// Parser of the name of any scheduler; whether the scheduler fits is checked with the experiment.
pub(super) const SCHEDULER: KnownName = KnownName(known);

fn known() -> Vec<PossibleValue> {
    all().map(|(name, about)| PossibleValue::new(name).help(about)).collect()
}
