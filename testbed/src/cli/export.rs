//! `dormouse export`: converts a recorded run for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use dormouse_model::Calendar;
use dormouse_units::Time;
use dormouse_view::plot::{GanttChart, PlayedWork};
use dormouse_view::{ParquetError, TableColumn, TypedTable};

use super::failure::Failure;
use super::print::print;
use super::recorded::{not_again, read_log};
use super::when::When;
use dormouse_report::output::{OutputError, RunLog, write_in};
use dormouse_report::results::stored_results;
use dormouse_report::run_view::RunResults;

/// Options of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of the run
    dir: PathBuf,
    /// Format in which the run is exported
    #[arg(long = "as", value_name = "FORMAT")]
    format: Format,
    /// Start of the window: a time of the run, such as 2h, or a date, such as 2024-09-22T10:00:00, where the run
    /// has dates (charts and traces)
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// End of the window: a time of the run, or a date (charts and traces)
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// The folder to write into [default: the folder of the run]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// trace.json, which ui.perfetto.dev and chrome://tracing open
    Perfetto,
    /// Each table as Apache Parquet: tasks, vms, jobs, allocations, requests; needs a build with Parquet, as in
    /// packages and the image
    Parquet,
    /// gantt.svg; for a window of time in the run's folder a file of its own, such as gantt-2h-3h.svg
    Svg,
    /// gantt-plays.svg, in which the run goes by in 16 seconds, three times; browsers play it as an image too
    Animation,
}

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    refuse(args.format, TypedTable::WRITES_PARQUET)?;
    let log = read_log(&args.dir)?;
    let out = args.out.as_deref().unwrap_or(&args.dir);
    let files = match args.format {
        Format::Perfetto => {
            vec![("trace.json".to_owned(), gantt(args, &log)?.to_trace().to_string().into_bytes())]
        }
        Format::Svg => vec![(chart(args, &log)?, gantt(args, &log)?.to_svg().into_bytes())],
        Format::Animation => vec![("gantt-plays.svg".to_owned(), animation(args, &log)?)],
        Format::Parquet => tables(args, &log)?,
    };
    // What is there and the same is as good as written.
    let is_anothers = |path: &PathBuf, content: &[u8]| {
        path.exists() && fs::read(path).ok().is_none_or(|there| there != content)
    };
    let mut all = files.iter().map(|(name, content)| (out.join(name), content));
    let there = all.find(|(path, content)| is_anothers(path, content));
    if let Some((path, _)) = there.filter(|_| !args.force) {
        let path = path.display();
        return Err(Failure::BadInput(format!(
            "{path}: it exists already; give another folder with --out, or --force to replace it"
        )));
    }
    for (name, content) in files {
        write_in(out, &name, content)?;
        print(&out.join(name).display().to_string())?;
    }
    Ok(())
}

/// Refuses a format that this program was built without.
fn refuse(format: Format, writes_parquet: bool) -> Result<(), Failure> {
    match format {
        Format::Parquet if !writes_parquet => {
            Err(Failure::BadInput(format!("--as parquet: {}", ParquetError::NotBuiltIn)))
        }
        _ => Ok(()),
    }
}

/// File name of a chart: the chart of a window of time has a different name from the chart of the whole run.
fn chart(args: &ExportArgs, log: &RunLog) -> Result<String, Failure> {
    let (from, until) = window(args, log.header.calendar)?;
    let is_beside = args.out.is_none();
    Ok(match (is_beside && args.from.is_some(), is_beside && args.until.is_some()) {
        (false, false) => "gantt.svg".to_owned(),
        (true, false) => format!("gantt-from-{from}.svg"),
        (false, true) => format!("gantt-until-{until}.svg"),
        (true, true) => format!("gantt-{from}-{until}.svg"),
    })
}

/// The window of time that the options name.
fn window(args: &ExportArgs, calendar: Calendar) -> Result<(Time, Time), Failure> {
    let at = |option: &str, when: Option<When>, or: Time| {
        let Some(when) = when else { return Ok(or) };
        when.on(calendar).ok_or_else(|| {
            let dir = args.dir.display();
            Failure::BadInput(format!(
                "{option}: the run in {dir} has no dates; give the time since its start, such as 2h"
            ))
        })
    };
    let from = at("--from", args.from, Time::ZERO)?;
    let until = at("--until", args.until, Time::from_micros(u64::MAX))?;
    if from < until {
        return Ok((from, until));
    }
    let [from_date, until_date] = [from, until].map(|at| calendar.in_brackets(at));
    Err(Failure::BadInput(format!(
        "--until: {until}{until_date} is not after --from, {from}{from_date}; give a later time"
    )))
}

