//! Results of a run, made in virtual time or read back from its folder, and their presentation.
//!
//! - [`virtual_run`]: runs an experiment in virtual time;
//!
//! - [`output`]: a run's folder and its log;
//!
//! - [`results`]: the results of a run, made or read back;
//!
//! - [`run_view`]: the one view of the results from which everything else is written;
//!
//! - [`verdict`]: results and fidelity of a live run, from its log alone;
//!
//! - [`binding`]: check that a run's folder is what the run left;
//!
//! - [`replay`], [`check`], [`explain`], [`twin`]: questions to a run's log.

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
