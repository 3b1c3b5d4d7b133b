//! The fate of every VM and task of a run, from its event log.

mod credits;
mod faults;
mod figures;
mod holds;
mod lanes;
mod losses;
mod reasons;
mod task;
mod timeline;
mod vm;

pub use faults::{FaultCost, FaultHistory, FaultOnHost};
pub use lanes::Lanes;
pub use task::{AttemptEnd, AttemptHistory, CheckpointMark, FallBack, TaskHistory};
pub use timeline::{HostHistory, Interrupted, Record};
pub use vm::{Displaced, Hibernation, VmHistory};

pub use holds::cut_short;
pub use timeline::carried_out;
