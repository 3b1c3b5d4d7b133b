//! What came of a run: made in virtual time or read back from its folder, and how it is shown.
//!
//! - [`virtual_run`]: an experiment in virtual time;
//! - [`output`]: a run's folder, and its log;
//! - [`results`]: what came of a run, made or read back;
//! - [`run_view`]: the one view of it that all else is written from;
//! - [`verdict`]: what came of a live run and how true it was, from its log alone;
//! - [`binding`]: whether its folder is what it left;
//! - [`replay`], [`check`], [`explain`], [`twin`]: what its log says when it is asked.

pub mod binding;
pub mod calibration;
pub mod check;
pub mod explain;
pub mod jobs;
pub mod output;
mod recorder;
pub mod replay;
pub mod results;
pub mod run_view;
mod tables;
pub mod twin;
pub mod verdict;
pub mod virtual_run;
