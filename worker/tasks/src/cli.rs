//! The command line of `dormouse-task`.
//!
//! ```text
//! dormouse-task KIND [--class C] [--id N] [--memory SIZE]
//!               [--processes N] [--phases N] [--usage U,...] [--speed S] [--seed N]
//!               [--work N | --cpu-time DURATION] [--progress FILE] [--result FILE]
//! ```
//!
//! Exit status: 0 verified, 1 not verified, 2 bad usage, 3 no reference for this input,
//! 4 a file cannot be written, 5 a process of a parallel job is lost, 143 ended by SIGTERM (also as PID 1 of a PID namespace, where
//! the kernel would drop a signal without a handler).

pub(crate) mod arguments;
mod report;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use self::arguments::CommandRequest;
pub use self::arguments::{RemoteArgumentsError, check_remote};
use crate::cell_init;
use crate::probe;
use crate::run::ComputationError;
use crate::supervisor;

const NOT_VERIFIED: u8 = 1;
const BAD_USAGE: u8 = 2;
const NO_REFERENCE: u8 = 3;
const NO_FILE: u8 = 4;
/// Exit status of the parent of a parallel job of which a process was lost.
pub const NO_TEAM: u8 = 5;

/// Exit status of a supervisor that can't start its program, as shells use it.
const NOT_STARTED: u8 = 127;

/// Runs the program `dormouse-task`, with its arguments (without its name); returns its exit status.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter().peekable();
    if arguments.next_if(|kind| kind == probe::KIND).is_some() {
        return match probe::run(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error @ probe::ProbeError::Usage) => fail_with(&error, BAD_USAGE),
            Err(error) => fail_with(&error, NOT_VERIFIED),
        };
    }
    if arguments.next_if(|kind| kind == cell_init::KIND).is_some() {
        return match cell_init::run(arguments) {
            Ok(status) => ExitCode::from(status),
            Err(error @ cell_init::CellError::Usage) => fail_with(&error, BAD_USAGE),
            Err(error) => fail_with(&error, NOT_STARTED),
        };
    }
    if arguments.next_if(|kind| kind == supervisor::KIND).is_some() {
        return match supervisor::run(arguments) {
            Ok(status) => ExitCode::from(status),
            Err(error @ supervisor::SupervisorError::Usage) => fail_with(&error, BAD_USAGE),
            Err(error) => fail_with(&error, NOT_STARTED),
        };
    }
    let job = match arguments::parse(arguments) {
        Ok(CommandRequest::Job(job)) => job,
        Ok(CommandRequest::Help) => {
            print_text(arguments::HELP);
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail_with(&error, BAD_USAGE),
    };
    let result = match job.run() {
        Ok(result) => result,
        Err(error @ ComputationError::Team(_)) => return fail_with(&error, NO_TEAM),
        Err(error) => return fail_with(&error, NO_FILE),
    };
    print_text(&report::text(&result));
    match result.verified {
        Some(true) => ExitCode::SUCCESS,
        Some(false) => ExitCode::from(NOT_VERIFIED),
        None => ExitCode::from(NO_REFERENCE),
    }
}

/// Prints a text; write errors are ignored, as a missing reader is no reason to fail.
fn print_text(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

fn fail_with(error: &dyn Error, status: u8) -> ExitCode {
    let mut text = format!("dormouse-task: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    let _ = writeln!(io::stderr().lock(), "{text}");
    ExitCode::from(status)
}
