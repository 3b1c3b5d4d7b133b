//! Whether spot VMs of scarce types are launched and taken back as the provider's record has it.

use dormouse_cloud::Market;
use dormouse_units::{TypeName, VmId};

use super::{Checker, Followed, Life};

impl Checker<'_> {
    /// Another number of spot VMs of a type can be had.
    pub(super) fn availability_changed(&mut self, kind: &TypeName, vms: u32) {
        let trace = self.setup.terms.availability.get(kind);
        let right = trace.and_then(|trace| trace.at(self.now)) == Some(vms);
        self.require(right, || {
            format!("{vms} spot {kind} can be had, which its record does not say")
        });
        self.available.insert(kind.clone(), vms);
    }

    /// A spot VM was launched: there had to be another.
    pub(super) fn is_available(&mut self, id: VmId, kind: &TypeName) {
        let Some(&most) = self.available.get(kind) else { return };
        let holds = |vm: &Followed| match vm.life {
            Life::Ended => false,
            Life::Frozen => vm.resumes,
            Life::Booting | Life::Running | Life::Freezing => true,
        };
        let held = self.spot_of(kind).filter(|vm| holds(vm)).count();
        self.require(held < most as usize, || {
            format!("{id} is launched, and no more than {most} spot {kind} could be had")
        });
    }

    /// A spot VM is taken back: there had to be more of its type than could be had.
    pub(super) fn reclaimed(&mut self, id: VmId) {
        let kind = self.vms.get(&id).map(|vm| vm.kind.name.clone());
        let stays = |vm: &Followed| {
            let is_there = matches!(vm.life, Life::Booting | Life::Running);
            vm.notice.is_none() && (is_there || vm.life == Life::Frozen && vm.resumes)
        };
        let is_excess = kind.is_some_and(|kind| {
            let most = self.available.get(&kind).map_or(usize::MAX, |most| *most as usize);
            self.spot_of(&kind).filter(|vm| stays(vm)).count() > most
        });
        self.preempted(id, |_| {
            (!is_excess)
                .then(|| "it is taken back though as many can be had as there are".to_owned())
        });
    }

    fn spot_of(&self, kind: &TypeName) -> impl Iterator<Item = &Followed> {
        self.vms.values().filter(move |vm| vm.market == Market::Spot && vm.kind.name == *kind)
    }
}
