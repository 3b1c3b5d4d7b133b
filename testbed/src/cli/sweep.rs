//! `dormouse sweep` and `dormouse merge`.

use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;
use super::many::{Common, Shards};
use super::{compare, engine, experiment_keys, next_steps, reproduction, run_folders, terminal};
use dormouse_experiment::allow_inputs;
use dormouse_reproduce::sweep::{
    FolderSpec, ParameterSweep, SharedInputs, SweepFolder, SweepShard,
};

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// A TOML file, or the name of a built-in experiment
    #[arg(value_parser = EXPERIMENT, hide_possible_values = true)]
    experiment: String,
    /// Set a key by its path; one or more may have lists of values, such as scheduler.alpha=0.1,0.3,0.5
    /// or scheduler.name=easy,measy: each value of the one is run with each of the others
    #[arg(long, value_name = "KEY=VALUES", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Run every value under seeds 1 to N; the values of seed are seeds themselves [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The folders of all shards
    #[arg(required = true)]
    parts: Vec<PathBuf>,
    /// Replace the results of another command in the folder; runs that both commands need are kept
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn sweep(args: &SweepArgs) -> Result<(), Failure> {
    experiment_keys::check(&args.set)?;
    args.inputs.apply()?;
    // Nothing is made before the experiment is known to be right.
    let shared = SharedInputs::default();
    let sweep = ParameterSweep::new(&args.experiment, &args.set, args.seeds, &shared)?;
    let seeds = args.seeds.unwrap_or(10);
    let (experiment, set) = (args.experiment.clone(), args.set.clone());
    let spec = FolderSpec::Sweep { experiment, set, seeds, allow_inputs: args.inputs.folders() };
    let name = format!("sweep-{}", args.experiment.replace(['/', '\\'], "-"));
    let out = args.common.folder_for(&spec, &name, &args.shards);
    if engine::hand_over(&spec, &out, (&args.shards, &args.common))? {
        return Ok(());
    }
    let mut folder = SweepFolder::open(&out, &spec, args.shards.force)?;
    run(&sweep, (seeds, args.shards.compute()), &shared, &mut folder, &args.common)
}

pub(crate) fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let (common, parts) = (&args.common, &args.parts);
    parts.iter().try_for_each(|part| run_folders::check_part(part))?;
    let out = common.out.clone().unwrap_or_else(|| PathBuf::from("runs/merged"));
    let shared = SharedInputs::default();
    let spec = FolderSpec::of_parts(parts)?;
    let allowed: Vec<_> = spec.allow_inputs().iter().map(PathBuf::from).collect();
    allow_inputs(&allowed)?;
    match &spec {
        FolderSpec::Reproduce(_) => reproduction::merge(parts, (&out, args.force), common),
        FolderSpec::Compare { schedulers, saves, on, set, seeds, own, .. } => {
            let comparison = compare::comparison((schedulers, saves), (on, own), set, &shared)?;
            let mut folder = SweepFolder::merge(&out, parts, args.force)?;
            compare::run(&comparison, (*seeds, None), &shared, &mut folder, common)
        }
        FolderSpec::Sweep { experiment, set, seeds, .. } => {
            let sweep = ParameterSweep::new(experiment, set, None, &shared)?;
            let mut folder = SweepFolder::merge(&out, parts, args.force)?;
            run(&sweep, (*seeds, None), &shared, &mut folder, common)
        }
    }
}

fn run(
    sweep: &ParameterSweep,
    (seeds, compute): (u64, Option<SweepShard>),
    shared: &SharedInputs,
    folder: &mut SweepFolder,
    common: &Common,
) -> Result<(), Failure> {
    let Some(samples) = common.samples(&sweep.cells, (seeds, compute), shared, folder)? else {
        return Ok(());
    };
    folder.write("table.csv", &sweep.csv(&samples))?;
    folder.write_runs(&sweep.runs(&samples, seeds))?;
    folder.write("plot.svg", &sweep.plot(&samples).to_svg())?;
    let page = sweep.page(&samples, &folder.spec().command());
    folder.write("report.html", &page.to_html())?;
    folder.settle(sweep.cells.iter().map(|cell| (cell as _, 1..=seeds)))?;
    let table = sweep.table(&samples).to_text(terminal::stdout());
    let text = compare::with_left_out(table, &ParameterSweep::measures(&samples));
    common.report(folder.path(), (text, sweep.exact(&samples).to_json()))?;
    next_steps::say(common.say, || {
        next_steps::after_cells(&sweep.cells, folder.spec(), folder.path())
    });
    Ok(())
}
