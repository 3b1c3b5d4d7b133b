//! `dormouse workload generate | stats | scale`: logs of parallel jobs; `convert` and `requests` have modules of their
//! own.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use dormouse_input::Chosen;
use dormouse_units::{Span, Time};
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_workload::{
    Header, Histogram, JobsFormat, Model, OnMalformed, Skipped, Statistics, SwfJob, SwfReader,
    SwfWriter, Trace, WorkflowFormat, offered_load, scale_arrivals, scale_logged_arrival,
    tsafrir_estimates,
};
use serde_json::json;

use super::args::Say;
use super::convert_log::ConvertArgs;
use super::failure::Failure;
use super::next_steps;
use super::print::print;
use super::read_progress::ReadProgress;
use super::requests::{self, RequestsArgs};
use super::workflow;
use dormouse_experiment::chain;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadCommand {
    /// Make a workload from a model, as an SWF log
    Generate(GenerateArgs),
    /// Show what is in an SWF log, with a plot if asked, in a file of requests for VMs, or in a workflow
    Stats(StatsArgs),
    /// Change the load of an SWF log by multiplying the times between submissions
    Scale(ScaleArgs),
    /// Write a log of parallel jobs, of any format that is read, as SWF, CSV or a workload of Batsim; or a workflow, as
    /// jobs with as many processors as its tasks have cores
    Convert(ConvertArgs),
    /// Show which VMs the customers of an experiment request, and write the requests as CSV if asked
    Requests(RequestsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The model: fw-like, jw-like, lublin or lublin-typeless
    #[arg(long)]
    model: Model,
    /// The number of jobs
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
    /// Processors of the machine
    #[arg(long, default_value_t = 320)]
    procs: u32,
    /// Offered load; the model's own if not given
    #[arg(long)]
    load: Option<f64>,
    /// Estimates by the model of Tsafrir 2005, up to --longest; else exact
    #[arg(long)]
    tsafrir: bool,
    /// Longest estimate allowed, such as 36h [default: 18h for fw-like and jw-like, else 48h]
    #[arg(long)]
    longest: Option<Span>,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the log
    #[arg(short, long)]
    out: PathBuf,
    /// Print the figures of the workload as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    input: Input,
    /// Plot the distributions of sizes and run times into this SVG file
    #[arg(long)]
    plot: Option<PathBuf>,
    /// Which column of a file of requests is what, such as at=created or duration=3
    #[arg(long, value_name = "NAME=HEADING")]
    column: Vec<Chosen>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    #[command(flatten)]
    input: Input,
    /// Offered load to reach
    #[arg(long, conflicts_with = "factor", required_unless_present = "factor")]
    load: Option<f64>,
    /// Factor by which the times between submissions are multiplied
    #[arg(long)]
    factor: Option<f64>,
    /// Where to write the scaled log
    #[arg(short, long)]
    out: PathBuf,
    /// Print the figures of the scaled log as JSON
    #[arg(long)]
    json: bool,
}

/// A log given on the command line.
#[derive(Clone, Debug, Args)]
pub(super) struct Input {
    /// The log, compressed or not: SWF, a workload of Batsim, output of sacct, an accounting file of PBS, LSF or
    /// Grid Engine, a history of HTCondor, or a trace of Philly, Helios or Alibaba. `stats` also reads requests (CSV,
    /// or a trace of VMs), `stats` and `convert` workflows (DAGMan, WfCommons, Pegasus, Snakemake, Nextflow)
    pub(super) log: PathBuf,
    /// Processors of the machine, where the log does not say or is wrong
    #[arg(long)]
    pub(super) procs: Option<u32>,
    /// Leave malformed jobs out and count them, instead of stopping at the first
    #[arg(long)]
    skip_malformed: bool,
}

pub(crate) fn workload(command: &WorkloadCommand) -> Result<(), Failure> {
    match command {
        WorkloadCommand::Generate(args) => args.run(),
        WorkloadCommand::Stats(args) => args.run(),
        WorkloadCommand::Scale(args) => args.run(),
        WorkloadCommand::Convert(args) => args.run(),
        WorkloadCommand::Requests(args) => args.run(),
    }
}

impl GenerateArgs {
    fn run(&self) -> Result<(), Failure> {
        let mut jobs = self.model.generate(self.jobs, self.procs, self.seed).map_err(bad)?;
        if let Some(load) = self.load {
            let factor = offered_load(&jobs, self.procs) / positive("load", load)?;
            let scaled = jobs.into_iter().map(|job| scale_arrivals(job, Time::ZERO, factor));
            jobs = scaled.collect::<Result<_, _>>().map_err(bad)?;
        }
        if self.tsafrir {
            let longest = self.longest.unwrap_or_else(|| self.model.longest());
            tsafrir_estimates(&mut jobs, longest, self.seed).map_err(bad)?;
        }
        let mut statistics = Statistics::new(self.procs);
        jobs.iter().for_each(|job| statistics.add(job));
        let mut header = Header::of_model(self.model.name(), self.jobs, self.procs);
        let estimates = if self.tsafrir { "Tsafrir 2005" } else { "exact" };
        header.set("Note", format!("seed {}, estimates: {estimates}", self.seed));
        write_log(&self.out, &header, jobs.iter().map(|job| Ok(SwfJob::from(job))))?;
        tell(&statistics, None, self.json)?;
        let say = Say { quiet: false, json: self.json };
        next_steps::say(say, || next_steps::after_workload(&self.out));
        Ok(())
    }
}

impl StatsArgs {
    fn run(&self) -> Result<(), Failure> {
        let log = &self.input.log;
        is_there(log)?;
        can_be_read_again(log)?;
        if let Some(format) = workflow::format_of(log) {
            return self.of_workflow(format);
        }
        let is_of_requests = || requests::is_file_of_requests(log) && !is_log(log);
        if !self.column.is_empty() || is_of_requests() {
            return self.of_requests();
        }
        let mut trace = self.input.open()?;
        let mut statistics = Statistics::new(trace.machine());
        for job in trace.by_ref() {
            statistics.add(&job.map_err(bad)?);
        }
        tell(&statistics, Some(&trace.skipped()), self.json)?;
        let Some(path) = &self.plot else { return Ok(()) };
        let name = self.input.log.file_name().unwrap_or_default();
        let chart = PanelChart {
            title: name.to_string_lossy().into_owned(),
            panels: vec![
                panel("Sizes", "processes, at most", &statistics.sizes),
                panel("Run times", "seconds, at most", &statistics.runtimes),
            ],
        };
        fs::write(path, chart.to_svg()).map_err(refused(path))?;
        if self.json { Ok(()) } else { print(&format!("plot in {}", path.display())) }
    }

    fn of_workflow(&self, format: WorkflowFormat) -> Result<(), Failure> {
        let Input { log, procs, skip_malformed } = &self.input;
        let is_plain = self.column.is_empty() && self.plot.is_none();
        if procs.is_some() || *skip_malformed || !is_plain {
            let what = "--procs, --skip-malformed, --plot and --column are of other files, and this is a \
                        workflow; leave them out";
            return Err(Failure::BadInput(format!("{}: {what}", log.display())));
        }
        workflow::stats(log, format, self.json)
    }

    fn of_requests(&self) -> Result<(), Failure> {
        let Input { log, procs, skip_malformed } = &self.input;
        if procs.is_some() || *skip_malformed || self.plot.is_some() {
            let what = "--procs, --skip-malformed and --plot are of SWF logs, and this is a file of \
                        requests; leave them out";
            return Err(Failure::BadInput(format!("{}: {what}", log.display())));
        }
        requests::stats(log, &self.column, self.json)
    }
}

/// Fails for a pipe or a device, whose data can be read only once.
fn can_be_read_again(path: &Path) -> Result<(), Failure> {
    // What can't be looked at is refused when it is opened.
    let Ok(kind) = fs::metadata(path).map(|about| about.file_type()) else { return Ok(()) };
    if kind.is_file() || kind.is_dir() {
        return Ok(());
    }
    let what = if kind.is_fifo() { "a pipe" } else { "a device" };
    Err(Failure::BadInput(format!("{}: it is {what}; give a file", path.display())))
}

/// Fails for a path where nothing exists.
fn is_there(path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::BadInput(format!("{}: {error}; check the path", path.display())))
        }
        _ => Ok(()),
    }
}

