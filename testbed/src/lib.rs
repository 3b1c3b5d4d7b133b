//! The `dormouse` command: experiment files, virtual time, live runs, reports.

pub mod calibrate;
mod calibration;
mod chain;
pub mod check;
pub mod cli;
mod command_line;
mod compare;
pub mod experiment;
pub mod explain;
pub mod jobs;
pub mod live;
pub mod output;
pub mod papers;
pub mod replay;
pub mod results;
pub mod run_view;
pub mod sweep;
pub mod twin;
mod two_tier;
pub mod virtual_run;
