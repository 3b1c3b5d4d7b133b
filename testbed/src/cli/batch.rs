//! What the commands do for batch runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::args::WhatArgs;
use super::conduct::{LiveJobs, conduct_jobs};
use super::duration::{Duration, of_jobs};
use super::failure::Failure;
use super::preflight;
use super::print::print;
use super::run::Say;
use super::torn::say_torn;
use crate::batch::{self, BatchError, BatchHeader, BatchLog, BatchOutcome, Jobs};
use crate::experiment::BatchExperiment;
use crate::output::{Mode, Staging, Style, is_unfinished};

/// `dormouse run`: in virtual time.
pub(crate) fn run(
    args: &WhatArgs,
    command: String,
    experiment: BatchExperiment,
) -> Result<(), Failure> {
    let began = Instant::now();
    let jobs = Jobs::open(&experiment)?;
    let header = BatchHeader::new(Mode::Virtual, command, jobs.machine(), experiment);
    let staging = Staging::begin(&folder(args, &header), args.force)?;
    let mut outcome = batch::virtual_run(&header, jobs, staging.path())?;
    outcome.wall_s = began.elapsed().as_secs_f64();
    end(Say::of(args), &outcome, staging)?;
    Ok(())
}

/// `dormouse run --live` and, with an address, `dormouse coordinator`: on real processors.
pub(crate) fn live(
    args: &WhatArgs,
    command: String,
    experiment: BatchExperiment,
    listen: Option<SocketAddr>,
) -> Result<(), Failure> {
    let jobs = Jobs::open(&experiment)?;
    let header = BatchHeader::new(Mode::Live, command, jobs.machine(), experiment);
    let live = LiveJobs::of(jobs)?;
    let (name, speedup) = (&header.experiment.name, header.experiment.live.speedup);
    let emulated = of_jobs(&live.submissions, header.machine);
    let takes = Duration { how: "at least", emulated, speedup };
    let takes = takes.check(name, "jobs", args.allow_long)?;
    if listen.is_none() {
        preflight::check(name, header.experiment.needs_criu())?;
    }
    let staging = Staging::begin_in_place(&folder(args, &header), args.force)?;
    conduct_jobs(&header, live, Some(takes), listen, staging, Say::of(args))
}

/// Where the results go.
fn folder(args: &WhatArgs, header: &BatchHeader) -> PathBuf {
    let BatchExperiment { name, scheduler, seed, .. } = &header.experiment;
    super::run::folder(args, name, scheduler.name.name(), *seed, header.mode)
}

/// Writes the results and says what came out.
pub(super) fn end(
    say: Say,
    outcome: &BatchOutcome<'_>,
    staging: Staging,
) -> Result<PathBuf, Failure> {
    let folder = outcome.write(staging)?;
    if say.json {
        print(&format!("{:#}", outcome.summary()))?;
    } else if !say.quiet {
        print(&outcome.table(Style::of_stdout()))?;
        print(&format!("  {:<13} {}", "results", folder.display()))?;
    }
    Ok(folder)
}

/// The log of a run, which may have been killed.
fn read(dir: &Path) -> Result<BatchLog, Failure> {
    let log = BatchLog::read(dir)?;
    say_torn(dir, log.torn)?;
    Ok(log)
}

/// `dormouse explain DIR JOB`.
pub(crate) fn explain(dir: &Path, what: &str) -> Result<(), Failure> {
    match batch::explain(&read(dir)?, what)? {
        Some(text) => print(&text),
        None => Err(Failure::BadInput(format!(
            "{}: there is no job '{what}' in this run; ask for a job by its number, such as 17",
            dir.display()
        ))),
    }
}

/// `dormouse check DIR`.
pub(crate) fn check(dir: &Path) -> Result<(), Failure> {
    let ended = !is_unfinished(dir);
    let checked = batch::check(&read(dir)?, ended)?;
    if checked.violations.is_empty() {
        let (steps, jobs) = (checked.steps, checked.jobs);
        let so_far = super::check::so_far(ended);
        return print(&format!("{steps} steps, {jobs} jobs: nothing that must not be{so_far}"));
    }
    let lines: Vec<_> = checked.violations.iter().map(ToString::to_string).collect();
    print(&lines.join("\n"))?;
    Err(Failure::Broken(format!("{}: {} violations", dir.display(), lines.len())))
}

/// `dormouse replay DIR`.
pub(crate) fn replay(dir: &Path) -> Result<(), Failure> {
    let log = read(dir)?;
    let replayed = batch::replay(&log)?;
    let broken = |what: String| {
        Failure::Broken(format!(
            "{}: {what}; it was made by version {}, this is {}",
            dir.display(),
            log.header.dormouse,
            env!("CARGO_PKG_VERSION")
        ))
    };
    if let Some(difference) = &replayed.difference {
        let (recorded, again) = &**difference;
        let json = |step| serde_json::to_string(step).unwrap_or_default();
        print(&format!("recorded: {}\nreplayed: {}", json(recorded), json(again)))?;
        return Err(broken(format!("step {} comes out otherwise", replayed.steps)));
    }
    if let Some(recorded) = batch::recorded_digest(dir)?
        && recorded != replayed.digest
    {
        print(&format!("recorded: {recorded}\nreplayed: {}", replayed.digest))?;
        return Err(broken("the decisions come out otherwise".to_owned()));
    }
    print(&format!(
        "{} steps, {} decisions: all as recorded\n{}",
        replayed.steps, replayed.decisions, replayed.digest
    ))
}

impl From<BatchError> for Failure {
    fn from(error: BatchError) -> Self {
        let text = crate::chain::chain(&error);
        if error.is_bad_input() { Self::BadInput(text) } else { Self::Broken(text) }
    }
}
