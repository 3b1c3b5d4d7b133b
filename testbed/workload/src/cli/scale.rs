//! `dormouse workload scale`.

use std::io::Write;
use std::path::PathBuf;

use super::error::CliError;
use super::options::{Input, write_log};
use crate::arrivals::scale_arrivals;
use crate::statistics::Statistics;

/// Options of `scale`.
#[derive(Clone, Debug, clap::Args)]
pub struct ScaleArgs {
    /// The log.
    #[command(flatten)]
    pub input: Input,
    /// Offered load that is wanted.
    #[arg(long, conflicts_with = "factor", required_unless_present = "factor")]
    pub load: Option<f64>,
    /// What to multiply the times between submissions by.
    #[arg(long)]
    pub factor: Option<f64>,
    /// Where to write the scaled log.
    #[arg(short, long)]
    pub out: PathBuf,
}

impl ScaleArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let option = if self.load.is_some() { "load" } else { "factor" };
        let value = self.load.or(self.factor).unwrap_or_default();
        if !(value > 0.0 && value.is_finite()) {
            return Err(CliError::NotPositive { option, value });
        }
        let factor = match self.load {
            None => value,
            Some(load) => {
                let trace = self.input.open()?;
                let mut before = Statistics::new(trace.machine());
                for job in trace {
                    before.add(&job?);
                }
                if before.offered_load() <= 0.0 {
                    return Err(CliError::NoLoad { path: self.input.log.clone() });
                }
                before.offered_load() / load
            }
        };
        let mut trace = self.input.open()?;
        let mut header = trace.reader().header().clone();
        header.set("Note", format!("times between submissions multiplied by {factor}"));
        let mut after = Statistics::new(trace.machine());
        let scaled = trace.by_ref().map(|job| {
            let job = scale_arrivals(job?, factor);
            after.add(&job);
            Ok::<_, CliError>(job)
        });
        write_log(&self.out, &header, scaled)?;
        let _ = write!(out, "{after}");
        let _ = writeln!(out, "{}", trace.skipped());
        Ok(())
    }
}
