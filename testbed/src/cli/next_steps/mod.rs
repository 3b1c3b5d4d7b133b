//! The next steps after a command: commands that are worth typing, printed at its end.
//!
//! They are printed at the end of every such command, because the paths in them differ, and once however many runs a
//! command made. Only people get them: nothing is printed if standard output or error is not a terminal, with `--quiet` or
//! `--json`, or with `DORMOUSE_HINTS=0` in the environment.

mod after_files;
mod after_many;
mod after_run;
mod step;

pub(super) use after_files::{after_inspect, after_measure, after_prices, after_workload};
pub(super) use after_many::{after_cells, after_paper};
pub(super) use after_run::after_run;
pub(super) use step::{NextStep, aligned, pasted, say};
