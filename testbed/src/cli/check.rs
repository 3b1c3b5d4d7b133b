//! `dormouse check`.

use std::path::Path;

use super::failure::Failure;
use super::print::print;
use crate::check::check;
use crate::experiment::Kind;
use crate::output::{Mode, read_log};

/// Status 1 if something is wrong.
pub(crate) fn run(dir: &Path) -> Result<(), Failure> {
    if Kind::of_run(dir)? == Kind::Batch {
        return super::batch::check(dir);
    }
    let (header, steps) = read_log(dir)?;
    let violations = check(&header.experiment.setup, &steps, header.mode == Mode::Virtual);
    if violations.is_empty() {
        return print(&format!("{} steps: nothing that must not be", steps.len()));
    }
    let lines: Vec<_> = violations.iter().map(ToString::to_string).collect();
    print(&lines.join("\n"))?;
    Err(Failure::Broken(format!("{}: {} violations", dir.display(), violations.len())))
}
