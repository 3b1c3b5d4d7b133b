//! Inspects logs of parallel jobs.

use dormouse_units::Time;
use dormouse_workload::{JobsFormat, OnMalformed, Separator, Statistics, SwfError, Trace};
use serde_json::json;

use super::args::InspectArgs;
use super::found::{Found, length};
use super::head::Head;
use crate::cli::failure::Failure;
use crate::cli::read_progress::ReadProgress;
use crate::cli::workload::bad;

/// Least first submission time, in seconds since 1970, that counts as a date: the year 1990.
const FIRST_DATE: u64 = 631_152_000;

/// Reads a whole log of jobs.
pub(super) fn inspect(args: &InspectArgs, head: &Head) -> Result<Found, Failure> {
    if !args.column.is_empty() {
        return Err(args.refused("its file format has no named columns", "leave --column out"));
    }
    let open = |machine| {
        let file = ReadProgress::open(&args.file);
        Trace::from_file(&args.file, file, machine, OnMalformed::Skip)
    };
    let (mut trace, is_said) = match open(None) {
        // Any job fits a machine whose size nobody says.
        Err(SwfError::NoMachine { .. }) => (open(Some(u32::MAX)).map_err(bad)?, false),
        trace => (trace.map_err(bad)?, true),
    };
    let (mut statistics, mut ends) = (Statistics::new(trace.machine()), None::<(Time, Time)>);
    for job in trace.by_ref() {
        let job = job.map_err(bad)?;
        statistics.add(&job);
        let (first, last) = ends.unwrap_or((job.submitted, job.submitted));
        ends = Some((first.min(job.submitted), last.max(job.submitted)));
    }
    let header = trace.reader().header();
    // Times that are dates themselves count from 1970.
    let are_dates = ends.is_some_and(|(first, _)| first >= Time::from_secs(FIRST_DATE));
    let begins = header.unix_start().filter(|begins| *begins > 0 && !are_dates);
    let begins = begins.and_then(|begins| i64::try_from(begins).ok()).or(are_dates.then_some(0));
    let format = JobsFormat::detect(head.bytes()).unwrap_or_default();
    let mut found = Found::new(args, head, ("parallel jobs", format.in_words()));
    let skipped = trace.skipped();
    if format != JobsFormat::Sacct {
        // Comments may have any: the reader told it by the first job.
        let by = skipped.taken_for.separator;
        found.separator = match by == Separator::Blanks {
            true => None,
            false => json!(by).as_str().map(str::to_owned),
        };
    }
    let columns = format.columns_read(head.bytes());
    if !columns.is_empty() {
        found.fact("columns", format!("read are {}", columns.join(", ")));
    }
    if let Some(computer) = header.get("Computer") {
        found.fact("computer", computer);
    }
    found.fact("jobs", statistics.jobs());
    let (smallest, largest) = statistics.size.range();
    match is_said {
        true => found.fact("processors", trace.machine()),
        false => found.oddities.push("the log does not say how large its machine is".to_owned()),
    }
    if let Some((first, last)) = ends {
        found.instant("first", first, begins);
        found.instant("last", last, begins);
    }
    let mean = statistics.size.mean();
    found.fact("processes", format!("{smallest} to {largest}, {mean:.1} on average"));
    let (least, most) = statistics.runtime.range();
    let mean = length(statistics.runtime.mean());
    found.fact("run times", format!("{} to {}, {mean} on average", length(least), length(most)));
    if is_said {
        found.fact("offered load", format!("{:.4}", statistics.offered_load()));
    }
    found.left_out = json!(skipped);
    if skipped.malformed() + skipped.never_ran > 0 || skipped.is_worth_telling() {
        found.oddities.push(skipped.to_string());
    }
    let skip = if skipped.malformed() > 0 { "on-malformed = \"skip\"\n" } else { "" };
    let machine = match is_said {
        true => String::new(),
        false => format!("processors = {largest} # nobody says it: the largest job has so many\n"),
    };
    let log = args.quoted();
    found.experiment = format!("[workload]\nkind = \"swf\"\nlog = {log}\n{machine}{skip}");
    Ok(found)
}