/// Whether a file begins like a log of jobs.
fn is_log(path: &Path) -> bool {
    let format = File::open(path).and_then(JobsFormat::of_file);
    format.is_ok_and(|format| format.is_some())
}

/// Prints the figures of a log, and the counts of what was left out.
fn tell(figures: &Statistics, skipped: Option<&Skipped>, as_json: bool) -> Result<(), Failure> {
    match skipped {
        _ if as_json => {
            let mut all = json!(figures);
            all["skipped"] = json!(skipped);
            print(&format!("{all:#}"))
        }
        Some(skipped) => print(&format!("{figures}{skipped}")),
        None => print(figures.to_string().trim_end()),
    }
}

/// Panel with the percentage of jobs in each bucket of a histogram; the buckets are powers of two.
fn panel(title: &str, x: &str, histogram: &Histogram) -> ChartPanel {
    #[expect(clippy::cast_precision_loss, reason = "a plot")]
    let to_f64 = |n: u64| n as f64;
    let total = to_f64(histogram.buckets().map(|b| b.1).sum::<u64>()).max(1.0);
    let points = (0_u32..)
        .zip(histogram.buckets())
        .map(|(n, (_, count))| SeriesPoint::new(f64::from(n), 100.0 * to_f64(count) / total))
        .collect();
    ChartPanel {
        title: title.to_owned(),
        x: PlotAxis::new(x, AxisScale::PowersOfTwo),
        y: PlotAxis::new("% of jobs", AxisScale::FromZero),
        series: vec![PointSeries {
            name: "jobs".to_owned(),
            colour: 0,
            look: PointLook::Column,
            points,
        }],
        ..ChartPanel::default()
    }
}

