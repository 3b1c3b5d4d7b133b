//! `dormouse reproduce`, `dormouse sweep` and `dormouse merge`.

use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::failure::Failure;
use super::measy::{self, MeasyArgs};
use super::print::print;
use crate::output::Style;
use crate::reproduce::burst_hads::{MakeLive, Request, stored_plans};
use crate::sweep::{
    AnySweep, Folder, Plans, Reported, Seeded, Shard, Spec, Sweep, SweepError, Swept, Work,
    sweep_cells,
};

/// What all of them take.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Where the results go; a killed command goes on from there
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Threads [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// burst-hads, burst-hads/table-4, burst-hads/table-6, burst-hads/plans (with --data), measy,
    /// measy/figure-6 to figure-14; as root, on this host: measy/two-tier, which measures, and
    /// measy/live, the schedulers on real processors
    pub(super) paper: String,
    /// Of burst-hads: run every cell under seeds 1 to N [default: 30]; of measy/two-tier: draw so
    /// many pairs of jobs [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) seeds: Option<u64>,
    /// Of burst-hads: whose rules where text and authors' code differ, paper or artifact
    /// [default: paper]
    #[arg(long)]
    preset: Option<String>,
    /// Of burst-hads: what k_h and k_r of Table V count: the events of each spot type, or of the
    /// whole market; emulated: of each type, but half as often, fitted to Table VI's counts
    /// [default: type]
    #[arg(long, value_name = "type|market|emulated")]
    events: Option<String>,
    /// Of burst-hads: set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Of burst-hads: seeds of each experiment that looks for the cause of a difference; 0: look
    /// for none [default: 10]
    #[arg(long, value_name = "N")]
    cause_seeds: Option<u64>,
    /// Make part I of N only; `dormouse merge` joins the parts
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
    /// Of burst-hads: folders of finished live runs, to be drawn beside
    #[arg(long, value_name = "DIR", num_args = 1..)]
    live_runs: Vec<PathBuf>,
    /// Of burst-hads: make N live runs of j60 and of j60-sc2, one after the other, to be drawn beside; needs root
    #[arg(long, value_name = "N", conflicts_with = "shard", value_parser = clap::value_parser!(u64).range(1..=1000))]
    live: Option<u64>,
    /// Of burst-hads/plans: the folder of the artifact's inputs
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Replace the results of another command in the folder; what both need is kept
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) measy: MeasyArgs,
    #[command(flatten)]
    pub(super) common: Common,
}

impl ReproduceArgs {
    /// The first of the options given that many runs in virtual time have and a measurement has not.
    pub(super) fn of_virtual_runs(&self) -> Option<&'static str> {
        [("--shard", self.shard.is_some()), ("--force", self.force)]
            .into_iter()
            .find_map(|(option, given)| given.then_some(option))
    }

    /// The first of the options given that only Burst-HADS has, and with `--seeds` others that
    /// have seeds.
    pub(super) fn of_burst_hads(&self, has_seeds: bool) -> Option<&'static str> {
        [
            ("--seeds", self.seeds.is_some() && !has_seeds),
            ("--preset", self.preset.is_some()),
            ("--events", self.events.is_some()),
            ("--set", !self.set.is_empty()),
            ("--cause-seeds", self.cause_seeds.is_some()),
            ("--live-runs", !self.live_runs.is_empty()),
            ("--live", self.live.is_some()),
            ("--data", self.data.is_some()),
        ]
        .into_iter()
        .find_map(|(option, given)| given.then_some(option))
    }
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// A TOML file, or the name of a built-in experiment
    experiment: String,
    /// Set a key by its path; one or more have lists of values, such as scheduler.alpha=0.1,0.3,0.5 or
    /// scheduler.name=easy,measy: each value of the one is run with each of the others
    #[arg(long, value_name = "KEY=VALUES", allow_hyphen_values = true, required = true)]
    set: Vec<String>,
    /// Run every value under seeds 1 to N; the values of seed are seeds themselves [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Make part I of N only; `dormouse merge` joins the parts
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Replace the results of another command in the folder; what both need is kept
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The folders of all shards
    #[arg(required = true)]
    parts: Vec<PathBuf>,
    /// Replace the results of another command in the folder; what both need is kept
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: Common,
}

