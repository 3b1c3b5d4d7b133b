//! The command `dormouse run`.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dormouse_analysis::RunMode;
use dormouse_coordinator::admission;
use dormouse_host::calibration::SpeedupSaid;
use sha2::{Digest as _, Sha256};

use super::args::{CoordinatorArgs, LiveArgs, RunArgs, Say, WhatArgs};
use super::awaited_run::{note_end, remove_notes};
use super::begun::Begun;
use super::conduct::{conduct_live, go_on_live};
use super::failure::Failure;
use super::own_args::OwnArgs;
use super::preflight::Rehearsed;
use super::print::{print, show};
use super::progress::counted;
use super::sample_first::sample;
use super::sampling::open_to_measure;
use super::share::{paced_elsewhere, paced_here};
use super::speedup::settle;
use super::{experiment_keys, next_steps, preflight, terminal};
use crate::live::Page;
use crate::said;
use dormouse_experiment::{
    ExperimentSource, LoadedExperiment, Override, OwnSaid, Planned, Sources, open,
};
use dormouse_experiment::{command_line, option};
use dormouse_report::jobs::JobsError;
use dormouse_report::output::{LogHeader, ReplacedContent, StagedFolder};
use dormouse_report::results::{resumed_results, virtual_results};
use dormouse_report::run_view::RunResults;

pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let verb = if args.is_live { "run --live" } else { "run" };
    let page = args.page.page();
    args.what.inputs.apply()?;
    let asked = RunRequest {
        args: &args.what,
        live: &args.live,
        page,
        verb,
        own: Some((&args.on, &args.own)),
    };
    let own = measured_first(&asked, args.is_live, &args.own)?;
    let asked = RunRequest { own: Some((&args.on, &own)), ..asked };
    let loaded = opened(&asked)?;
    match args.is_live {
        true => here(&asked, paced_here(loaded, args.what.say)?, args.calibration.as_deref()),
        false => virtually(&asked, loaded),
    }
}

/// Options of the user's own program, completed by the file of its run time if only the run time is missing: the
/// program is measured before the run.
fn measured_first(
    asked: &RunRequest<'_>,
    is_live: bool,
    own: &OwnArgs,
) -> Result<OwnArgs, Failure> {
    let on = asked.own.and_then(|(on, _)| on.as_deref());
    if !own.program.takes_a_run_time(on.is_some()) {
        return Ok(own.clone());
    }
    let first = open_without_notes(asked);
    let lacks = first.as_ref().is_ok_and(|it| it.experiment.unknown_runtime().is_some());
    match first {
        // Its schedulers do without, and so do its checkpoints.
        Ok(_) if is_live || !lacks => return Ok(own.clone()),
        Ok(_) => {}
        Err(refused) => {
            let mut given = own.clone();
            given.program.runtime = Some("10m".to_owned());
            let given = RunRequest { own: asked.own.map(|(on, _)| (on, &given)), ..*asked };
            if open_without_notes(&given).is_err() {
                return Err(refused);
            }
        }
    }
    let (overrides, own_said) = said_of(asked)?;
    let experiment = asked.args.experiment.as_deref().or(on);
    let loaded = open_to_measure(experiment, overrides, own_said)?;
    let mut own = own.clone();
    own.program.measured = Some(sample(&loaded, &own.program, asked.args.say)?);
    Ok(own)
}

/// Runs `dormouse coordinator`: a live run whose workers run on other hosts. With `--resume` and a named folder for the results, it
/// leaves a note beside that folder if it refuses the run, or once the run is over, for workers that wait for the run.
pub(crate) fn coordinator(args: &CoordinatorArgs) -> Result<(), Failure> {
    let run = args.what.out.as_deref();
    run.iter().for_each(|run| remove_notes(run));
    let done = coordinated(args);
    run.filter(|_| args.resume).iter().for_each(|run| note_end(run, &done));
    done
}

fn coordinated(args: &CoordinatorArgs) -> Result<(), Failure> {
    let page = args.page.page();
    args.what.inputs.apply()?;
    let asked =
        RunRequest { args: &args.what, live: &args.live, page, verb: "coordinator", own: None };
    let loaded = paced_elsewhere(opened(&asked)?, args.what.say)?;
    loaded.scheduler()?;
    let sources = loaded.sources;
    let header = LogHeader::new(RunMode::Live, command(&asked), loaded.experiment);
    if args.resume {
        let folder = folder(&asked, &header);
        match Begun::read(&folder, &header)? {
            Begun::Not => {}
            Begun::GoesOn(header) => {
                let run = (&*header, folder.as_path());
                return go_on_live(run, (Some(args.listen), page), args.what.say);
            }
            Begun::Over(said) => {
                return if args.what.say.quiet { Ok(()) } else { print(&said) };
            }
        }
    }
    live(&asked, (&header, sources), Some(args.listen))
}

