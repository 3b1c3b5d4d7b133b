//! The vCPUs that a live run needs, found by a rehearsal of the run in virtual time.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::{Effect, Step};
use dormouse_units::{Time, VmId};

/// Extra room beyond the peak of the run in virtual time that precedes a live run, in percent. Live tasks end a
/// little earlier or later, and a scheduler may then want another VM or two.
const MARGIN_PERCENT: u32 = 15;

/// Finds the VMs of a run that run, and don't hibernate, when such VMs have the most vCPUs in total.
#[derive(Clone, Debug, Default)]
pub struct VcpuPeak {
    /// vCPUs of each existing VM, and true unless the VM hibernates.
    alive: BTreeMap<VmId, (u32, bool)>,
    vms: Vec<u32>,
    /// Time of the run's last step.
    pub last: Time,
}

impl VcpuPeak {
    /// Takes note of the next step of the run.
    pub fn take_step(&mut self, step: &Step) {
        self.last = step.at;
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, vcpus, .. } => {
                    self.alive.insert(*vm, (*vcpus, true));
                }
                Effect::VmHibernated { vm, .. } | Effect::VmResumed { vm, .. } => {
                    if let Some((_, awake)) = self.alive.get_mut(vm) {
                        *awake = matches!(effect, Effect::VmResumed { .. });
                    }
                }
                Effect::VmEnded { vm, .. } => {
                    self.alive.remove(vm);
                }
                _ => {}
            }
        }
        let awake = self.alive.values().filter(|(_, awake)| *awake).map(|(vcpus, _)| *vcpus);
        if awake.clone().sum::<u32>() > self.vms.iter().sum() {
            self.vms = awake.collect();
        }
    }

    /// Returns the vCPUs of the VMs at the peak in the order of their launch, followed by further VMs of the same
    /// sizes within the extra room, the largest that fit first.
    #[must_use]
    pub fn with_room(self) -> Vec<u32> {
        let mut vms = self.vms;
        let peak: u32 = vms.iter().sum();
        let mut room = (peak * (100 + MARGIN_PERCENT)).div_ceil(100).max(1) - peak;
        let sizes: BTreeSet<u32> = vms.iter().copied().collect();
        while room > 0 {
            let vm = sizes.iter().rev().copied().find(|size| *size <= room).unwrap_or(room);
            vms.push(vm);
            room -= vm;
        }
        vms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_for_more_of_the_same_vms() {
        let with_room = |vms| VcpuPeak { vms, ..VcpuPeak::default() }.with_room();
        assert_eq!(with_room(vec![2; 10]), [vec![2; 11], vec![1]].concat());
        assert_eq!(with_room(vec![4, 4, 2, 2, 2, 2, 8]), [4, 4, 2, 2, 2, 2, 8, 4]);
        assert_eq!(with_room(Vec::new()), [1], "one that never launches any");
    }
}
