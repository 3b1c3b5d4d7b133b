//! Emulated VMs as control groups, version 1 or 2, whichever the host has.
//!
//! ```text
//! <mount>/dormouse-<pidns>-<pid>-<start>/   one worker's tree      (`Tree`)
//!     vm<ID>/                               memory limit, freezer  (`Vm`)
//!         cpu<K>/                           CPU quota of one vCPU
//!             a/  b/                        its two tiers, freezer (`Slot`)
//! ```
//!
//! On version 1 the memory and pids hierarchies end at `vm<ID>`; only cpu, cpuacct and freezer
//! have the levels below. The two tier groups are called `a` and `b`, not
//! foreground and background, because a swap changes their priority and not their name.
//!
//! Killing a frozen VM: under version 1 a SIGKILL sent to a frozen task takes effect when the
//! task is thawed, so `Vm::kill_all` sends the signal, thaws, and waits until the
//! group is empty: a task wakes only to die. Under version 2 frozen tasks die at once.
//!
//! Every function works on paths below a root it is given, so the unit tests run on
//! directories of plain files.

mod bandwidth;
mod claim;
mod cpu;
mod delegate;
mod entry;
mod error;
mod file;
mod freezer;
mod hierarchy;
mod hold;
mod memory;
mod own;
mod pids;
mod procs;
mod quota;
mod sweep;
mod tiers;
mod tree;
mod vm;

pub use claim::InstanceName;
pub use cpu::{CpuQuota, CpuThrottling};
pub use error::{CgroupError, Result};
pub use freezer::FreezeTimes;
pub use hierarchy::{CgroupController, CgroupHierarchy, V1Mounts};
pub use own::{LowWeight, own_cpu_quota, own_low_weight, own_memory_limit};
pub use quota::LiftedQuota;
pub use sweep::{SweptGroups, destroy_instance, sweep_stale};
pub use tree::GroupTree;
pub use vm::{TierSlot, VmGroups};
