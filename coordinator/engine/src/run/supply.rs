//! Shares of processors that VMs in the background have: what the VMs in the foreground leave.
//!
//! The VM in the foreground of a processor has all that the tasks on its vCPU use, up to all of it: both tiers of a
//! machine for parallel jobs, each process by its CPU usage; a task of a bag all of it, or its baseline. The VM in the
//! background has the rest, which is the whole processor if no task runs in the foreground.

use dormouse_model::{Command, Effect};
use dormouse_units::{HostId, Mode, Ppm, VmId};

use super::Run;

impl Run {
    /// Logs the processors of VMs, and tells background VMs their shares of processors, if either has changed.
    pub(super) fn update_supplies(&mut self) {
        let Some(tiers) = self.provider.tiers() else { return };
        let mut places = Vec::new();
        for (vm, placed) in tiers.all_places() {
            if self.supplies.are_others(vm, &placed.processors) {
                places.push((vm, placed.clone()));
            }
        }
        let mut changes: Vec<(HostId, VmId, u32, Ppm)> = Vec::new();
        for (vm, placed) in tiers.background_places() {
            for (vcpu, processor) in (0..).zip(&placed.processors) {
                let before = tiers.foreground_vm(placed.host, *processor);
                let share =
                    before.map_or(Ppm::ONE, |(vm, vcpu)| self.used_share(vm, vcpu).rest_of_whole());
                if self.supplies.share_of(vm, vcpu).is_some_and(|had| had != share) {
                    changes.push((placed.host, vm, vcpu, share));
                }
            }
        }
        for (vm, placed) in places {
            let (tier, processors) = (placed.tier, placed.processors);
            self.supplies.processors_placed(vm, &processors);
            self.effects.push(Effect::Placed { vm, tier, processors });
        }
        for (host, vm, vcpu, share) in changes {
            self.supplies.set_share(vm, vcpu, share);
            self.effects.push(Effect::Supplied { vm, vcpu, share });
            self.commands.push(Command::SetSupply { host, vm, vcpu, share });
        }
    }

    /// Returns the CPU usage of all tasks on a vCPU together.
    fn used_share(&self, vm: VmId, vcpu: u32) -> Ppm {
        let Some(record) = self.vms.get(vm) else { return Ppm::ZERO };
        let baseline = || {
            let kind = &self.provider.find_vm(vm)?.kind;
            Some(self.setup.catalogue.get(kind)?.burstable?.baseline)
        };
        let uses = record.seating().tasks_on(vcpu).map(|task| {
            let task = self.tasks.get(task)?;
            match (&task.job, task.mode) {
                (Some(job), _) => {
                    let seats = task.seats.as_ref()?;
                    let process = seats.cpus.iter().position(|cpu| *cpu == vcpu)?;
                    Some(job.usage.of_process(process))
                }
                (None, Mode::Burst) => Some(Ppm::ONE),
                (None, Mode::Baseline) => baseline(),
            }
        });
        let sum: u32 = uses.map(|part| part.unwrap_or_default().get()).sum();
        Ppm::new(sum).min(Ppm::ONE)
    }
}
