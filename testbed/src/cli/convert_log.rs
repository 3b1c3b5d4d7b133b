//! `dormouse workload convert`: a log of parallel jobs in another format, or the tasks of a workflow as such a log.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dormouse_experiment::read_workflow;
use dormouse_workload::{
    BatsimWriter, CsvWriter, Header, JobsFormat, Skipped, SwfJob, SwfReader, SwfWriter,
    WorkflowFormat,
};
use serde_json::json;

use super::failure::Failure;
use super::print::print;
use super::workflow;
use super::workload::{Input, bad, refused};

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    input: Input,
    /// The format to write
    #[arg(long, value_enum)]
    to: LogTarget,
    /// Where to write the log
    #[arg(short, long)]
    out: PathBuf,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

/// A format in which logs are written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogTarget {
    /// The Standard Workload Format
    Swf,
    /// A table with commas, whose columns are the fields of SWF
    Csv,
    /// A workload of Batsim, in which each job that ran is a delay
    Batsim,
}

impl ConvertArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        if let Some(format) = workflow::format_of(&self.input.log) {
            return self.convert_workflow(format);
        }
        let mut log = self.input.open_all()?;
        let (header, hosts) = self.head(&log)?;
        let written = self.write(log.by_ref().map(|job| job.map_err(bad)), &header, hosts)?;
        self.tell(&written, Some(&log.skipped()), &[])
    }

    /// Writes the tasks of a workflow as jobs that follow others.
    fn convert_workflow(&self, format: WorkflowFormat) -> Result<(), Failure> {
        let path = &self.input.log;
        let workflow = read_workflow(path).map_err(|error| Failure::BadInput(error.to_string()))?;
        let jobs = workflow.jobs().map_err(|(first, count)| {
            let said =
                format!("{count} tasks have no run time, such as '{first}'; give each task of the file a run time");
            Failure::BadInput(format!("{}: {said}", path.display()))
        })?;
        let largest = jobs.iter().map(|job| job.requested).max().unwrap_or(1);
        let hosts = self.input.procs.unwrap_or_else(|| u32::try_from(largest).unwrap_or(u32::MAX));
        let mut header = Header::default();
        header.set("Version", "2.2");
        header.set("MaxProcs", hosts);
        header.set("Note", format!("converted from a workflow ({})", format.name()));
        let written = self.write(jobs.into_iter().map(Ok), &header, hosts)?;
        let mut more = vec!["run times rounded up to whole seconds".to_owned()];
        if self.input.procs.is_none() {
            more.push(format!(
                "MaxProcs is {hosts}, as the largest task has; --procs gives another"
            ));
        }
        more.extend(workflow.left_out);
        self.tell(&written, None, &more)
    }

    fn write(
        &self,
        mut jobs: impl Iterator<Item = Result<SwfJob, Failure>>,
        header: &Header,
        hosts: u32,
    ) -> Result<WrittenJobs, Failure> {
        let out = || File::create(&self.out).map(BufWriter::new).map_err(refused(&self.out));
        let (mut done, failed) = (WrittenJobs::default(), refused(&self.out));
        match self.to {
            LogTarget::Swf => {
                let mut to = SwfWriter::new(out()?, header).map_err(&failed)?;
                for job in jobs {
                    to.write(&job?).map_err(&failed)?;
                    done.written += 1;
                }
                to.finish().map_err(&failed)?;
            }
            LogTarget::Csv => {
                let mut to = CsvWriter::new(out()?).map_err(&failed)?;
                for job in jobs {
                    to.write(&job?).map_err(&failed)?;
                    done.written += 1;
                }
                to.finish().map_err(&failed)?;
            }
            LogTarget::Batsim => {
                let mut to = BatsimWriter::new(out()?, hosts).map_err(&failed)?;
                jobs.try_for_each(|job| {
                    let job = job?;
                    done.has_names |=
                        job.user >= 0 || job.requested_memory > 0 || job.preceding >= 0;
                    match to.write(&job).map_err(&failed)? {
                        true => done.written += 1,
                        false => done.unknown += 1,
                    }
                    Ok::<(), Failure>(())
                })?;
                to.finish().map_err(&failed)?;
            }
        }
        Ok(done)
    }

    /// The header to write, and the number of hosts, which a Batsim workload needs.
    fn head(&self, log: &SwfReader) -> Result<(Header, u32), Failure> {
        let mut header = Header::default();
        let procs = self.input.procs.or_else(|| log.header().processors());
        if log.header().get("Version").is_none() {
            header.set("Version", "2.2");
        }
        for (name, value) in log.header().directives() {
            let is_replaced = self.input.procs.is_some() && matches!(name, "MaxProcs" | "MaxNodes");
            if !is_replaced {
                header.set(name, value);
            }
        }
        if let Some(procs) = self.input.procs {
            header.set("MaxProcs", procs);
        }
        if log.format() != JobsFormat::Swf {
            header.set("Note", format!("converted from {}", log.format().in_words()));
        }
        match (self.to, procs) {
            (LogTarget::Batsim, None) => {
                let what = "does not say how many processors its machine has; give the number with --procs";
                Err(Failure::BadInput(format!("{} {what}", self.input.log.display())))
            }
            (_, procs) => Ok((header, procs.unwrap_or_default())),
        }
    }

    fn tell(
        &self,
        done: &WrittenJobs,
        skipped: Option<&Skipped>,
        more: &[String],
    ) -> Result<(), Failure> {
        if self.json {
            let figures = json!({
                "jobs": done.written,
                "without_run_time_or_size": done.unknown,
                "skipped": skipped,
            });
            return print(&format!("{figures:#}"));
        }
        let mut lines = vec![format!("{} jobs written to {}", done.written, self.out.display())];
        if done.unknown > 0 {
            lines.push(format!("{} left out, whose run time or size is not known", done.unknown));
        }
        if matches!(self.to, LogTarget::Batsim) {
            lines.push("submissions count from the first job".to_owned());
            if done.has_names {
                lines
                    .push("a workload of Batsim has no users, memory or preceding jobs".to_owned());
            }
        }
        if let Some(skipped) = skipped.filter(|skipped| skipped.is_worth_telling()) {
            lines.push(skipped.to_string());
        }
        lines.extend_from_slice(more);
        print(&lines.join("\n"))
    }
}

/// What became of the jobs of a log.
#[derive(Debug, Default)]
struct WrittenJobs {
    /// Number of jobs that were written.
    written: u64,
    /// Number of jobs that were left out, as their run time or size is not known.
    unknown: u64,
    /// True if a job has a user, memory or a predecessor, for which the new format has no place.
    has_names: bool,
}
