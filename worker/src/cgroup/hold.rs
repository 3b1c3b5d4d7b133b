//! Stopping all processes in one slot, without a signal.
//!
//! A process that is frozen by its group notices nothing, and neither does its parent: no handler is called, and
//! waitpid(2) reports nothing, unlike for a process that a signal stops and resumes. A process that its own program had
//! stopped before is still stopped afterwards.
//!
//! Both versions of control groups can do this: version 1 by the slot's group of the freezer, version 2 by its
//! `cgroup.freeze`. CRIU must not work on a frozen slot: if a process is frozen and also stopped by a signal, CRIU
//! waits for an event that comes only with the thaw (Linux 6.18: PTRACE_SEIZE does not return).

use std::time::Duration;

use super::{CgroupController, Result, TierSlot, VmGroups, file, freezer};

impl VmGroups {
    /// Requests all processes in `slot` of vCPU `vcpu` to stop, without waiting: a process that its quota throttles
    /// stops when it would run next.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    pub fn hold_slot(&self, vcpu: u32, slot: TierSlot) -> Result<()> {
        let group = self.slot_group(CgroupController::Freezer, vcpu, slot)?;
        freezer::request_state(&group, self.hierarchy.is_v2(), true)
    }

    /// Stops all processes in `slot` of vCPU `vcpu`, and waits until they are stopped. The quota is lifted during the
    /// wait; the processes do nothing of their own in that time, as they are requested to stop first.
    ///
    /// # Errors
    ///
    /// A process runs on past the deadline; no process stays stopped then.
    pub fn hold_at_once(&self, vcpu: u32, slot: TierSlot, deadline: Duration) -> Result<()> {
        let group = self.slot_group(CgroupController::Freezer, vcpu, slot)?;
        let v2 = self.hierarchy.is_v2();
        let held = freezer::request_state(&group, v2, true).and_then(|()| {
            let _lifted = self.lift_quota(vcpu, slot)?;
            freezer::set_frozen(&group, v2, true, deadline)
        });
        if held.is_err() {
            // What matters is the first error.
            let _ = freezer::request_state(&group, v2, false);
        }
        held.map(drop)
    }

    /// Requests all processes in `slot` of vCPU `vcpu` to stop, except the processes `apart`, which are moved to the VM's freezer
    /// group. False if that is impossible: in version 2, groups above those of slots hold no processes.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses; no process is stopped then.
    pub(crate) fn hold_all_but(&self, vcpu: u32, slot: TierSlot, apart: &[i32]) -> Result<bool> {
        if self.hierarchy.is_v2() {
            return Ok(false);
        }
        let above = self.group_path(CgroupController::Freezer).join("cgroup.procs");
        for pid in apart {
            file::write(&above, &pid.to_string())?;
        }
        self.hold_slot(vcpu, slot).map(|()| true)
    }

    /// Lets the processes in `slot` of vCPU `vcpu` run on.
    ///
    /// # Errors
    ///
    /// No such vCPU, or the kernel refuses.
    pub fn let_go(&self, vcpu: u32, slot: TierSlot) -> Result<()> {
        let group = self.slot_group(CgroupController::Freezer, vcpu, slot)?;
        freezer::request_state(&group, self.hierarchy.is_v2(), false)
    }
}