fn gantt(args: &ExportArgs, log: &RunLog) -> Result<GanttChart, Failure> {
    let window = window(args, log.header.calendar)?;
    let results = stored_results(log, window).map_err(not_again(&args.dir))?;
    cut(args, log, window, &results)
}

/// The chart of a run that goes by, with the tasks that are done by then.
fn animation(args: &ExportArgs, log: &RunLog) -> Result<Vec<u8>, Failure> {
    let window = window(args, log.header.calendar)?;
    let results = stored_results(log, window).map_err(not_again(&args.dir))?;
    let gantt = cut(args, log, window, &results)?;
    if gantt.lanes.is_empty() {
        let dir = args.dir.display();
        return Err(Failure::BadInput(format!(
            "{dir}: its chart has no VMs that could go by; give a run of a bag or of parallel jobs"
        )));
    }
    let tasks = results.record.iter().flat_map(|record| record.tasks.iter());
    let all = tasks.clone().count();
    let mut done: Vec<Time> = tasks.filter_map(|task| task.finished).collect();
    done.sort_unstable();
    Ok(gantt.to_animation(PlayedWork { done: &done, all, noun: "tasks" }).into_bytes())
}

/// The chart of a run in a window of time.
fn cut(
    args: &ExportArgs,
    log: &RunLog,
    (from, until): (Time, Time),
    results: &RunResults<'_>,
) -> Result<GanttChart, Failure> {
    let calendar = log.header.calendar;
    let mut gantt = results.view().gantt;
    let shown = gantt.window;
    gantt.window = (shown.0.max(from), shown.1.min(until));
    let end = end_of_jobs(results).unwrap_or(shown.1);
    if gantt.window.0 >= gantt.window.1.min(end) {
        let (dir, date) = (args.dir.display(), calendar.in_brackets(end));
        return Err(Failure::BadInput(format!(
            "{dir}: nothing ran in that window: the run ends at {end}{date}; give an earlier --from"
        )));
    }
    Ok(gantt)
}

/// Time at which the last job ended, in a run that has only parallel jobs and no failed one; `None` for any other run. The chart of
/// such a run ends at that time.
fn end_of_jobs(results: &RunResults<'_>) -> Option<Time> {
    let jobs = results.jobs.as_ref().filter(|jobs| results.record.is_none() && jobs.failed == 0)?;
    Some(jobs.figures.end())
}

/// The tables of a run: tasks and VMs from its log, jobs and requests from their files.
fn tables(args: &ExportArgs, log: &RunLog) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let experiment = &log.header.experiment;
    let mut tables: Vec<(&str, TypedTable)> = Vec::new();
    if experiment.scheduler.is_some() {
        let all = (Time::ZERO, Time::from_micros(u64::MAX));
        let results = stored_results(log, all).map_err(not_again(&args.dir))?;
        tables.extend(results.view().tables);
    }
    let (jobs, requests) = (experiment.jobs.is_some(), experiment.requests.is_some());
    for (name, has) in [("jobs", jobs), ("allocations", jobs), ("requests", requests)] {
        let path = args.dir.join(format!("{name}.csv"));
        // An older version left no allocations.
        if has && path.exists() {
            tables.push((name, read_table(&path)?));
        }
    }
    let parquet = |(name, table): (&str, TypedTable)| {
        let content = table
            .to_parquet()
            .map_err(|error| Failure::Broken(format!("{name}.parquet can't be made: {error}")))?;
        Ok((format!("{name}.parquet"), content))
    };
    tables.into_iter().map(parquet).collect()
}

fn read_table(path: &Path) -> Result<TypedTable, OutputError> {
    let text = fs::read_to_string(path).map_err(|error| OutputError::io("read", path, error))?;
    Ok(TypedTable::from_csv(columns(text.lines().next().unwrap_or_default()), &text))
}

/// The typed columns of a file of jobs, allocations or requests that has this first line.
fn columns(header: &str) -> Vec<TableColumn> {
    let column = |name: &str| match name {
        "job_id" | "request" | "requested_number_of_resources" | "success" => {
            TableColumn::count(name)
        }
        "workload_name"
        | "profile"
        | "final_state"
        | "allocated_resources"
        | "metadata"
        | "type"
        | "market"
        | "host"
        | "end"
        | "displaced_by"
        | "tier" => TableColumn::text(name),
        _ => TableColumn::number(name),
    };
    header.trim_end().split(',').map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parquet_is_refused_where_it_is_not_built_in() {
        let refused = refuse(Format::Parquet, false);
        let Err(Failure::BadInput(said)) = refused else { panic!("{refused:?}") };
        assert_eq!(
            said,
            "--as parquet: Parquet is not built into this dormouse; build it with --features parquet, or \
             take the CSV files, which have the same"
        );
        assert!(refuse(Format::Svg, false).is_ok() && refuse(Format::Parquet, true).is_ok());
    }
}
