//! The rule `lazy`: spot VMs until only on-demand VMs can still make the deadline.

mod last_moments;
mod scheduler;
mod waiting;

pub(crate) use scheduler::LazyScheduler;