impl Common {
    pub(super) fn threads(&self) -> usize {
        self.threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            usize::from,
        )
    }
}

pub(crate) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    if args.paper.split('/').next() == Some("measy") {
        return measy::reproduce(args);
    }
    if let Some(option) = args.measy.given() {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
    }
    if args.paper == PLANS {
        return plans(args);
    }
    let or = |given: &Option<String>, standard: &str| given.as_deref().unwrap_or(standard).into();
    let spec = Spec::Reproduce {
        what: args.paper.clone(),
        preset: or(&args.preset, "paper"),
        seeds: args.seeds.unwrap_or(30),
        cause_seeds: args.cause_seeds.unwrap_or(10),
        events: or(&args.events, "type"),
        set: args.set.clone(),
    };
    let name = format!("reproduce-{}", args.paper.replace('/', "-"));
    let out = folder(&args.common, &name, args.shard);
    let request = Request {
        threads: args.common.threads(),
        compute: Some(args.shard.unwrap_or(Shard::ALL)),
        live: args.live_runs.clone(),
        make_live: args.live.map(make_live).transpose()?,
        force: args.force,
    };
    let mut bar = Bar::new(args.common.quiet);
    let done = request.run(&spec, &out, &mut |stage, n, of| bar.show(stage, n, of));
    bar.finish();
    report(&args.common, &out, done?.map(|done| done.table(Style::of_stdout())))
}

const PLANS: &str = "burst-hads/plans";

/// The stored plans beside ours.
fn plans(args: &ReproduceArgs) -> Result<(), Failure> {
    let need = "burst-hads/plans needs --data DIR, the folder of the artifact's inputs (folders \
                with job.json, env.json and map….json)";
    let data = args.data.as_ref().ok_or_else(|| Failure::BadInput(need.to_owned()))?;
    let plans = stored_plans(data, &args.set)?;
    let out = folder(&args.common, "reproduce-burst-hads-plans", None);
    let refused = |error| Failure::Broken(format!("cannot write {}: {error}", out.display()));
    std::fs::create_dir_all(&out).map_err(refused)?;
    std::fs::write(out.join("table.csv"), plans.csv()).map_err(refused)?;
    report(&args.common, &out, Some(plans.table(Style::of_stdout())))
}

fn make_live(seeds: u64) -> Result<MakeLive, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::Broken(format!("cannot find this program to run it live: {error}"))
    })?;
    Ok(MakeLive { seeds, program })
}

pub(crate) fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    // Nothing is made before the experiment is known to be right.
    let sweep = sweep_cells(&args.experiment, &args.set, args.seeds)?;
    let seeds = args.seeds.unwrap_or(10);
    let spec = Spec::Sweep { experiment: args.experiment.clone(), set: args.set.clone(), seeds };
    let name = args.experiment.replace(['/', '\\'], "-");
    let out = folder(&args.common, &format!("sweep-{name}"), args.shard);
    let compute = Some(args.shard.unwrap_or(Shard::ALL));
    let table = match &sweep {
        AnySweep::Bags(sweep) => run_sweep(
            &args.common,
            sweep,
            seeds,
            compute,
            &mut Folder::open(&out, &spec, args.force)?,
        ),
        AnySweep::Jobs(sweep) => run_sweep(
            &args.common,
            sweep,
            seeds,
            compute,
            &mut Folder::open(&out, &spec, args.force)?,
        ),
    }?;
    report(&args.common, &out, table)
}

