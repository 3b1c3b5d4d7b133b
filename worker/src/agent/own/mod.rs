//! Users' own programs as tasks: how they are started, what CPU time they are promised and get, and the files that they
//! leave.

mod check;
mod end;
mod idle;
mod keep;
mod launch;
mod meter;
mod mounts;
mod order;
mod snapshot;
mod wants;

pub(crate) use check::{is_to_be_checked, run_check};
pub(crate) use end::{describe_failure, end_of};
pub(crate) use idle::ProgramActivity;
pub use keep::KeptOutputs;
pub(crate) use keep::keep_outputs;
pub(crate) use launch::{
    bring_inputs, is_kept_while_it_runs, is_saved_by_criu, waits_for_inputs, with_inputs,
    with_saved,
};
pub(crate) use meter::OwnMeter;
pub(crate) use mounts::check_mounts;
pub(crate) use snapshot::save_directory;
pub(crate) use wants::wanted_by;
