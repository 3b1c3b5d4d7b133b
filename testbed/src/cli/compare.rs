//! The command `dormouse compare`.

use clap::Args;

use super::failure::Failure;
use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;
use super::known_name::SCHEDULER;
use super::many::{Common, Shards};
use super::own_args::ProgramArgs;
use super::sample_first::sample;
use super::sampling::open_to_measure;
use super::{engine, experiment_keys, next_steps, terminal};
use dormouse_experiment::Override;
use dormouse_reproduce::compare::SchedulerComparison;
use dormouse_reproduce::measures::ShownFigures;
use dormouse_reproduce::sweep::{FolderSpec, OwnProgram, SharedInputs, SweepFolder, SweepShard};

#[derive(Debug, Args)]
#[command(mut_arg("command", |command| command.index(1)))]
pub(crate) struct CompareArgs {
    /// The schedulers; the others are compared with the first
    #[arg(long, value_name = "LIST", value_delimiter = ',', required_unless_present = "saves", value_parser = SCHEDULER, hide_possible_values = true)]
    schedulers: Vec<String>,
    /// Instead of schedulers, compare what saves the work of tasks when a VM is preempted: criu (checkpoints as the experiment has
    /// them), own (these checkpoints, by the program itself), notice (one checkpoint, at the preemption notice alone), none
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    saves: Vec<String>,
    /// The experiments: TOML files, or names of built-in ones
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true, value_parser = EXPERIMENT, hide_possible_values = true)]
    on: Vec<String>,
    /// Run every scheduler on every experiment under seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    program: ProgramArgs,
}

pub(crate) fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let CompareArgs { schedulers, saves, on, seeds, set, shards, common, .. } = args;
    experiment_keys::check(set)?;
    args.inputs.apply()?;
    // Nothing is made before every experiment is known to be right.
    let shared = SharedInputs::default();
    let own = own_program(&measured_first(args)?)?;
    let comparison = comparison((schedulers, saves), (on, &own), set, &shared)?;
    let spec = FolderSpec::Compare {
        schedulers: schedulers.clone(),
        saves: saves.clone(),
        on: on.clone(),
        set: set.clone(),
        seeds: *seeds,
        own,
        allow_inputs: args.inputs.folders(),
    };
    let out = common.folder_for(&spec, "compare", shards);
    if engine::hand_over(&spec, &out, (shards, common))? {
        return Ok(());
    }
    let mut folder = SweepFolder::open(&out, &spec, shards.force)?;
    run(&comparison, (*seeds, shards.compute()), &shared, &mut folder, common)
}

/// Options of the user's own program, completed by the file of its run times, which are measured now if no run time is
/// given.
fn measured_first(args: &CompareArgs) -> Result<ProgramArgs, Failure> {
    let mut program = args.program.clone();
    if let Some(on) = args.on.first().filter(|_| program.takes_a_run_time(true)) {
        let set = args.set.iter().map(|text| Override::set(text)).collect::<Result<Vec<_>, _>>()?;
        let loaded = open_to_measure(Some(on), set, program.said(true)?)?;
        program.measured = Some(sample(&loaded, &program, args.common.say)?);
    }
    Ok(program)
}

fn own_program(program: &ProgramArgs) -> Result<OwnProgram, Failure> {
    let mut words = Vec::new();
    program.options(&mut words);
    program.last_words(&mut words);
    Ok(OwnProgram::new(&program.said(true)?, program.settings(), words))
}

/// Makes a comparison of schedulers, or of ways to save work under one scheduler.
pub(super) fn comparison(
    (schedulers, saves): (&[String], &[String]),
    on: (&[String], &OwnProgram),
    set: &[String],
    shared: &SharedInputs,
) -> Result<SchedulerComparison, Failure> {
    if saves.is_empty() {
        return Ok(SchedulerComparison::new(on, schedulers, set, shared)?);
    }
    match schedulers {
        [] => Ok(SchedulerComparison::of_saves(on, saves, (None, set), shared)?),
        [one] => Ok(SchedulerComparison::of_saves(on, saves, (Some(one), set), shared)?),
        _ => {
            let why = "one scheduler at a time; name one, or leave it out for the experiment's own";
            Err(Failure::BadInput(format!("--schedulers: with --saves {why}")))
        }
    }
}

/// Makes the runs of a comparison, and prints its results.
pub(super) fn run(
    comparison: &SchedulerComparison,
    (seeds, compute): (u64, Option<SweepShard>),
    shared: &SharedInputs,
    folder: &mut SweepFolder,
    common: &Common,
) -> Result<(), Failure> {
    let cells = &comparison.cells;
    let Some(samples) = common.samples(cells, (seeds, compute), shared, folder)? else {
        return Ok(());
    };
    let exact = comparison.exact(&samples);
    folder.write("table.csv", &exact.to_csv())?;
    folder.write_runs(&comparison.runs(&samples, seeds))?;
    for (n, plot) in comparison.plots(&samples).iter().enumerate() {
        folder.write(&format!("plot-{}.svg", n + 1), &plot.to_svg())?;
    }
    let page = comparison.page(&samples, (seeds, &folder.spec().command()));
    folder.write("report.html", &page.to_html())?;
    folder.settle(cells.iter().map(|cell| (cell as _, 1..=seeds)))?;
    let sentences = comparison.sentences(&samples).into_iter();
    let said: String = sentences.map(|sentence| format!("  {sentence}\n")).collect();
    let table = comparison.table(&samples).to_text(terminal::stdout());
    let table = if said.is_empty() { table } else { format!("{said}\n{table}") };
    let text = with_left_out(table, &comparison.measures(&samples));
    common.report(folder.path(), (text, exact.to_json()))?;
    next_steps::say(common.say, || next_steps::after_cells(cells, folder.spec(), folder.path()));
    Ok(())
}

/// A table for people, with a note below on the columns that it leaves out.
pub(super) fn with_left_out(table: String, measures: &ShownFigures) -> String {
    match measures.left_out() {
        Some(left_out) => format!("{table}\n\n  {left_out}"),
        None => table,
    }
}