impl ScaleArgs {
    fn run(&self) -> Result<(), Failure> {
        let factor = match (self.load, self.factor) {
            (Some(load), _) => {
                let load = positive("load", load)?;
                can_be_read_again(&self.input.log)?;
                let mut before = Statistics::new(self.input.open()?.machine());
                for job in self.input.open()? {
                    before.add(&job.map_err(bad)?);
                }
                if before.offered_load() <= 0.0 {
                    let what =
                        "has no load to scale: it needs two jobs submitted at different times";
                    return Err(Failure::BadInput(format!("{} {what}", self.input.log.display())));
                }
                before.offered_load() / load
            }
            (None, factor) => positive("factor", factor.unwrap_or_default())?,
        };
        let trace = self.input.open()?;
        let (machine, mut logged) = (trace.machine(), trace.into_reader());
        let mut header = logged.header().clone();
        header.set("Note", format!("times between submissions multiplied by {factor}"));
        let (mut first, log) = (None, &self.input.log);
        let scaled = logged.by_ref().map(|job| {
            let job = job.map_err(bad)?;
            let first = *first.get_or_insert(job.submitted);
            let too_large = |error| Failure::BadInput(format!("{}: {error}", log.display()));
            scale_logged_arrival(job, first, factor).map_err(too_large)
        });
        write_log(&self.out, &header, scaled)?;
        let skipped = logged.skipped();
        let mut after = Statistics::new(machine);
        let out = Input { log: self.out.clone(), procs: Some(machine), ..self.input.clone() };
        for job in out.open()? {
            after.add(&job.map_err(bad)?);
        }
        tell(&after, Some(&skipped), self.json)
    }
}

impl Input {
    fn open(&self) -> Result<Trace, Failure> {
        Trace::new(self.open_all()?, self.procs).map_err(bad)
    }

    /// Opens a log with all its jobs, including those that never ran.
    pub(super) fn open_all(&self) -> Result<SwfReader, Failure> {
        is_there(&self.log)?;
        let on_malformed = if self.skip_malformed { OnMalformed::Skip } else { OnMalformed::Fail };
        SwfReader::from_file(&self.log, ReadProgress::open(&self.log), on_malformed).map_err(bad)
    }
}

/// Writes `jobs` as an SWF log.
fn write_log(
    path: &Path,
    header: &Header,
    jobs: impl Iterator<Item = Result<SwfJob, Failure>>,
) -> Result<(), Failure> {
    let file = File::create(path).map_err(refused(path))?;
    let mut log = SwfWriter::new(BufWriter::new(file), header).map_err(refused(path))?;
    for job in jobs {
        log.write(&job?).map_err(refused(path))?;
    }
    log.finish().map_err(refused(path))
}

fn positive(option: &str, value: f64) -> Result<f64, Failure> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(Failure::BadInput(format!("--{option} {value}: write a number above 0")))
}

pub(crate) fn bad(error: impl Error) -> Failure {
    Failure::BadInput(chain(&error))
}

pub(crate) fn refused(path: &Path) -> impl Fn(io::Error) -> Failure + '_ {
    |error| Failure::Broken(format!("can't write {}: {error}", path.display()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_pipe_is_refused_since_it_can_not_be_read_again() {
        let (reader, _writer) = io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let Err(Failure::BadInput(said)) = can_be_read_again(&path) else {
            panic!("it is taken");
        };
        assert!(said.ends_with(": it is a pipe; give a file"), "{said}");
        assert!(can_be_read_again(Path::new("/dev/null")).is_err());
        assert!(can_be_read_again(Path::new(file!())).is_ok());
    }
}
