//! Stages of a run from its parameters to its outcome: begun or restored, served and supervised, and stopped.

mod beginning;
pub(crate) mod in_process;
pub(crate) mod live;
mod restore;
mod service;
pub(crate) mod stops;
mod warden;
