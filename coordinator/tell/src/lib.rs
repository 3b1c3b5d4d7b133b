//! What the steps of a run tell, of whatever kind it is: what became of every VM and task
//! ([`Record`]), and whether what happened keeps the rules ([`Checker`], [`JobsChecker`]). Pure: a
//! live run, one in virtual time and one read from its log are the same here.

mod check;
mod record;

pub use check::{Checker, JobsChecker, Violation, check_bag};
pub use record::{
    AttemptEnd, AttemptHistory, CheckpointMark, FallBack, Hibernation, HostHistory, Interrupted,
    Record, TaskHistory, VmHistory, carried_out, cut_short,
};
