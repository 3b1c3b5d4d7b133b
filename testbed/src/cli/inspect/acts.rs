//! Inspects a file of recorded interruptions.

use std::collections::BTreeMap;

use dormouse_cloud::{InterruptionAction, InterruptionTarget, read_acts};
use dormouse_experiment::read_file;
use dormouse_units::Time;

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use crate::cli::failure::Failure;

/// Reads a whole record of interruptions; its dates count from 1970.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let chosen = args.chosen();
    let acts = read_file(&args.file, |source| read_acts(source, &chosen, Some(0)))?;
    let format = if head.is_json() { "JSON of the cloud's events" } else { "table" };
    let mut found = Found::new(args, head, ("interruptions", format));
    let times = || acts.iter().map(|written| written.act.at);
    // Nobody writes down what is to be in so many years.
    let are_dates = times().min() > Some(Time::from_secs(20 * 366 * 86_400));
    let begins = are_dates.then_some(0);
    found.fact("acts", acts.len());
    for (name, at) in [("first", times().min()), ("last", times().max())] {
        found.instant(name, at.unwrap_or_default(), begins);
    }
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for written in &acts {
        let of = match &written.act.target {
            InterruptionTarget::Type(kind) => kind.to_string(),
            InterruptionTarget::Zone(zone) => format!("zone {zone}"),
            InterruptionTarget::Vm(_) => "single VMs".to_owned(),
            InterruptionTarget::All => "all VMs".to_owned(),
        };
        let action = match written.act.action {
            InterruptionAction::Hibernate => "hibernate",
            InterruptionAction::Resume => "resume",
            InterruptionAction::Preempt => "preempt",
            InterruptionAction::Rebalance => "rebalance",
        };
        *counts.entry(format!("{action} {of}")).or_default() += 1;
    }
    for (what, count) in counts {
        found.fact(what, count);
    }
    let mut text = format!("[[interruption]]\nmodel = \"schedule\"\nfile = {}\n", args.quoted());
    if are_dates && let Some(first) = times().min() {
        let second = i64::try_from(first.as_micros() / 1_000_000).unwrap_or(0);
        text.push_str(&format!(
            "begins = \"{}\" # when the run begins\n",
            dormouse_input::written(second)
        ));
    }
    if !args.column.is_empty() {
        text.push_str(&format!("columns = {}\n", args.columns()));
    }
    found.experiment = text;
    Ok(found)
}
