//! Entry point of the program `dormouse-task`; its commands are in [`dormouse_tasks::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    dormouse_tasks::cli::main(std::env::args_os().skip(1))
}
