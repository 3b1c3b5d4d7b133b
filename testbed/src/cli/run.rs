//! `dormouse run`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dormouse_engine::drive::PlayError;

use super::args::{CoordinatorArgs, RunArgs, WhatArgs};
use super::batch;
use super::conduct::{LiveJobs, cannot, conduct_live};
use super::duration::Duration;
use super::failure::Failure;
use super::preflight;
use super::print::print;
use super::speedup::settle;
use crate::batch::{BatchError, Jobs, SharedJobs};
use crate::experiment::{Loaded, Opened, Override, Source, SpeedupSaid, open};
use crate::live::rehearse;
use crate::output::{Header, Mode, Outcome, OutputError, Staging, Style, begin_log};
use crate::virtual_run::virtual_run;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let kind = if args.live { " --live" } else { "" };
    let what = Asked {
        args: &args.what,
        workers: args.workers.as_ref(),
        open: args.open,
        verb: format!("run{kind}"),
    };
    match (opened(&what)?, args.live) {
        (Opened::Bag(loaded), true) => here(&what, *loaded, args.calibration.as_deref()),
        (Opened::Bag(loaded), false) => virtually(&what, *loaded),
        (Opened::Batch(batch), false) => batch::run(&args.what, command(&what), *batch),
        (Opened::Batch(batch), true) => batch::live(&args.what, command(&what), *batch, None),
    }
}

/// `dormouse coordinator`: a live run whose workers are elsewhere.
pub(crate) fn coordinator(args: &CoordinatorArgs) -> Result<(), Failure> {
    let verb = "coordinator".to_owned();
    let what = Asked { args: &args.what, workers: args.workers.as_ref(), open: args.open, verb };
    match opened(&what)? {
        Opened::Bag(loaded) => {
            loaded.scheduler()?;
            let header = Header::new(Mode::Live, command(&what), loaded.experiment);
            live(&what, &header, Some(args.listen))
        }
        Opened::Batch(batch) => batch::live(&args.what, command(&what), *batch, Some(args.listen)),
    }
}

/// What was asked for, by whichever command.
struct Asked<'a> {
    args: &'a WhatArgs,
    workers: Option<&'a String>,
    open: bool,
    /// The command, as it is typed after `dormouse`.
    verb: String,
}

fn virtually(asked: &Asked<'_>, loaded: Loaded) -> Result<(), Failure> {
    let (args, began) = (asked.args, Instant::now());
    let plan = loaded.plan()?;
    let scheduler = loaded.scheduler()?;
    let header = Header::new(Mode::Virtual, command(asked), loaded.experiment);
    let staging = Staging::begin(&bag_folder(args, &header), args.force)?;

    let mut jobs = SharedJobs::begin(staging.path(), &header)?;
    let (mut log, mut written) = (begin_log(staging.path(), &header)?, Ok::<_, BatchError>(()));
    let mut record = header.record();
    let say = Say::of(args);
    let progress = say.progress(record.tasks.len(), "tasks");
    let stuck = virtual_run(&header.experiment, scheduler, |step| {
        if written.is_ok() {
            written = log.line(step).map_err(|error| OutputError::from(error).into());
        }
        if let (true, Some(jobs)) = (written.is_ok(), &mut jobs) {
            written = jobs.see(step);
        }
        record.see(step);
        progress.set_position(record.finished() as u64);
    })
    .err();
    progress.finish_and_clear();
    written?;
    log.finish().map_err(OutputError::from)?;
    let stuck = match stuck {
        // Its jobs can't be had: there is nothing to show.
        Some(PlayError::Outside(error)) => return Err(error.into()),
        stuck => stuck.map(|stuck| stuck.to_string()),
    };

    if let (Some(jobs), Some(own)) = (&mut jobs, &header.experiment.jobs) {
        jobs.left_out(Jobs::left_out(own)?);
    }
    let jobs = jobs.map(SharedJobs::finish).transpose()?;
    let wall_s = began.elapsed().as_secs_f64();
    let (plan, jobs) = (plan.as_ref(), jobs.as_ref());
    let outcome = Outcome { header: &header, record: &record, plan, fidelity: None, jobs, wall_s };
    end(say, &outcome, staging, stuck)
}

/// A live run on workers of this host, at a speed-up that it can do.
fn here(asked: &Asked<'_>, mut loaded: Loaded, calibration: Option<&Path>) -> Result<(), Failure> {
    // What is wrong with it is said with its place before anything is made.
    loaded.scheduler()?;
    let choice = settle(&mut loaded, calibration)?;
    let mut command = command(asked);
    if loaded.speedup != SpeedupSaid::CommandLine {
        let _ = write!(command, " --speedup {}", choice.speedup);
    }
    let mut header = Header::new(Mode::Live, command, loaded.experiment);
    header.speedup = Some(choice);
    live(asked, &header, None)
}

