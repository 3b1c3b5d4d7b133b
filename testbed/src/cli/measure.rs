//! The command `dormouse measure`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use dormouse_experiment::{
    CarriedProgram, Experiment, LoadedExperiment, MeasureFile, MeasuredProgram, Override,
    ProgramMeasure, identity_of_program, option,
};
use dormouse_units::Bytes;
use dormouse_view::{TableColumn, TypedTable};

use super::args::Say;
use super::failure::Failure;
use super::input_args::InputArgs;
use super::known_name::EXPERIMENT;
use super::own_args::OwnArgs;
use super::print::show;
use super::sampling::{Prepared, Sampled, of_kinds, of_programs, open_to_measure, write_measures};
use super::{experiment_keys, next_steps, preflight, terminal};

/// Real time from the command to start a program until its first instruction, above which the user is warned.
const LONG_TO_BEGIN: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(mut_arg("json", |json| json.help("Print what was measured as JSON")))]
pub(crate) struct MeasureArgs {
    /// A TOML file, or the name of a built-in experiment
    #[arg(index = 1, required_unless_present = "on", value_parser = EXPERIMENT, hide_possible_values = true)]
    experiment: Option<String>,
    /// The experiment under whose cloud the command is measured, in place of the experiment's tasks
    #[arg(long, value_name = "EXPERIMENT", requires = "command", conflicts_with = "experiment", value_parser = EXPERIMENT, hide_possible_values = true)]
    on: Option<String>,
    /// Set any key of the experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    #[command(flatten)]
    inputs: InputArgs,
    /// Measure every task that differs from the others, and not just one task of each command that ends with status 0
    #[arg(long)]
    all: bool,
    /// Skip the second run of each program, in which CRIU moves it to another VM to find what that changes
    #[arg(long)]
    undisturbed: bool,
    /// File for the measurements
    #[arg(long, value_name = "FILE", default_value = "measured.json")]
    out: PathBuf,
    #[command(flatten)]
    own: OwnArgs,
    #[command(flatten)]
    say: Say,
}

