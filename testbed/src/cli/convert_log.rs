//! `dormouse workload convert`: a log of parallel jobs in another format.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use dormouse_workload::{BatsimWriter, CsvWriter, Header, JobsFormat, SwfReader, SwfWriter};
use serde_json::json;

use super::failure::Failure;
use super::print::print;
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
    /// A workload of Batsim: what ran, as delays
    Batsim,
}

impl ConvertArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let mut log = self.input.open_all()?;
        let (header, hosts) = self.head(&log)?;
        let out = || File::create(&self.out).map(BufWriter::new).map_err(refused(&self.out));
        let (mut written, mut unknown, mut has_names) = (0_u64, 0_u64, false);
        let failed = refused(&self.out);
        match self.to {
            LogTarget::Swf => {
                let mut to = SwfWriter::new(out()?, &header).map_err(&failed)?;
                for job in log.by_ref() {
                    to.write(&job.map_err(bad)?).map_err(&failed)?;
                    written += 1;
                }
                to.finish().map_err(&failed)?;
            }
            LogTarget::Csv => {
                let mut to = CsvWriter::new(out()?).map_err(&failed)?;
                for job in log.by_ref() {
                    to.write(&job.map_err(bad)?).map_err(&failed)?;
                    written += 1;
                }
                to.finish().map_err(&failed)?;
            }
            LogTarget::Batsim => {
                let mut to = BatsimWriter::new(out()?, hosts).map_err(&failed)?;
                for job in log.by_ref() {
                    let job = job.map_err(bad)?;
                    has_names |= job.user >= 0 || job.requested_memory > 0 || job.preceding >= 0;
                    match to.write(&job).map_err(&failed)? {
                        true => written += 1,
                        false => unknown += 1,
                    }
                }
                to.finish().map_err(&failed)?;
            }
        }
        self.tell(&log, (written, unknown), has_names)
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
        log: &SwfReader,
        (written, unknown): (u64, u64),
        has_names: bool,
    ) -> Result<(), Failure> {
        let skipped = log.skipped();
        if self.json {
            let figures = json!({
                "jobs": written,
                "without_run_time_or_size": unknown,
                "skipped": skipped,
            });
            return print(&format!("{figures:#}"));
        }
        let mut lines = vec![format!("{written} jobs written to {}", self.out.display())];
        if unknown > 0 {
            lines.push(format!("{unknown} left out, whose run time or size is not known"));
        }
        if matches!(self.to, LogTarget::Batsim) {
            lines.push("submissions count from the first job".to_owned());
            if has_names {
                lines
                    .push("a workload of Batsim has no users, memory or preceding jobs".to_owned());
            }
        }
        if skipped.is_worth_telling() {
            lines.push(skipped.to_string());
        }
        print(&lines.join("\n"))
    }
}