/// A live run, with workers of its own, or listening for some from elsewhere.
fn live(asked: &Asked<'_>, header: &Header, listen: Option<SocketAddr>) -> Result<(), Failure> {
    let (args, experiment) = (asked.args, &header.experiment);
    let scheduler = experiment.scheduler().map_err(cannot)?;
    let rehearsal = rehearse(experiment, scheduler);
    let (emulated, speedup) = (rehearsal.takes, experiment.live.speedup);
    let takes = Duration { how: "about", emulated, speedup };
    let takes = takes.check(&experiment.name, "tasks", args.allow_long)?;
    if listen.is_none() {
        preflight::check(&experiment.name, experiment.needs_criu())?;
    }
    let staging = Staging::begin_in_place(&bag_folder(args, header), args.force)?;
    let jobs =
        experiment.jobs.as_deref().map(|jobs| LiveJobs::of(Jobs::open(jobs)?)).transpose()?;
    let jobs = jobs.unwrap_or_default();
    conduct_live(header, (rehearsal, jobs), Some(takes), listen, staging, Say::of(args))
}

/// Writes the results and says what came out; `broke`: why the run was ended with tasks left.
pub(super) fn end(
    say: Say,
    outcome: &Outcome<'_>,
    staging: Staging,
    broke: Option<String>,
) -> Result<(), Failure> {
    let folder = outcome.write(staging)?;
    if say.json {
        print(&format!("{:#}", outcome.summary()))?;
    } else if !say.quiet {
        print(&outcome.table(Style::of_stdout()))?;
        print(&format!("  {:<13} {}", "results", folder.display()))?;
    }
    match broke {
        None => Ok(()),
        Some(why) => {
            Err(Failure::Broken(format!("the run broke: {why}; see {}", folder.display())))
        }
    }
}

/// The experiment that was asked for, with everything set that was asked for.
fn opened(asked: &Asked<'_>) -> Result<Opened, Failure> {
    let args = asked.args;
    let mut overrides = Vec::new();
    let mut given = |option, path: &str, value: Option<&str>| {
        overrides.extend(value.map(|value| Override::text(option, path, value)));
    };
    let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.to_string_lossy().into_owned());
    given("--job", "workload.job", path(&args.job).as_deref());
    given("--env", "workload.env", path(&args.env).as_deref());
    given("--scheduler", "scheduler.name", args.scheduler.as_deref());
    for (option, path, value) in [
        ("--seed", "seed", &args.seed),
        ("--speedup", "live.speedup", &args.speedup),
        ("--workers", "live.workers", &asked.workers.cloned()),
        ("--open", "live.open", &asked.open.then(|| "true".to_owned())),
    ] {
        let value = value.clone();
        overrides.extend(value.map(|value| Override { option, path: path.into(), value }));
    }
    for text in &args.set {
        overrides.push(Override::set(text)?);
    }
    let source = Source {
        experiment: args.experiment.as_deref(),
        overrides,
        plan: args.plan.as_deref(),
        replaces_workload: args.job.is_some(),
    };
    let opened = open(&source)?;
    if let (Opened::Bag(loaded), false) = (&opened, args.quiet) {
        loaded.notes.iter().for_each(|note| eprintln!("dormouse: {note}"));
    }
    Ok(opened)
}

/// The command that makes the same run again, wherever its results go.
fn command(asked: &Asked<'_>) -> String {
    let args = asked.args;
    let mut words = vec!["dormouse".to_owned()];
    words.extend(asked.verb.split(' ').map(str::to_owned));
    words.extend(args.experiment.clone());
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.extend([name.to_owned(), value]);
        }
    };
    let path = |path: &Option<PathBuf>| path.as_ref().map(|p| p.to_string_lossy().into_owned());
    option("--seed", args.seed.clone());
    option("--scheduler", args.scheduler.clone());
    option("--speedup", args.speedup.clone());
    option("--workers", asked.workers.cloned());
    option("--job", path(&args.job));
    option("--env", path(&args.env));
    option("--plan", path(&args.plan));
    for set in &args.set {
        option("--set", Some(set.clone()));
    }
    words.extend(asked.open.then(|| "--open".to_owned()));
    words.extend(args.allow_long.then(|| "--allow-long".to_owned()));
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// As a shell wants it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn bag_folder(args: &WhatArgs, header: &Header) -> PathBuf {
    let experiment = &header.experiment;
    let scheduler = experiment.scheduler.name.to_string();
    folder(args, &experiment.name, &scheduler, experiment.setup.seed, header.mode)
}

/// Where the results of a run go.
pub(crate) fn folder(
    args: &WhatArgs,
    name: &str,
    scheduler: &str,
    seed: u64,
    mode: Mode,
) -> PathBuf {
    let live = if mode == Mode::Live { "-live" } else { "" };
    args.out
        .clone()
        .unwrap_or_else(|| PathBuf::from("runs").join(format!("{name}-{scheduler}-s{seed}{live}")))
}

/// How much a run says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Say {
    pub(super) quiet: bool,
    pub(super) json: bool,
}

impl Say {
    pub(super) fn of(args: &WhatArgs) -> Self {
        Self { quiet: args.quiet, json: args.json }
    }

    /// A line on standard error, where that is a terminal.
    pub(super) fn progress(self, count: usize, what: &str) -> indicatif::ProgressBar {
        if self.quiet || self.json {
            return indicatif::ProgressBar::hidden();
        }
        let style = indicatif::ProgressStyle::with_template(&format!(
            "{{pos}}/{{len}} {what} {{bar:24}} {{msg}}"
        ));
        indicatif::ProgressBar::new(count as u64)
            .with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()))
    }
}
