//! The `simulate` command: see [`dormouse_simulator`].

use std::process::ExitCode;

use clap::Parser as _;
use dormouse_simulator::cli;

fn main() -> ExitCode {
    cli::main(&cli::Arguments::parse())
}
