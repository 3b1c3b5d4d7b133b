//! Selection of the VMs that an interruption affects, and of those that it leaves unchanged.

use dormouse_units::{Time, TypeName, VmId};

use super::Provider;
use crate::{Action, Interruption, Market, Target, Vm, VmState};

impl Provider {
    /// VMs that an interruption affects now: running spot VMs for a hibernation; booting, running
    /// or hibernated ones for a preemption; VMs hibernated for long enough for a resume.
    #[must_use]
    pub fn hit_by(&self, now: Time, interruption: &Interruption) -> Vec<VmId> {
        let in_state = |vm: &Vm| match (interruption.action, vm.state) {
            (Action::Hibernate, VmState::Running) => true,
            (Action::Preempt, state) => {
                // One that has its notice has been told already.
                !vm.has_notice
                    && matches!(
                        state,
                        VmState::Booting | VmState::Running | VmState::Hibernated { .. }
                    )
            }
            (Action::Rebalance, VmState::Running) => !vm.has_notice,
            // A VM that made room for another resumes once the other has no need of it.
            (Action::Resume, VmState::Hibernated { since }) => {
                !vm.is_displaced && now >= since + self.catalogue.hibernation
            }
            _ => false,
        };
        let hit = |id: &VmId| self.vm(*id).is_some_and(in_state);
        self.targets(&interruption.target).into_iter().filter(hit).collect()
    }

    /// From now on a spot VM hibernates whenever it is interrupted, or is given notice and ends.
    pub fn interrupt_by(&mut self, id: VmId, hibernates: bool) {
        if let Some(vm) = self.vms.get_mut(id).filter(|vm| vm.market == Market::Spot) {
            vm.hibernates = Some(hibernates);
        }
    }

    /// Whether a VM hibernates where others are given notice.
    #[must_use]
    pub fn hibernates_instead(&self, id: VmId) -> bool {
        self.vm(id).is_some_and(|vm| vm.hibernates == Some(true) && vm.state == VmState::Running)
    }

    /// Takes the VMs out of those that this action hits whose users have chosen the other one, and says which. Those that
    /// are hibernated already, or about to end, are taken out as well.
    pub fn take_otherwise(&self, action: Action, hit: &mut Vec<VmId>) -> Vec<(VmId, Action)> {
        let mut otherwise = Vec::new();
        hit.retain(|id| {
            let Some(vm) = self.vm(*id) else { return true };
            match (action, vm.hibernates, vm.state) {
                (Action::Hibernate, Some(false), _) => {
                    otherwise.extend((!vm.has_notice).then_some((*id, Action::Preempt)));
                    false
                }
                (Action::Preempt, Some(true), VmState::Running) => {
                    otherwise.push((*id, Action::Hibernate));
                    false
                }
                (Action::Preempt, Some(true), VmState::Hibernated { .. }) => false,
                _ => true,
            }
        });
        otherwise
    }

    /// VMs of a target that still boot or wait for room.
    #[must_use]
    pub fn booting(&self, target: &Target) -> Vec<VmId> {
        let boots = |id: &VmId| self.vm(*id).is_some_and(|vm| vm.state == VmState::Booting);
        self.targets(target).into_iter().filter(boots).collect()
    }

    /// VMs of the target that an interruption leaves unchanged for now: for a hibernation, those
    /// that boot (they hibernate once booted) or resume; for a resume, those that can't resume yet;
    /// for a preemption, those that are just hibernating or resuming.
    #[must_use]
    pub fn left_by(&self, interruption: &Interruption, hit: &[VmId]) -> Vec<VmId> {
        let in_state = |vm: &Vm| match interruption.action {
            Action::Hibernate => matches!(vm.state, VmState::Booting | VmState::Resuming),
            Action::Resume => {
                matches!(vm.state, VmState::Hibernating | VmState::Hibernated { .. })
            }
            Action::Preempt => matches!(vm.state, VmState::Hibernating | VmState::Resuming),
            Action::Rebalance => false,
        };
        let left = |id: &VmId| !hit.contains(id) && self.vm(*id).is_some_and(in_state);
        self.targets(&interruption.target).into_iter().filter(left).collect()
    }

    /// The living spot VMs of a target.
    fn targets(&self, target: &Target) -> Vec<VmId> {
        match target {
            Target::Type(kind) => {
                let alike = self.alike.get(&(kind.clone(), Market::Spot));
                alike.into_iter().flatten().copied().collect()
            }
            Target::Zone(zone) => self.spot_where(|kind| kind.zone() == Some(zone.as_str())),
            Target::All => self.spot_where(|_| true),
            Target::Vm(id) => {
                let is_meant = |vm: &&Vm| vm.is_alive() && vm.market == Market::Spot;
                self.vm(*id).filter(is_meant).map(|_| *id).into_iter().collect()
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
