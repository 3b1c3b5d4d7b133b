//! From arguments to an exit status.

use std::process::ExitCode;

use clap::Parser as _;

use super::args::{Cli, Command};
use super::{
    advise, calibrate, compare, conduct, doctor, export, fit, inspect, list, manual, observe,
    prices, recorded, reproduce, run, sweep, watch, worker, workload,
};

/// Runs the command line. Status 0: a result; 1: something broke; 2: bad input.
#[must_use]
pub fn main() -> ExitCode {
    let done = match &Cli::parse_from(reproduce::name_first(std::env::args_os().collect())).command
    {
        Command::Doctor { json, quick, here } => doctor::run(*json, *quick, *here),
        Command::Calibrate(args) => calibrate::run(args),
        Command::Run(args) => run::run(args),
        Command::Reproduce(what) => reproduce::reproduce(what),
        Command::Sweep(args) => sweep::sweep(args),
        Command::Compare(args) => compare::compare(args),
        Command::Merge(args) => sweep::merge(args),
        Command::Coordinator(args) => run::coordinator(args),
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
        Command::Show { name, json } => list::show(name, *json),
        Command::Reference => list::print_reference(),
        Command::Schema { scheduler } => list::print_schema(*scheduler),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { dir } => manual::pages(dir),
    };
    #[cfg(feature = "otlp")]
    super::traces::end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
