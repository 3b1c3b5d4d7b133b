//! `dormouse workload`.

use std::io::stdout;

use super::failure::Failure;

pub(crate) fn workload(command: &dormouse_workload::cli::Command) -> Result<(), Failure> {
    dormouse_workload::cli::run(command, &mut stdout().lock()).map_err(|error| {
        let text = crate::chain::chain(&error);
        if error.exit_status() == 2 { Failure::BadInput(text) } else { Failure::Broken(text) }
    })
}
