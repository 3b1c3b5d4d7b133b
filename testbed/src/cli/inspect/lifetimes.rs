//! Inspects recorded lifetimes of VMs.

use std::collections::BTreeSet;

use dormouse_experiment::read_file;
use dormouse_fit::{LifeQuery, read_lifetimes};
use serde_json::json;

use super::args::InspectArgs;
use super::found::{Found, length};
use super::head::Head;
use crate::cli::failure::Failure;

/// Reads a whole record of lifetimes, without rows that can't be used.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    let query = LifeQuery { columns: args.chosen(), skips_malformed: true, ..LifeQuery::default() };
    let mut record = read_file(&args.file, |source| read_lifetimes(source, &query))?;
    let format = if head.is_json() { "JSON of Google's preemptible VMs" } else { "table" };
    if record.lives.is_empty() {
        let first = record.unusable.first().map(|row| format!(", the first in {row}"));
        let what = format!("no VM of it has a lifetime{}", first.unwrap_or_default());
        return Err(
            args.refused(what, "write rows like: 3600,preempted under lifetime_s,end_event")
        );
    }
    let mut found = Found::new(args, head, ("lifetimes of VMs", format));
    // How the columns were understood is said apart from what is odd.
    let is_of_columns = |remark: &String| remark.starts_with("lifetimes are ");
    if let Some(n) = record.remarks.iter().position(is_of_columns) {
        found.columns = record.remarks.remove(n);
    } else if head.begins_with(|first| first.len() > 1).unwrap_or(false) {
        "lifetimes are 'lifetime_s' in seconds, ends are 'end_event'"
            .clone_into(&mut found.columns);
    }
    let taken = record.lives.iter().filter(|life| life.was_taken).count();
    found.fact("VMs", record.lives.len());
    found.fact("preempted", taken);
    found.fact("stopped", record.lives.len() - taken);
    let spans = record.lives.iter().map(|life| life.span);
    if let (Some(least), Some(most)) = (spans.clone().min(), spans.clone().max()) {
        let mut sorted: Vec<_> = spans.collect();
        sorted.sort_unstable();
        let middle = sorted[sorted.len() / 2];
        let of = [least, most, middle].map(|span| length(span.as_secs_f64()));
        found.fact("lifetimes", format!("{} to {}, {} in the middle", of[0], of[1], of[2]));
    }
    let types = record.lives.iter().map(|life| life.kind.as_str());
    let types: BTreeSet<&str> = types.filter(|kind| !kind.is_empty()).collect();
    if !types.is_empty() {
        found.fact("types", types.iter().copied().collect::<Vec<_>>().join(", "));
    }
    found.left_out = json!({ "repeated": record.repeated, "malformed": record.unusable.len() });
    if record.repeated + record.unusable.len() > 0
        || !record.left_out.is_empty()
        || !record.remarks.is_empty()
    {
        found.oddities.push(record.to_string());
    }
    let file = args.quoted();
    found.experiment = match record.unusable.is_empty() {
        true => format!("[[interruption]]\nmodel = \"replay\"\nfile = {file}\n"),
        false => format!(
            "# An experiment reads no file with malformed rows. A law fitted to the others:\n# dormouse \
             fit {} --skip-malformed --write EXPERIMENT.toml\n",
            args.file.display()
        ),
    };
    Ok(found)
}
