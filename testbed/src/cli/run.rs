//! `dormouse run`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dormouse_host::calibration::SpeedupSaid;
use sha2::{Digest as _, Sha256};

use super::args::{CoordinatorArgs, RunArgs, WhatArgs};
use super::conduct::{LiveJobs, cannot, conduct_live};
use super::duration::Duration;
use super::failure::Failure;
use super::preflight;
use super::print::print;
use super::progress::Progress;
use super::speedup::settle;
use super::terminal;
use crate::command_line::command_line;
use crate::experiment::{Loaded, Override, Source, open};
use crate::live::rehearse;
use crate::output::{Header, Replaces, Staging};
use crate::results::{Results, virtual_results};
use dormouse_tell::Mode;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let kind = if args.live { " --live" } else { "" };
    let what = Asked {
        args: &args.what,
        workers: args.workers.as_ref(),
        open: args.open,
        verb: format!("run{kind}"),
    };
    let loaded = opened(&what)?;
    match args.live {
        true => here(&what, loaded, args.calibration.as_deref()),
        false => virtually(&what, loaded),
    }
}

/// `dormouse coordinator`: a live run whose workers are elsewhere.
pub(crate) fn coordinator(args: &CoordinatorArgs) -> Result<(), Failure> {
    let verb = "coordinator".to_owned();
    let what = Asked { args: &args.what, workers: args.workers.as_ref(), open: args.open, verb };
    let loaded = opened(&what)?;
    loaded.scheduler()?;
    let header = Header::new(Mode::Live, command(&what), loaded.experiment);
    live(&what, &header, Some(args.listen))
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
    let planned = loaded.planned()?;
    let header = Header::new(Mode::Virtual, command(asked), loaded.experiment);
    let staging = Staging::begin(&folder(args, &header), Replaces::by(&header, args.force))?;
    let say = Say::of(args);
    let count = header.experiment.setup.bag.tasks.len();
    let mut progress = say.progress(count, "tasks");
    let show = |finished| progress.show(finished as u64, count as u64, "", None);
    let results = virtual_results(&header, planned, staging.path(), show);
    progress.finish();
    let wall_s = began.elapsed().as_secs_f64();
    end(say, &Results { wall_s, ..results? }, staging)
}

/// A live run on workers of this host, at a speed-up that it can do.
fn here(asked: &Asked<'_>, mut loaded: Loaded, calibration: Option<&Path>) -> Result<(), Failure> {
    // What is wrong with it is said with its place before anything is made.
    loaded.scheduler()?;
    // Parallel jobs alone run at the speed-up of their experiment.
    let has_bag = loaded.experiment.scheduler.is_some();
    let choice = has_bag.then(|| settle(&mut loaded, calibration)).transpose()?;
    let mut command = command(asked);
    if let (Some(choice), SpeedupSaid::Nobody | SpeedupSaid::Experiment) = (&choice, loaded.speedup)
    {
        let _ = write!(command, " --speedup {}", choice.speedup);
    }
    let header = Header::new(Mode::Live, command, loaded.experiment);
    live(asked, &Header { speedup: choice, ..header }, None)
}

/// A live run, with workers of its own, or listening for some from elsewhere.
fn live(asked: &Asked<'_>, header: &Header, listen: Option<SocketAddr>) -> Result<(), Failure> {
    let (args, experiment) = (asked.args, &header.experiment);
    let jobs = LiveJobs::of(experiment)?;
    let scheduler = experiment.scheduler().map_err(cannot)?;
    let rehearsal = rehearse(experiment, scheduler, &jobs.submissions);
    let (emulated, speedup) = (rehearsal.takes, experiment.live.speedup);
    let takes = Duration { how: rehearsal.how, emulated, speedup };
    let what = if experiment.scheduler.is_some() { "tasks" } else { "jobs" };
    let takes = takes.check(&experiment.name, what, args.allow_long)?;
    if listen.is_none() {
        preflight::check(&experiment.name, experiment.needs_criu())?;
    }
    let staging = Staging::begin_in_place(&folder(args, header), Replaces::by(header, args.force))?;
    conduct_live(header, (rehearsal, jobs), Some(takes), listen, staging, Say::of(args))
}

/// Writes the results and says what came out.
pub(super) fn end(say: Say, results: &Results<'_>, staging: Staging) -> Result<(), Failure> {
    let view = results.view();
    let folder = view.write(staging)?;
    if say.json {
        print(&format!("{:#}", view.summary))?;
    } else if !say.quiet {
        print(&view.to_text(terminal::stdout()))?;
        print(&format!("  {:<13} {}", "results", folder.display()))?;
    }
    match results.broke() {
        None => Ok(()),
        Some(why) => {
            Err(Failure::Broken(format!("the run broke: {why}; see {}", folder.display())))
        }
    }
}

/// The experiment that was asked for, with everything set that was asked for.
fn opened(asked: &Asked<'_>) -> Result<Loaded, Failure> {
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
    let loaded = open(&source)?;
    if !args.quiet {
        loaded.notes.iter().for_each(|note| eprintln!("dormouse: {note}"));
    }
    Ok(loaded)
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
    command_line(&words)
}

/// Where the results of a run go.
fn folder(args: &WhatArgs, header: &Header) -> PathBuf {
    let experiment = &header.experiment;
    let (name, scheduler) = (&experiment.name, experiment.scheduler_name());
    let (seed, mode) =
        (experiment.setup.seed, if header.mode == Mode::Live { "-live" } else { "" });
    let settings = settings_in_a_name(args);
    let name = format!("{name}-{scheduler}-s{seed}{mode}{settings}");
    args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name))
}

/// What was set, as the end of a folder's name: two runs that differ in it have folders of their own.
fn settings_in_a_name(args: &WhatArgs) -> String {
    const LONGEST: usize = 80;
    let files = [&args.job, &args.env, &args.plan].into_iter().flatten();
    let files = files.map(|path| path.to_string_lossy().into_owned());
    let speedup = args.speedup.iter().map(|speedup| format!("speedup={speedup}"));
    let all: Vec<String> = speedup.chain(files).chain(args.set.iter().cloned()).collect();
    let plain = |c: char| if c.is_alphanumeric() || "=.-_".contains(c) { c } else { '_' };
    let name: String = all.iter().map(|set| format!("-{set}")).collect();
    let short: String = name.chars().map(plain).collect();
    if short == name && name.len() <= LONGEST {
        return name;
    }
    let digest = Sha256::digest(all.join("\n"));
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    short.chars().take(LONGEST).chain(['-']).chain(digest.chars()).collect()
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

    /// How far it has come: so many of these.
    pub(super) fn progress(self, count: usize, what: &str) -> Progress {
        Progress::new(self.quiet || self.json, count, what)
    }
}
