//! Selection of the VMs that an interruption affects, and of the VMs that it leaves unchanged.

use dormouse_units::{Time, TypeName, VmId};

use super::Provider;
use crate::{
    Interruption, InterruptionAction, InterruptionTarget, Market, ProviderVm, ProviderVmState,
};

impl Provider {
    /// VMs that an interruption affects now: running spot VMs for a hibernation; booting, running
    /// or hibernated spot VMs for a preemption; VMs hibernated for long enough for a resume.
    #[must_use]
    pub fn hit_by(&self, now: Time, interruption: &Interruption) -> Vec<VmId> {
        let in_state = |vm: &ProviderVm| match (interruption.action, vm.state) {
            (InterruptionAction::Hibernate, ProviderVmState::Running) => true,
            (InterruptionAction::Preempt, state) => {
                // One that has its notice has been told already.
                !vm.has_notice
                    && matches!(
                        state,
                        ProviderVmState::Booting
                            | ProviderVmState::Running
                            | ProviderVmState::Hibernated { .. }
                    )
            }
            (InterruptionAction::Rebalance, ProviderVmState::Running) => !vm.has_notice,
            // A VM that made room for another resumes once the other has no need of it.
            (InterruptionAction::Resume, ProviderVmState::Hibernated { since }) => {
                !vm.is_displaced && now >= since + self.catalogue.hibernation
            }
            _ => false,
        };
        let hit = |id: &VmId| self.find_vm(*id).is_some_and(in_state);
        self.living_targets(&interruption.target).into_iter().filter(hit).collect()
    }

    /// Sets what happens to a spot VM whenever it is interrupted: the VM hibernates, or is given notice and ends.
    pub fn interrupt_by(&mut self, id: VmId, hibernates: bool) {
        if let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.market == Market::Spot) {
            vm.hibernates = Some(hibernates);
        }
    }

    /// Whether a VM runs and hibernates when it is interrupted, while other VMs get a notice and end.
    #[must_use]
    pub fn hibernates_instead(&self, id: VmId) -> bool {
        self.find_vm(id)
            .is_some_and(|vm| vm.hibernates == Some(true) && vm.state == ProviderVmState::Running)
    }

    /// Removes from `hit` the VMs whose users chose another kind of interruption (hibernation or preemption) than `action`. Returns
    /// them, each with the action to apply instead; VMs that are hibernated already or about to end are not returned.
    pub fn take_otherwise(
        &self,
        action: InterruptionAction,
        hit: &mut Vec<VmId>,
    ) -> Vec<(VmId, InterruptionAction)> {
        let mut otherwise = Vec::new();
        hit.retain(|id| {
            let Some(vm) = self.find_vm(*id) else { return true };
            match (action, vm.hibernates, vm.state) {
                (InterruptionAction::Hibernate, Some(false), _) => {
                    otherwise
                        .extend((!vm.has_notice).then_some((*id, InterruptionAction::Preempt)));
                    false
                }
                (InterruptionAction::Preempt, Some(true), ProviderVmState::Running) => {
                    otherwise.push((*id, InterruptionAction::Hibernate));
                    false
                }
                (InterruptionAction::Preempt, Some(true), ProviderVmState::Hibernated { .. }) => {
                    false
                }
                _ => true,
            }
        });
        otherwise
    }

    /// VMs of a target that still boot or wait for room.
    #[must_use]
    pub fn booting_vms(&self, target: &InterruptionTarget) -> Vec<VmId> {
        let boots =
            |id: &VmId| self.find_vm(*id).is_some_and(|vm| vm.state == ProviderVmState::Booting);
        self.living_targets(target).into_iter().filter(boots).collect()
    }

    /// VMs of the target that an interruption leaves unchanged for now: for a hibernation, those
    /// that boot (they hibernate once booted) or resume; for a resume, those that can't resume yet;
    /// for a preemption, those that are just hibernating or resuming.
    #[must_use]
    pub fn left_by(&self, interruption: &Interruption, hit: &[VmId]) -> Vec<VmId> {
        let in_state = |vm: &ProviderVm| match interruption.action {
            InterruptionAction::Hibernate => {
                matches!(vm.state, ProviderVmState::Booting | ProviderVmState::Resuming)
            }
            InterruptionAction::Resume => {
                matches!(
                    vm.state,
                    ProviderVmState::Hibernating | ProviderVmState::Hibernated { .. }
                )
            }
            InterruptionAction::Preempt => {
                matches!(vm.state, ProviderVmState::Hibernating | ProviderVmState::Resuming)
            }
            InterruptionAction::Rebalance => false,
        };
        let left = |id: &VmId| !hit.contains(id) && self.find_vm(*id).is_some_and(in_state);
        self.living_targets(&interruption.target).into_iter().filter(left).collect()
    }

    /// The living spot VMs of a target.
    fn living_targets(&self, target: &InterruptionTarget) -> Vec<VmId> {
        match target {
            InterruptionTarget::Type(kind) => {
                let alike = self.alike.get(&(kind.clone(), Market::Spot));
                alike.into_iter().flatten().copied().collect()
            }
            InterruptionTarget::Zone(zone) => {
                self.spot_where(|kind| kind.zone() == Some(zone.as_str()))
            }
            InterruptionTarget::All => self.spot_where(|_| true),
            InterruptionTarget::Vm(id) => {
                let is_meant = |vm: &&ProviderVm| vm.is_alive() && vm.market == Market::Spot;
                self.find_vm(*id).filter(is_meant).map(|_| *id).into_iter().collect()
            }
        }
    }

    /// The living spot VMs of the selected types, ordered by id.
    fn spot_where(&self, is_meant: impl Fn(&TypeName) -> bool) -> Vec<VmId> {
        let of = self
            .alike
            .iter()
            .filter(|((kind, market), _)| *market == Market::Spot && is_meant(kind));
        let mut vms: Vec<VmId> = of.flat_map(|(_, vms)| vms).copied().collect();
        vms.sort_unstable();
        vms
    }
}