pub(crate) fn measure(args: &MeasureArgs) -> Result<(), Failure> {
    let LoadedExperiment { experiment, sources, .. } = opened(args)?;
    let groups = if args.all { of_programs(&experiment) } else { of_kinds(&experiment) };
    if groups.is_empty() {
        let why = "no task of it runs a program of yours; give [[workload.task]] a command, or one behind --";
        return Err(Failure::BadInput(format!("{}: {why}", experiment.name)));
    }
    let prepared = Prepared::new(&experiment, &sources, groups)?;
    preflight::check(&experiment.name, prepared.needs_criu(), args.say)?;
    let Sampled { measures, failures } = prepared.measured(args.say, !args.undisturbed)?;
    write_measures(&args.out, &measures)?;
    if !args.say.quiet {
        // Text and numbers: this can't fail.
        let json = serde_json::to_value(&measures).unwrap_or_default();
        show(args.say.json, json, || text(&measures, &experiment, &args.out))?;
        if failures.is_empty() {
            next_steps::say(args.say, || next_steps::after_measure(words(args), &args.out));
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(Failure::Broken(failures.join("\n"))),
    }
}

/// The words of a command that runs the measured programs: first the command with its options, then the program.
fn words(args: &MeasureArgs) -> (Vec<String>, Vec<String>) {
    let mut run: Vec<_> = ["dormouse", "run"].map(str::to_owned).into();
    run.extend(args.experiment.clone());
    option(&mut run, "--on", &args.on);
    option(&mut run, "--set", &args.set);
    args.inputs.words(&mut run);
    args.own.options(&mut run);
    let mut program = Vec::new();
    args.own.program.last_words(&mut program);
    (run, program)
}

fn opened(args: &MeasureArgs) -> Result<LoadedExperiment, Failure> {
    experiment_keys::check(&args.set)?;
    args.inputs.apply()?;
    let set = args.set.iter().map(|text| Override::set(text)).collect::<Result<Vec<_>, _>>()?;
    let experiment = args.experiment.as_deref().or(args.on.as_deref());
    Ok(open_to_measure(experiment, set, args.own.said(args.on.is_some())?)?)
}

/// A warning if the inputs of a program take long to reach a host, with that time in emulated time.
fn slow_to_begin(it: &ProgramMeasure, experiment: &Experiment) -> Option<String> {
    let mut programs = experiment.own_programs.values();
    let program = programs.find(|program| identity_of_program(program) == it.program)?;
    let took = Duration::from_micros(it.measured.began_after_us);
    let speedup = experiment.live.speedup;
    let bytes = program.inputs.iter().map(|input| input.bytes).fold(0, u64::saturating_add);
    (took > LONG_TO_BEGIN).then(|| {
        format!(
            "{} began {:.1} s after it was sent: its inputs are {} in {} files. At a speed-up of {speedup} these are {:.0} s \
             of its VM's bill before it runs, once for each host; give it fewer and smaller files, or install them on the hosts",
            it.task,
            took.as_secs_f64(),
            Bytes::new(bytes),
            program.inputs.len(),
            speedup.to_emulated(took).as_secs_f64()
        )
    })
}

/// Sentences on the changes that a move to another VM by CRIU makes to a program.
fn carried_words(measured: &MeasuredProgram) -> Vec<String> {
    let Some(CarriedProgram { changes, failure, other_outputs }) = &measured.carried else {
        return Vec::new();
    };
    let mut said = Vec::new();
    match changes.as_deref() {
        None => {}
        Some([]) => said.push(
            "was moved by CRIU in a second run: nothing that the kernel says of its processes has changed".to_owned(),
        ),
        Some(changes) => {
            said.extend(changes.iter().map(|change| format!("is another after a move by CRIU: {change}")));
        }
    }
    let remedy = "have it save its work itself: saves = \"notice\"";
    match (failure, other_outputs.as_slice()) {
        (Some(why), _) => {
            said.push(format!("does not live through a move by CRIU: {why}; {remedy}"));
        }
        (None, []) if !measured.outputs.is_empty() => {
            said.push("left the same outputs, moved and undisturbed".to_owned());
        }
        (None, []) => {}
        (None, [first, more @ ..]) => {
            let more = match more.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            said.push(format!(
                "left another {first}{more} when it was moved; where two undisturbed runs leave the same, {remedy}"
            ));
        }
    }
    said
}

fn text(measures: &MeasureFile, experiment: &Experiment, out: &Path) -> String {
    let seconds = |us: u64| Duration::from_micros(us).as_secs_f64();
    let speedup = experiment.live.speedup;
    let exit = |it: &&ProgramMeasure| match (it.measured.exit_status, it.measured.signal) {
        (Some(status), _) => status.to_string(),
        (None, signal) => format!("signal {}", signal.unwrap_or_default()),
    };
    let table: TypedTable = TypedTable::with_rows(measures.measures.iter())
        .column(TableColumn::text("task"), |it| it.task.as_str())
        .column(TableColumn::text("exit"), exit)
        .column(TableColumn::number("CPU time, s"), |it| seconds(it.measured.cpu_us))
        .column(TableColumn::number("waited, s"), |it| seconds(it.measured.waited_us))
        .column(TableColumn::number("took, s"), |it| seconds(it.measured.wall_us))
        .column(TableColumn::text("runtime"), |it| it.measured.runtime(speedup).to_string())
        .column(TableColumn::text("memory"), |it| it.measured.memory.to_string())
        .column(TableColumn::text("directory"), |it| it.measured.directory.to_string())
        .into();
    let mut text = table.to_text(terminal::stdout());
    for it in &measures.measures {
        if let Some(what) = slow_to_begin(it, experiment) {
            text.push_str(&format!("\n  {what}"));
        }
        if let Some(why) = &it.measured.not_dumped {
            text.push_str(&format!(
                "\n  {} can't be checkpointed by CRIU: {why}; have it save its work itself: saves = \"notice\"",
                it.task
            ));
        }
    }
    for it in &measures.measures {
        for said in carried_words(&it.measured) {
            text.push_str(&format!("\n  {} {said}", it.task));
        }
    }
    format!(
        "{text}\n\n  runtime = \"measured\" reads it: measured = \"{}\" under [workload], or --measured",
        out.display()
    )
}
