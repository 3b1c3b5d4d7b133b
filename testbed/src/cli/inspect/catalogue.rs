//! Inspects instance types, and the data of the provider's spot advisor on them.

use dormouse_cloud::{Market, read_advisor, read_types};
use dormouse_experiment::read_file;
use serde_json::json;

use super::args::InspectArgs;
use super::found::Found;
use super::head::Head;
use crate::cli::failure::Failure;

/// The region for which an advisor's file is read.
const REGION: &str = "us-east-1";

/// Most instance types that are named individually.
const SHOWN: usize = 24;

/// Reads a whole catalogue of instance types.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let chosen = args.chosen();
    let file = read_file(&args.file, |source| read_types(source, &chosen))?;
    let mut found = Found::new(args, head, ("instance types", file.form));
    found.columns = file.columns;
    found.unused = file.unused;
    found.fact("types", file.types.len());
    let vcpus = || file.types.values().map(|kind| kind.vcpus);
    if let (Some(least), Some(most)) = (vcpus().min(), vcpus().max()) {
        found.fact("vCPUs", format!("{least} to {most}"));
    }
    let memory = || file.types.values().map(|kind| kind.memory);
    if let (Some(least), Some(most)) = (memory().min(), memory().max()) {
        found.fact("memory", format!("{least} to {most}"));
    }
    let sold = |market| file.types.values().filter(|kind| kind.price(market).is_some()).count();
    found.fact("with spot price", sold(Market::Spot));
    found.fact("on demand", sold(Market::OnDemand));
    found.fact("burstable", file.types.values().filter(|kind| kind.burstable.is_some()).count());
    let names: Vec<_> = file.types.keys().take(SHOWN).map(ToString::to_string).collect();
    let more = file.types.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    found.fact("names", format!("{}{more}", names.join(", ")));
    if !file.left_out.is_empty() {
        found.oddities.push(format!("types left out: {}", file.left_out));
    }
    found.left_out = json!(file.left_out);
    found.experiment = format!("[cloud]\ncatalogue = {}\n", args.quoted());
    if sold(Market::Spot) + sold(Market::OnDemand) == 0
        && let Some(name) = file.types.keys().next()
    {
        found.oddities.push("it has no prices: give those of the types that you use".to_owned());
        found.experiment += "\n[cloud.type-prices]\n";
        found.experiment += &format!("\"{name}\" = {{ on-demand = PRICE, spot = PRICE }}\n");
    }
    Ok(found)
}

/// Reads the spot advisor's data of one region.
pub(super) fn inspect_advisor(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    if !args.column.is_empty() {
        return Err(args.refused("it has no columns", "leave --column out"));
    }
    let advice = read_file(&args.file, |source| read_advisor(source, REGION))?;
    let mut found = Found::new(args, head, ("savings on spot VMs", "JSON of EC2's spot advisor"));
    found.fact("region", format!("{REGION} (another by cloud.region)"));
    found.fact("types", advice.len());
    let savings = || advice.values().map(|advice| advice.saving_percent);
    if let (Some(least), Some(most)) = (savings().min(), savings().max()) {
        found.fact("savings", format!("{least} to {most} % of the price on demand"));
    }
    found.experiment = format!(
        "[cloud]\ncatalogue = \"ec2-2026\"\nadvisor = {}\nregion = \"{REGION}\"\n",
        args.quoted()
    );
    Ok(found)
}
