//! The commands, and the options that several of them have.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use dormouse_policies::batch::Submission;

use super::error::CliError;
use super::{GenerateArgs, ScaleArgs, StatsArgs};
use crate::swf::{Header, OnMalformed, SwfJob, SwfWriter, Trace};

/// Workloads of parallel jobs.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Make a workload from a model, as an SWF log.
    Generate(GenerateArgs),
    /// Say what is in an SWF log: a table, and a plot if asked.
    Stats(StatsArgs),
    /// Change the load of an SWF log by multiplying the times between submissions.
    Scale(ScaleArgs),
}

/// Does what the command says; tables go to `out`.
///
/// # Errors
///
/// See [`CliError`].
pub fn run(command: &Command, out: &mut dyn Write) -> Result<(), CliError> {
    match command {
        Command::Generate(args) => args.run(out),
        Command::Stats(args) => args.run(out),
        Command::Scale(args) => args.run(out),
    }
}

/// An SWF log on the command line.
#[derive(Clone, Debug, clap::Args)]
pub struct Input {
    /// The log, plain or gzipped.
    pub log: PathBuf,
    /// Processors of the machine, where the log does not say or is wrong.
    #[arg(long)]
    pub procs: Option<u32>,
    /// Leave malformed jobs out and count them, instead of stopping at the first.
    #[arg(long)]
    pub skip_malformed: bool,
}

impl Input {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// It can't be read, or does not say how large its machine is.
    pub fn open(&self) -> Result<Trace, CliError> {
        let on_malformed = if self.skip_malformed { OnMalformed::Skip } else { OnMalformed::Fail };
        Ok(Trace::open(&self.log, self.procs, on_malformed)?)
    }
}

/// Creates a file to write to.
pub(super) fn create(path: &Path) -> Result<BufWriter<File>, CliError> {
    let file = File::create(path).map_err(write_error(path))?;
    Ok(BufWriter::new(file))
}

/// What to make of a failure to write `path`.
pub(super) fn write_error(path: &Path) -> impl Fn(io::Error) -> CliError + '_ {
    |source| CliError::Write { path: path.to_owned(), source }
}

/// Writes `jobs` as a log.
pub(super) fn write_log<E>(
    path: &Path,
    header: &Header,
    jobs: impl IntoIterator<Item = Result<Submission, E>>,
) -> Result<(), CliError>
where
    CliError: From<E>,
{
    let mut log = SwfWriter::new(create(path)?, header).map_err(write_error(path))?;
    for job in jobs {
        log.write(&SwfJob::from(&job?)).map_err(write_error(path))?;
    }
    log.finish().map_err(write_error(path))
}
