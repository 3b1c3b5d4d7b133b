//! Use of vCPUs by VMs in unlimited mode, and when their surplus is charged.

use dormouse_cloud::ProviderVmState;
use dormouse_model::Effect;
use dormouse_units::{Mode, Money, Ppm, TaskId, Time, VmId};

use super::Run;
use crate::tasks::TaskState;

impl Run {
    /// Records the vCPU use of VMs in unlimited mode from the end of this step on.
    pub(super) fn note_use(&mut self, now: Time) {
        for vm in self.surpluses.vms().collect::<Vec<_>>() {
            let used = self.used_by(vm);
            self.surpluses.set_use(now, vm, used);
        }
    }

    /// Returns the vCPU use of the tasks that run on a VM, a sum of millionths; `None`: the VM doesn't run.
    fn used_by(&self, vm: VmId) -> Option<u64> {
        let state = self.provider.find_vm(vm)?.state;
        let record = self.vms.get(vm)?;
        let is_made = record.is_made()
            && matches!(state, ProviderVmState::Booting | ProviderVmState::Running);
        if !is_made && state != ProviderVmState::Hibernating {
            return None;
        }
        let baseline = record.burstable().map_or(Ppm::ONE, |burstable| burstable.baseline);
        let used = |task: TaskId| {
            let task = self.tasks.get(task)?;
            let share = if task.mode == Mode::Burst { Ppm::ONE } else { baseline };
            // In the background it has what others leave.
            let cpu = task.seats.as_ref().and_then(|seats| seats.cpus.first().copied());
            let supply = cpu.and_then(|cpu| self.supplies.share_of(vm, cpu));
            let share = supply.map_or(share, |supply| share.min(supply));
            (task.state == TaskState::Running(vm)).then_some(u64::from(share.get()))
        };
        Some(record.seating().seated_tasks().filter_map(used).sum())
    }

    /// Charges the surplus of a VM that stops, for good or for now.
    pub(super) fn charge_surplus(&mut self, now: Time, vm: VmId) {
        let Some((credits, cost)) = self.surpluses.stop_vm(now, vm) else { return };
        if cost > Money::ZERO {
            self.provider.set_surcharge(vm, cost);
            self.effects.push(Effect::SurplusCharged { vm, credits, cost });
        }
    }
}