/// A run as a command requests it.
#[derive(Clone, Copy)]
struct RunRequest<'a> {
    args: &'a WhatArgs,
    live: &'a LiveArgs,
    /// The page on which the run is served; `None`: no page is served.
    page: Option<Page>,
    /// The command as it is typed after `dormouse`.
    verb: &'static str,
    /// The experiment under which a program of the user's own runs, and that program.
    own: Option<(&'a Option<String>, &'a OwnArgs)>,
}

impl RunRequest<'_> {
    /// The options that set one key each: the option, the key, whether the value is a text, and the value.
    fn settings(&self) -> impl Iterator<Item = (&'static str, &'static str, bool, String)> {
        let (args, workers) = (self.args, &self.live.workers);
        let path = |path: &Option<PathBuf>| Some(path.as_ref()?.to_string_lossy().into_owned());
        let all = [
            ("--seed", "seed", false, args.seed.clone()),
            ("--scheduler", "scheduler.name", true, args.scheduler.clone()),
            ("--speedup", "live.speedup", false, args.speedup.clone()),
            ("--workers", "live.workers", false, workers.clone()),
            ("--job", "workload.job", true, path(&args.job)),
            ("--env", "workload.env", true, path(&args.env)),
        ];
        all.into_iter().filter_map(|(name, key, is_text, set)| Some((name, key, is_text, set?)))
    }
}

fn virtually(asked: &RunRequest<'_>, loaded: LoadedExperiment) -> Result<(), Failure> {
    let (args, began) = (asked.args, Instant::now());
    if let Some(why) = loaded.experiment.unknown_runtime() {
        return Err(Failure::BadInput(format!("{}: {why}", loaded.experiment.name)));
    }
    let planned = loaded.planned()?;
    if args.speedup.is_some() && !args.say.quiet {
        let note =
            "--speedup is of live runs: this one is in virtual time, which waits for nothing";
        said::note(note);
    }
    let header = LogHeader::new(RunMode::Virtual, command(asked), loaded.experiment);
    let (folder, replaces) = (folder(asked, &header), ReplacedContent::by(&header, args.force));
    let say = args.say;
    if header.experiment.has_programs() {
        return with_programs(
            &header,
            planned,
            StagedFolder::begin_in_place(&folder, replaces)?,
            say,
        );
    }
    let staging = StagedFolder::begin(&folder, replaces)?;
    let count = header.experiment.setup.bag.tasks.len();
    let mut progress = say.progress(count, counted(&header.experiment));
    let show = |finished| progress.show(finished as u64, count as u64, "", None);
    let results = virtual_results(&header, planned, staging.path(), show);
    drop(progress);
    let wall_s = began.elapsed().as_secs_f64();
    end(say, &RunResults { wall_s, ..results? }, staging)
}

/// Makes a run in virtual time whose scheduler is a program. The program's decisions can't be derived again, so the log
/// is written during the run, from which the run can be continued.
fn with_programs(
    header: &LogHeader,
    planned: Planned,
    staging: StagedFolder,
    say: Say,
) -> Result<(), Failure> {
    resumable(header, staging, say, |folder, show| virtual_results(header, planned, folder, show))
}

/// Resumes a run in virtual time that was interrupted.
pub(super) fn resume_virtually(header: &LogHeader, dir: &Path, say: Say) -> Result<(), Failure> {
    let planned = header.experiment.planned()?;
    resumable(header, StagedFolder::go_on(dir)?, say, |folder, show| {
        resumed_results(header, planned, folder, show)
    })
}

