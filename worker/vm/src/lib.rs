//! One emulated VM as a pure state machine: which task sits on which vCPUs, how
//! fast each may run now, and what that does to the CPU credits.
//!
//! [`VmModel`] is the VM itself in virtual time; beside a real VM it is the reference that the VM is compared with.
//! [`TaskLedger`] accounts for the difference. [`life`] handles how attempts begin, stop and end on a VM. Parallel jobs
//! have a finer model: [`ideal`] follows the phases of their processes.

mod allowance;
mod bucket;
pub mod ideal;
mod ledger;
pub mod life;
mod machine;
mod model;
mod notice;
mod processors;
mod restores;
mod running;
pub mod shares;
mod sharing;
#[cfg(test)]
mod tests;
mod work;

pub use allowance::CreditAllowance;
pub use bucket::{CreditBucket, CreditSpec};
pub use ledger::{KernelQuota, TaskLedger, TaskPace};
pub use machine::{MachineSpec, MachineState};
pub use model::VmModel;
pub use notice::PART_TO_SAVE;
pub use restores::OLDER_CHECKPOINTS;
pub use sharing::ProcessorSharing;
pub use work::{CheckpointHold, ModelProgress, ModelTask, SeatError, WorkEvent};
