//! The next steps after a command: lines that are worth typing, said at its end.
//!
//! A command says them each time, as the paths in them differ, and once, however many runs it made. Only people are
//! told: nothing is said where standard output or error is no terminal, with `--quiet` or `--json`, or with
//! `DORMOUSE_HINTS=0` in the environment.

mod after_files;
mod after_many;
mod after_run;
mod step;

pub(super) use after_files::{after_inspect, after_measure, after_prices, after_workload};
pub(super) use after_many::{after_cells, after_paper};
pub(super) use after_run::after_run;
pub(super) use step::{NextStep, aligned, pasted, say};