fn resumable<'a>(
    header: &'a LogHeader,
    mut staging: StagedFolder,
    say: Say,
    make: impl FnOnce(&Path, &mut dyn FnMut(usize)) -> Result<RunResults<'a>, JobsError>,
) -> Result<(), Failure> {
    let began = Instant::now();
    let count = header.experiment.setup.bag.tasks.len();
    let mut progress = say.progress(count, counted(&header.experiment));
    let mut show = |finished| progress.show(finished as u64, count as u64, "", None);
    let made = make(staging.path(), &mut show);
    drop(progress);
    match made {
        Ok(results) => {
            let wall_s = began.elapsed().as_secs_f64();
            end(say, &RunResults { wall_s, ..results }, staging)
        }
        Err(JobsError::Scheduler(why)) => {
            staging.settle();
            let resume = command_line(["dormouse", "resume", &staging.path().to_string_lossy()]);
            Err(Failure::Broken(format!("{why}; `{resume}` continues the run")))
        }
        Err(error) => Err(error.into()),
    }
}

/// Conducts a live run on workers of this host, at a speed-up at which the host can emulate exactly.
fn here(
    asked: &RunRequest<'_>,
    mut loaded: LoadedExperiment,
    calibration: Option<&Path>,
) -> Result<(), Failure> {
    // What is wrong with it is said with its place before anything is made.
    loaded.scheduler()?;
    // Parallel jobs alone run at the speed-up of their experiment, and so do programs of the user's own: at another
    // one they take another time.
    let has_bag = loaded.experiment.scheduler.is_some();
    let is_chosen = has_bag && loaded.experiment.own_programs.is_empty();
    let choice = is_chosen.then(|| settle(&mut loaded, calibration)).transpose()?;
    let mut command = command(asked);
    if let (Some(choice), SpeedupSaid::Nobody | SpeedupSaid::Experiment) = (&choice, loaded.speedup)
    {
        let _ = write!(command, " --speedup {}", choice.speedup);
    }
    let sources = loaded.sources;
    let header = LogHeader::new(RunMode::Live, command, loaded.experiment);
    live(asked, (&LogHeader { speedup: choice, ..header }, sources), None)
}

/// Makes a live run, with workers of its own, or listening for workers from elsewhere.
fn live(
    asked: &RunRequest<'_>,
    (header, sources): (&LogHeader, Sources),
    listen: Option<SocketAddr>,
) -> Result<(), Failure> {
    let (args, experiment) = (asked.args, &header.experiment);
    let rehearsed = Rehearsed { sources, ..Rehearsed::rehearse(experiment)? };
    let (how, emulated) = (rehearsed.rehearsal.how, rehearsed.rehearsal.takes);
    let what = if experiment.scheduler.is_some() { "tasks" } else { "jobs" };
    let takes = (how, emulated, experiment.live.speedup);
    let takes = admission::describe_duration(takes, what, args.allow_long)
        .map_err(|why| Failure::BadInput(format!("{}: {why}", experiment.name)))?;
    if listen.is_none() {
        preflight::check(&experiment.name, experiment.needs_criu(), args.say)?;
    }
    let staging = StagedFolder::begin_in_place(
        &folder(asked, header),
        ReplacedContent::by(header, args.force),
    )?;
    conduct_live(header, rehearsed, Some(takes), (listen, asked.page), staging, args.say)
}

/// Writes the results and prints the summary.
pub(super) fn end(
    say: Say,
    results: &RunResults<'_>,
    staging: StagedFolder,
) -> Result<(), Failure> {
    let view = results.view();
    let folder = view.write(staging)?;
    if !say.quiet {
        show(say.json, &view.summary, || {
            let text = view.to_text(terminal::stdout());
            format!("{text}\n  {:<13} {}", "results", folder.display())
        })?;
    }
    next_steps::say(say, || next_steps::after_run(results, &folder));
    let (outcomes, folder) = (results.outcomes(), folder.display());
    match results.broke() {
        Some(why) => Err(Failure::Broken(format!(
            "the run ended before its work was done: {why}; see {folder}"
        ))),
        None if outcomes.program_failed > 0 => {
            let given_up = outcomes.given_up_in_brackets();
            let failed =
                format!("{} of {} tasks failed{given_up}", outcomes.failed(), outcomes.total);
            let see = "see exit in tasks.csv, and stderr in tasks/, of";
            Err(Failure::TasksFailed(format!("{failed}; {see} {folder}")))
        }
        None => Ok(()),
    }
}

/// Loads the requested experiment with all requested settings, and prints its notes.
fn opened(asked: &RunRequest<'_>) -> Result<LoadedExperiment, Failure> {
    let loaded = open_without_notes(asked)?;
    if !asked.args.say.quiet {
        loaded.notes.iter().for_each(|note| said::note(note));
    }
    Ok(loaded)
}

