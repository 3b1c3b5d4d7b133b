//! From arguments to an exit status.

use std::process::ExitCode;

use clap::Parser as _;

use super::args::{Cli, Command};
use super::{
    calibrate, check, compare, conduct, doctor, explain, export, list, manual, observe, replay,
    reproduce, run, submit, sweep, twin, worker, workload,
};

/// Runs the command line. Status 0: a result; 1: something broke; 2: bad input.
#[must_use]
pub fn main() -> ExitCode {
    let done = match &Cli::parse().command {
        Command::Doctor { json } => doctor::run(*json),
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
        Command::Submit(args) => submit::submit(args),
        Command::Close { at } => submit::close(at),
        Command::Cancel { at, why } => observe::cancel(at, why.as_deref()),
        Command::Explain { dir, what } => explain::run(dir, what),
        Command::Export(args) => export::run(args),
        Command::Check { dir, json } => check::run(dir, *json),
        Command::Replay { dir, json } => replay::run(dir, *json),
        Command::Twin(args) => twin::run(args),
        Command::Workload(command) => workload::workload(command),
        Command::List { json } => list::list(*json),
        Command::Show { name, json } => list::show(name, *json),
        Command::Reference => list::print_reference(),
        Command::Schema => list::print_schema(),
        Command::Completions { shell } => manual::completions(*shell),
        Command::Man { dir } => manual::pages(dir),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
