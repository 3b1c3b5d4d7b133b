//! Programs of the user's own as tasks: what they are started with, what they are promised and get, and
//! what they leave.

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

pub(crate) use check::{check, is_to_be_checked};
pub(crate) use end::{end_of, failure};
pub(crate) use idle::Deeds;
pub use keep::Kept;
pub(crate) use keep::keep;
pub(crate) use launch::{
    bring_inputs, is_kept_while_it_runs, is_saved_by_criu, waits_for_inputs, with_inputs,
    with_saved,
};
pub(crate) use meter::OwnMeter;
pub(crate) use mounts::check_mounts;
pub(crate) use snapshot::take;