/// Loads the requested experiment with all requested settings, without printing notes.
fn open_without_notes(asked: &RunRequest<'_>) -> Result<LoadedExperiment, Failure> {
    let args = asked.args;
    let (mut overrides, own) = said_of(asked)?;
    overrides.extend(asked.own.and_then(|(_, own)| own.program.settings()));
    let on = asked.own.and_then(|(on, _)| on.as_deref());
    let source = ExperimentSource {
        experiment: args.experiment.as_deref().or(on),
        overrides,
        plan: args.plan.as_deref(),
        replaces_workload: args.job.is_some(),
        own,
        is_unmeasured: false,
    };
    Ok(open(&source)?)
}

/// All overrides that the user gave, and the user's own program from the command line.
fn said_of(asked: &RunRequest<'_>) -> Result<(Vec<Override>, OwnSaid), Failure> {
    let args = asked.args;
    experiment_keys::check(&args.set)?;
    let value = |option, path: &str, value| Override { option, path: path.to_owned(), value };
    let mut overrides: Vec<_> = asked
        .settings()
        .map(|(option, key, is_text, set)| match is_text {
            true => Override::text(option, key, &set),
            false => value(option, key, set),
        })
        .collect();
    overrides.extend(asked.live.open.then(|| value("--open", "live.open", "true".to_owned())));
    for text in &args.set {
        overrides.push(Override::set(text)?);
    }
    let own = asked.own.map(|(on, own)| own.said(on.is_some())).transpose()?;
    Ok((overrides, own.unwrap_or_default()))
}

/// The command that repeats this run, in any folder.
fn command(asked: &RunRequest<'_>) -> String {
    let args = asked.args;
    let words = ["dormouse"].into_iter().chain(asked.verb.split(' '));
    let mut words: Vec<_> = words.map(str::to_owned).chain(args.experiment.clone()).collect();
    words.extend(asked.settings().flat_map(|(name, _, _, set)| [name.to_owned(), set]));
    option(&mut words, "--plan", args.plan.as_ref().map(|file| file.display()));
    option(&mut words, "--set", &args.set);
    args.inputs.words(&mut words);
    words.extend(asked.live.open.then(|| "--open".to_owned()));
    words.extend(args.allow_long.then(|| "--allow-long".to_owned()));
    if let Some((on, own)) = asked.own {
        option(&mut words, "--on", on);
        own.options(&mut words);
        own.program.last_words(&mut words);
    }
    command_line(&words)
}

/// The folder for the results of a run.
fn folder(asked: &RunRequest<'_>, header: &LogHeader) -> PathBuf {
    let args = asked.args;
    let experiment = &header.experiment;
    let (name, scheduler) = (&experiment.name, experiment.scheduler_name());
    let seed = experiment.setup.seed;
    let mode = if header.mode == RunMode::Live { "-live" } else { "" };
    let settings = settings_in_a_name(asked);
    let name = format!("{name}-{scheduler}-s{seed}{mode}{settings}");
    args.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name))
}

/// The options that were set, as the end of a folder's name, so that runs with different options have different
/// folders.
fn settings_in_a_name(asked: &RunRequest<'_>) -> String {
    let args = asked.args;
    const LONGEST: usize = 80;
    let files = [&args.job, &args.env, &args.plan].into_iter().flatten();
    let files = files.map(|path| path.to_string_lossy().into_owned());
    let speedup = args.speedup.iter().map(|speedup| format!("speedup={speedup}"));
    let all: Vec<String> = speedup.chain(files).chain(args.set.iter().cloned()).collect();
    let plain = |c: char| if c.is_alphanumeric() || "=.-_".contains(c) { c } else { '_' };
    let name: String = all.iter().map(|set| format!("-{set}")).collect();
    let mut short: String = name.chars().map(plain).collect();
    let mut said = all;
    // Of a program of the user's own its name and a digest of all that is said of it.
    if let Some((_, own)) = asked.own.filter(|(_, own)| !own.program.command.is_empty()) {
        own.options(&mut said);
        own.program.last_words(&mut said);
        let program = own.program.command.first().and_then(|word| Path::new(word).file_name());
        let program = program.unwrap_or_default().to_string_lossy();
        short.extend(['-'].into_iter().chain(program.chars().map(plain)));
    } else if short == name && name.len() <= LONGEST {
        return name;
    }
    let digest = Sha256::digest(said.join("\n"));
    let digest: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    short.chars().take(LONGEST).chain(['-']).chain(digest.chars()).collect()
}
