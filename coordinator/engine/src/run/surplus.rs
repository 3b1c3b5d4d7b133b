//! Use of vCPUs by VMs in unlimited mode, and when their surplus is charged.

use dormouse_cloud::ProviderVmState;
use dormouse_model::Effect;
use dormouse_units::{Credits, Mode, Money, Ppm, Price, TaskId, Time, VmId};

use super::Run;
use super::carry_out::DecisionRefusal;
use crate::tasks::TaskState;

impl Run {
    /// Records the vCPU use of VMs in unlimited mode from the end of this step on.
    pub(super) fn note_use(&mut self, now: Time) {
        for vm in self.surpluses.vms().collect::<Vec<_>>() {
            let used = self.used_by(vm);
            self.surpluses.set_use(now, vm, used);
        }
    }

    /// Returns the vCPU use of the tasks that run on a VM, or the use that was declared, in millionths of a vCPU; `None`: the VM
    /// doesn't run.
    fn used_by(&self, vm: VmId) -> Option<u64> {
        let state = self.provider.find_vm(vm)?.state;
        if let Some(declared) = self.surpluses.declared_use(vm) {
            let runs = matches!(state, ProviderVmState::Running | ProviderVmState::Hibernating);
            return runs.then_some(declared);
        }
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

    /// Sets what programs of which a VM's machine knows nothing use of each vCPU; `surplus`: the price of a surplus vCPU-hour, `None`
    /// in standard mode.
    ///
    /// # Errors
    ///
    /// The VM is gone, or not burstable.
    pub(super) fn declare_use(
        &mut self,
        now: Time,
        vm: VmId,
        used: Ppm,
        surplus: Option<Price>,
    ) -> Result<(), DecisionRefusal> {
        self.host_of_alive(vm)?;
        let kind = self.provider.find_vm(vm).and_then(|it| self.setup.catalogue.get(&it.kind));
        let declared = u64::from(used.get()) * u64::from(kind.map_or(0, |kind| kind.vcpus));
        let charged = self.surpluses.declare_use(now, vm, declared, surplus).ok_or_else(|| {
            DecisionRefusal::Invalid(format!("{vm} is not a burstable VM without tasks"))
        })?;
        if surplus.is_none() {
            self.note_charge(vm, charged);
        }
        Ok(())
    }

    /// Charges the surplus of a VM that stops, for good or for now.
    pub(super) fn charge_surplus(&mut self, now: Time, vm: VmId) {
        if let Some(charged) = self.surpluses.stop_vm(now, vm) {
            self.note_charge(vm, charged);
        }
    }

    fn note_charge(&mut self, vm: VmId, (credits, cost): (Credits, Money)) {
        if cost > Money::ZERO {
            self.provider.set_surcharge(vm, cost);
            self.effects.push(Effect::SurplusCharged { vm, credits, cost });
        }
    }
}
