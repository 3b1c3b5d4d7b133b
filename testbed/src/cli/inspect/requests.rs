//! Inspects requests for VMs.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use dormouse_cloud::Market;
use dormouse_units::Time;
use dormouse_workload::{RequestFile, RequestFormat, RequestRules, RequestStatistics};
use serde_json::json;

use super::args::InspectArgs;
use super::found::{Found, length};
use super::head::Head;
use crate::cli::failure::Failure;
use crate::cli::workload::bad;

/// Most instance types that are named individually.
const SHOWN: usize = 24;

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// Reads all requests of a file. In traces that have only sizes, each size counts as a type.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let chosen = args.chosen();
    let columns = chosen.iter().map(|(name, heading)| (name.to_owned(), heading.to_owned()));
    let rules = RequestRules { columns: columns.collect(), ..RequestRules::default() };
    let mut file = RequestFile::open(&args.file, &rules, None, open).map_err(bad)?;
    let (mut of, mut ends) = (RequestStatistics::new(None, None), None::<(Time, Time)>);
    for request in file.by_ref() {
        let (at, request) = request.map_err(bad)?;
        ends = Some((ends.map_or(at, |(first, _)| first), at));
        of.add(at, &request);
    }
    let mut found = Found::new(args, head, ("requests for VMs", file.format().to_string()));
    file.columns().clone_into(&mut found.columns);
    found.unused = file.unused().to_vec();
    found.fact("requests", of.requests());
    for market in [Market::OnDemand, Market::Spot] {
        found.fact(market.to_string(), of.count(market));
    }
    let read = file.read();
    if let Some((first, last)) = ends {
        found.instant("first", first, read.begins_unix_s);
        found.instant("last", last, read.begins_unix_s);
    }
    for (market, durations) in &of.durations {
        let (least, most) = durations.range();
        let of = [least, most, durations.mean()].map(length);
        let words = format!("{} to {}, {} on average", of[0], of[1], of[2]);
        found.fact(format!("{market} for"), words);
    }
    let counts = of.counts.iter().flat_map(|(market, counts)| {
        counts.iter().map(move |(kind, count)| (format!("{kind} {market}"), *count))
    });
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = counts.len().saturating_sub(SHOWN);
    let shown = counts.iter().take(SHOWN).map(|(kind, count)| format!("{count} {kind}"));
    let shown: Vec<_> = shown.chain((more > 0).then(|| format!("{more} more"))).collect();
    found.fact("types", shown.join(", "));
    let odd = read.left_out.iter().map(|(what, count)| ("left out", what, count));
    let odd = odd.chain(read.changed.iter().map(|(what, count)| ("", what, count)));
    for (how, what, count) in odd {
        let how = if how.is_empty() { String::new() } else { format!("{how}: ") };
        let (entries, line) = (count.entries, count.first_line);
        found.oddities.push(format!("{how}{entries} {what} (the first on line {line})"));
    }
    found.oddities.extend(read.notes.iter().cloned());
    found.left_out = json!({ "left_out": read.left_out, "changed": read.changed });
    found.experiment = experiment(args, file.format(), &rules);
    Ok(found)
}

/// Lines of an experiment that use the file, with the keys that its format needs.
fn experiment(args: &InspectArgs, format: RequestFormat, rules: &RequestRules) -> String {
    let mut text = format!("[workload]\nkind = \"requests\"\ncsv = {}\n", args.quoted());
    let mut add = |line: &str| {
        // Writing to a text can't fail.
        let _ = writeln!(text, "{line}");
    };
    if !rules.columns.is_empty() {
        let pairs = rules.columns.iter();
        let pairs = pairs.map(|(name, it)| format!("{name} = {}", toml::Value::from(it.as_str())));
        add(&format!("columns = {{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
    }
    match format {
        RequestFormat::Google2011 | RequestFormat::Google2019 | RequestFormat::Google2019Json => {
            add(
                "# How large the largest machine is that sizes are parts of; the traces don't say:",
            );
            add("machine-vcpus = 64\nmachine-memory = \"256 GiB\"");
        }
        RequestFormat::AzurePacking => {
            add("# The table vmType, and how large the largest machine is; or types-map:");
            add("types = \"vmType.csv\"\nmachine-vcpus = 64\nmachine-memory = \"256 GiB\"");
        }
        RequestFormat::AzureVms => {
            add("# A VM gets the smallest type that holds it, unless its size is mapped, such as:");
            add("# types-map = { \"2/8\" = \"TYPE\" }");
        }
        RequestFormat::Own | RequestFormat::Table => {}
    }
    text
}
