//! Inspects records of the number of available spot VMs.

use dormouse_cloud::{SpotAvailability, count_trace_prices};
use dormouse_experiment::read_file;
use dormouse_units::{Span, Time};

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use crate::cli::failure::Failure;

/// Reads a whole record of availability.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let chosen = args.chosen();
    let (of, begins) = read_file(&args.file, |source| SpotAvailability::read(source, &chosen))?;
    let format = if head.is_json() { "JSON of spot-traces" } else { "table" };
    let mut found = Found::new(args, head, ("availability of spot VMs", format));
    let steps = of.steps();
    let last = steps.last().map_or(Time::ZERO, |(at, _)| *at);
    found.fact("changes", steps.len().saturating_sub(1));
    found.instant("first", steps.first().map_or(Time::ZERO, |(at, _)| *at), begins);
    found.instant("last change", last, begins);
    let numbers = || steps.iter().map(|(_, vms)| *vms);
    if let (Some(least), Some(most)) = (numbers().min(), numbers().max()) {
        found.fact("VMs at a time", format!("{least} to {most}"));
    }
    let none = steps.windows(2).filter(|pair| pair[0].1 == 0);
    let none: Span = none.map(|pair| pair[1].0.since(pair[0].0)).sum();
    if last > Time::ZERO {
        let part = 100.0 * none.as_secs_f64() / last.since(Time::ZERO).as_secs_f64();
        found.fact("none", format!("{part:.1} % of the time until the last change"));
    }
    if steps.last().is_some_and(|(_, vms)| *vms == 0) {
        found.oddities.push("it ends with none, which holds for ever".to_owned());
    }
    let prices = if head.is_json() { read_file(&args.file, count_trace_prices)? } else { 0 };
    if prices > 0 {
        found.fact("prices", format!("{prices}, which [cloud.prices] reads of this file"));
    }
    let columns = args.columns();
    let value = match columns.as_str() {
        "" => args.quoted(),
        columns => format!("{{ file = {}, columns = {columns} }}", args.quoted()),
    };
    found.experiment =
        format!("[cloud.availability]\n\"TYPE\" = {value} # the instance type that is as scarce\n");
    Ok(found)
}
