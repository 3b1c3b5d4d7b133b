//! The record of a run: one fold from its steps to the histories of its hosts, VMs, tasks, jobs and
//! requests.

mod attempts;
mod change;
mod credits;
mod customers;
mod declared_use;
mod faults;
mod figures;
mod job;
mod losses;
#[expect(clippy::module_inception, reason = "the room is named by what it makes")]
mod record;
mod task;
mod vm;
mod vm_life;

pub use change::{ClosedHistories, RecordChange};
pub use faults::{FaultCost, FaultHistory, FaultOnHost};
pub use job::{JobHistory, JobSpell, SpellEnd};
pub use record::RequestHistory;
pub use record::{HostHistory, ProviderAct, RunRecord};
pub use task::{AttemptEnd, AttemptHistory, CheckpointMark, RestoreFallback, TaskHistory};
pub use vm::{LeaveReason, VmDisplacement, VmHibernation, VmHistory};

pub use attempts::cut_short;
pub use record::carried_out;
