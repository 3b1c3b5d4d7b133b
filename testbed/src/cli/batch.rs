//! `dormouse workload` and `dormouse batch`: parallel jobs, in virtual time.

use std::error::Error;
use std::io::stdout;

use super::args::BatchCommand;
use super::failure::Failure;

pub(crate) fn workload(command: &dormouse_workload::cli::Command) -> Result<(), Failure> {
    dormouse_workload::cli::run(command, &mut stdout().lock())
        .map_err(|error| failure(&error, error.exit_status()))
}

pub(crate) fn batch(command: &BatchCommand) -> Result<(), Failure> {
    let out = &mut stdout().lock();
    match command {
        BatchCommand::Run(args) => args.run(out),
        BatchCommand::Explain(args) => args.run(out),
        BatchCommand::Reproduce(args) => {
            let bar = indicatif::ProgressBar::new(0);
            let done = args.run(out, |done, of| {
                bar.set_length(of as u64);
                bar.set_position(done as u64);
            });
            bar.finish_and_clear();
            done
        }
    }
    .map_err(|error| failure(&error, error.exit_status()))
}

fn failure(error: &dyn Error, status: u8) -> Failure {
    let text = super::chain(error);
    if status == 2 { Failure::BadInput(text) } else { Failure::Broken(text) }
}
