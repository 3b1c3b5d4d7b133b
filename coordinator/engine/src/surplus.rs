//! The accounts of VMs in unlimited mode: what they spend beyond what they have earned.

use dormouse_cloud::VmState;
use dormouse_model::Effect;
use dormouse_units::{Credits, Mode, Money, Ppm, TaskId, Time, VmId};

use crate::run::Run;
use crate::tasks::TaskState;

impl Run {
    /// Notes what VMs in unlimited mode use from the end of this step on.
    pub(crate) fn note_use(&mut self, now: Time) {
        for vm in self.unlimited.iter().copied().collect::<Vec<_>>() {
            let used = self.used_by(vm);
            if let Some(surplus) = self.vms.get_mut(vm).and_then(|record| record.surplus.as_mut()) {
                surplus.uses(now, used);
            }
        }
    }

    /// What the tasks that run on a VM use of its vCPUs, a sum of millionths; `None`: it does not run.
    fn used_by(&self, vm: VmId) -> Option<u64> {
        let state = self.provider.vm(vm)?.state;
        let record = self.vms.get(vm)?;
        let is_made = record.created && matches!(state, VmState::Booting | VmState::Running);
        if !is_made && state != VmState::Hibernating {
            return None;
        }
        let baseline = record.burstable.map_or(Ppm::ONE, |burstable| burstable.baseline);
        let used = |task: TaskId| {
            let task = self.tasks.get(task)?;
            let share = if task.mode == Mode::Burst { Ppm::ONE } else { baseline };
            // In the background it has what others leave.
            let cpu = task.seats.as_ref().and_then(|seats| seats.cpus.first().copied());
            let supply = cpu.and_then(|cpu| record.supply.get(cpu as usize).copied());
            let share = supply.map_or(share, |supply| share.min(supply));
            (task.state == TaskState::Running(vm)).then_some(u64::from(share.get()))
        };
        Some(record.seating.taken().filter_map(used).sum())
    }

    /// The machine of a VM says what credits it has; returns those of the VM.
    pub(crate) fn credits_said(&mut self, now: Time, vm: VmId, machine: Credits) -> Credits {
        let Some(record) = self.vms.get_mut(vm) else { return machine };
        let Some(surplus) = &mut record.surplus else { return machine };
        surplus.said(now, machine);
        surplus.credits()
    }

    /// A VM stops, for good or for now: its surplus is charged.
    pub(crate) fn charge_surplus(&mut self, now: Time, vm: VmId) {
        let surplus = self.vms.get_mut(vm).and_then(|record| record.surplus.as_mut());
        let Some((credits, cost)) = surplus.map(|surplus| surplus.stop(now)) else { return };
        if cost > Money::ZERO {
            self.provider.surcharge(vm, cost);
            self.effects.push(Effect::SurplusCharged { vm, credits, cost });
        }
    }
}
