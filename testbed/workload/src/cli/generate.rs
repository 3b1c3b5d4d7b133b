//! `dormouse workload generate`.

use std::convert::Infallible;
use std::io::Write;
use std::path::PathBuf;

use dormouse_units::Span;

use super::error::CliError;
use super::options::write_log;
use crate::arrivals::{offered_load, scale_arrivals};
use crate::models::{Model, tsafrir_estimates};
use crate::statistics::Statistics;
use crate::swf::Header;

/// Options of `generate`.
#[derive(Clone, Debug, clap::Args)]
pub struct GenerateArgs {
    /// The model: fw-like, jw-like, lublin or lublin-typeless.
    #[arg(long)]
    pub model: Model,
    /// The number of jobs.
    #[arg(long, default_value_t = 10_000)]
    pub jobs: usize,
    /// Processors of the machine.
    #[arg(long, default_value_t = 320)]
    pub procs: u32,
    /// Offered load; the model's own if not given.
    #[arg(long)]
    pub load: Option<f64>,
    /// Estimates by the model of Tsafrir 2005, up to --longest; else exact.
    #[arg(long)]
    pub tsafrir: bool,
    /// Longest estimate allowed, such as 36h [default: 18h for fw-like and jw-like, else 48h].
    #[arg(long)]
    pub longest: Option<Span>,
    /// For all chance.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Where to write the log.
    #[arg(short, long)]
    pub out: PathBuf,
}

impl GenerateArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let mut jobs = self.model.generate(self.jobs, self.procs, self.seed)?;
        if let Some(load) = self.load {
            if !(load > 0.0 && load.is_finite()) {
                return Err(CliError::NotPositive { option: "load", value: load });
            }
            let factor = offered_load(&jobs, self.procs) / load;
            jobs = jobs.into_iter().map(|job| scale_arrivals(job, factor)).collect();
        }
        if self.tsafrir {
            let longest = self.longest.unwrap_or_else(|| self.model.longest());
            tsafrir_estimates(&mut jobs, longest, self.seed)?;
        }
        let mut statistics = Statistics::new(self.procs);
        jobs.iter().for_each(|job| statistics.add(job));
        let mut header = Header::default();
        header.set("Version", "2.2");
        header.set("Computer", format!("model {}", self.model));
        header.set("MaxJobs", self.jobs);
        header.set("MaxRecords", self.jobs);
        header.set("UnixStartTime", 0);
        header.set("MaxNodes", self.procs);
        header.set("MaxProcs", self.procs);
        let estimates = if self.tsafrir { "Tsafrir 2005" } else { "exact" };
        header.set("Note", format!("seed {}, estimates: {estimates}", self.seed));
        write_log(&self.out, &header, jobs.into_iter().map(Ok::<_, Infallible>))?;
        let _ = write!(out, "{statistics}");
        Ok(())
    }
}
