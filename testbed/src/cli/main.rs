//! Runs a command line, from its arguments to the exit status.

use std::process::ExitCode;

use clap::FromArgMatches as _;

use super::awaited_run::note_refused_words;
use super::command::{Cli, Command};
use super::grammar::grammar;
use super::{
    advise, calibrate, compare, completion, conduct, doctor, ec2, export, fit, grammar, identity,
    inspect, list, measure, metadata, observe, prices, recorded, reproduce, run, start, sweep,
    usage, watch, worker, workload,
};

/// Runs the command line. Status 0: success; 1: the run failed; 2: bad input; 3: a live run was stopped on request, and
/// can be resumed; 4: a run is over, and some of its tasks failed.
#[must_use]
pub fn main() -> ExitCode {
    completion::answer();
    // Connections, VMs and checkpoints each take some; where it can't be raised, whoever needs more says so.
    let _ = dormouse_coordinator::raise_descriptor_limit();
    let typed: Vec<_> = std::env::args_os().collect();
    if typed.len() < 2 {
        start::show();
        return ExitCode::from(2);
    }
    let words = reproduce::name_first(usage::help_last(typed));
    let read = grammar().try_get_matches_from(&words);
    let cli = match read.and_then(|read| Cli::from_arg_matches(&read)) {
        Ok(cli) => cli,
        Err(error) => {
            let error = usage::explained(error, &words);
            if !error.use_stderr() {
                return usage::print_help(&error);
            }
            note_refused_words(&words, &usage::summarize(&error));
            return usage::report(&error, &words);
        }
    };
    let done = match &cli.command {
        Command::Doctor { json, quick, here } => doctor::run(*json, *quick, *here),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Run(args) => run::run(args),
        Command::Measure(args) => measure::measure(args),
        Command::Ec2(args) => ec2::ec2(args),
        Command::Metadata(args) => metadata::metadata(args),
        Command::Reproduce(what) => reproduce::reproduce(what),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Compare(args) => compare::compare(args),
        Command::Merge(args) => sweep::merge(args),
        Command::Coordinator(args) => run::coordinator(args),
        Command::Identity(args) => identity::identity(args),
        Command::Token(args) => identity::token(args),
        Command::Resume(args) => conduct::resume(args),
        Command::Worker(args) => worker::worker(args),
        Command::Status { at, json } => observe::status(at, *json),
        Command::Events(args) => observe::events(args),
        Command::Submit(args) => observe::submit(args),
        Command::Close { at } => observe::close(at),
        Command::Cancel { at, why } => observe::cancel(at, why.as_deref()),
        Command::Interrupt(args) => watch::interrupt(args),
        Command::Watch(args) => watch::watch(args),
        Command::Explain { of, what } => recorded::explain(of, what),
        Command::Export(args) => export::run(args),
        Command::Check(of) => recorded::check(of),
        Command::Replay(of) => recorded::replay(of),
        Command::Twin(args) => recorded::twin(args),
        Command::Fit(args) => fit::run(args),
        Command::Advise(command) => advise::advise(command),
        Command::Workload(command) => workload::workload(command),
        Command::Prices(command) => prices::prices(command),
        Command::Inspect(args) => inspect::inspect(args),
        Command::List { json } => list::list(*json),
        Command::Show { name, json, inputs } => list::show(name, *json, inputs),
        Command::Reference => list::print_reference(),
        Command::Schema { scheduler } => list::print_schema(*scheduler),
        Command::Completions { shell } => completion::script(*shell),
        Command::Man { dir } => grammar::write_manual(dir),
    };
    #[cfg(feature = "otlp")]
    super::traces::end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