pub(crate) fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let (common, parts) = (&args.common, &args.parts);
    let out = common.out.clone().unwrap_or_else(|| PathBuf::from("runs/merged"));
    let spec = Spec::of_parts(parts)?;
    let table = match &spec {
        Spec::Reproduce { .. } => {
            let (mut folder, _) = Folder::merge(&out, parts, args.force)?;
            let request = Request { compute: None, ..Request::new(common.threads()) };
            let mut bar = Bar::new(common.quiet);
            let done =
                request.run_in(&spec, &mut folder, &mut |stage, n, of| bar.show(stage, n, of));
            bar.finish();
            done?.map(|done| done.table(Style::of_stdout()))
        }
        Spec::ReproduceMeasy { .. } => {
            measy::evaluated(common, &spec, &mut Folder::merge(&out, parts, args.force)?.0, None)?
        }
        Spec::Sweep { experiment, set, seeds } => match &sweep_cells(experiment, set, None)? {
            AnySweep::Bags(sweep) => run_sweep(
                common,
                sweep,
                *seeds,
                None,
                &mut Folder::merge(&out, parts, args.force)?.0,
            )?,
            AnySweep::Jobs(sweep) => run_sweep(
                common,
                sweep,
                *seeds,
                None,
                &mut Folder::merge(&out, parts, args.force)?.0,
            )?,
        },
    };
    report(common, &out, table)
}

fn run_sweep<C: Seeded>(
    common: &Common,
    sweep: &Sweep<C>,
    seeds: u64,
    compute: Option<Shard>,
    folder: &mut Folder<C::Sample>,
) -> Result<Option<String>, Failure>
where
    C::Sample: Reported,
{
    let plans = Plans::default();
    let work = Work { seeds, threads: common.threads(), compute, plans: &plans };
    let mut bar = Bar::new(common.quiet);
    let samples = work.run(&sweep.cells, folder, &mut |n, of| bar.show("runs", n, of));
    bar.finish();
    let samples = samples?;
    if compute.is_some_and(Shard::is_part) {
        return Ok(None);
    }
    let swept = Swept { sweep, samples: &samples };
    folder.write("table.csv", &swept.csv())?;
    folder.write("plot.svg", &swept.plot())?;
    let cells = &sweep.cells;
    folder.settle(cells.iter().flat_map(|cell| cell.seeds(seeds).map(move |seed| (cell, seed))))?;
    Ok(Some(swept.table()))
}

/// Where the results go.
pub(super) fn folder(common: &Common, name: &str, shard: Option<Shard>) -> PathBuf {
    common.out.clone().unwrap_or_else(|| {
        let part = shard.map(|s| format!("-{}", s.to_string().replace('/', "-of-")));
        PathBuf::from("runs").join(format!("{name}{}", part.unwrap_or_default()))
    })
}

pub(super) fn report(common: &Common, out: &Path, table: Option<String>) -> Result<(), Failure> {
    if common.quiet {
        return Ok(());
    }
    let table =
        table.unwrap_or_else(|| "  this part is made; join the parts with merge".to_owned());
    print(&table)?;
    print(&format!("\n  results in {}", out.display()))
}

/// Progress on standard error, where that is a terminal.
pub(super) struct Bar {
    bar: ProgressBar,
    quiet: bool,
    stage: String,
}

impl Bar {
    pub(super) fn new(quiet: bool) -> Self {
        Self { bar: ProgressBar::hidden(), quiet, stage: String::new() }
    }

    pub(super) fn show(&mut self, stage: &str, n: usize, of: usize) {
        if self.quiet {
            return;
        }
        if self.stage != stage {
            self.bar.finish_and_clear();
            stage.clone_into(&mut self.stage);
            let style = ProgressStyle::with_template("{msg:>8} {wide_bar} {pos}/{len} {eta} left");
            self.bar = ProgressBar::new(of as u64).with_message(stage.to_owned());
            if let Ok(style) = style {
                self.bar.set_style(style);
            }
        }
        self.bar.set_position(n as u64);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(inner) = source {
            text += &format!(": {inner}");
            source = inner.source();
        }
        if error.is_bad_input() { Self::BadInput(text) } else { Self::Broken(text) }
    }
}
