//! Whether VMs have room on their hosts, and make room for others as they have to.

use dormouse_cloud::{Action, Host, Market, Preemption};
use dormouse_units::VmId;

use super::{Checker, Life};

impl Checker<'_> {
    /// Whether spot VMs make room by hibernating.
    pub(super) fn hibernates(&self) -> bool {
        self.setup.terms.preemption == Preemption::Hibernate
    }

    /// A spot VM makes room for another's VM, which is launched just now.
    pub(super) fn displaced(&mut self, id: VmId, by: VmId, action: Action) {
        let now = self.now;
        match self.vms.get_mut(&by) {
            Some(by) if by.market == Market::OnDemand && by.launched == now => by.waits = true,
            // It is another tenant's.
            None if self.setup.jobs.is_some() || self.setup.requests => {}
            _ => self
                .wrong(format!("{id} makes room for {by}, which is no on-demand VM launched now")),
        }
        if action == Action::Preempt {
            let hibernates = self.hibernates();
            return self.preempted(id, |vm| {
                let ends = !hibernates || vm.life == Life::Booting;
                (!ends).then(|| "it ends to make room where it is to hibernate".to_owned())
            });
        }
        let hibernates = self.hibernates() && action == Action::Hibernate;
        self.on(id, &[Life::Running], "hibernates to make room", |vm| {
            (vm.life, vm.is_displaced) = (Life::Freezing, true);
            let spot = vm.market == Market::Spot;
            (!spot || !hibernates).then(|| "it is no VM that hibernates to make room".to_owned())
        });
    }

    /// A VM that made room has it again, and resumes.
    pub(super) fn given_back(&mut self, id: VmId) {
        let (now, least) = (self.now, self.setup.catalogue.hibernation);
        self.takes_room(id);
        self.on(id, &[Life::Frozen], "has its room again", |vm| {
            let was_displaced = std::mem::take(&mut vm.is_displaced);
            vm.resumes = true;
            if !was_displaced {
                return Some("it resumes as if it had made room".to_owned());
            }
            let early = vm.frozen_since.is_some_and(|since| now < since + least);
            early.then(|| format!("it resumes sooner than {least} after it froze"))
        });
    }

    /// A VM takes room on its host that it had not.
    pub(super) fn takes_room(&mut self, id: VmId) {
        self.taken_of.extend(self.vms.get(&id).map(|vm| vm.host));
    }

    /// The VMs of a host together have no more than it offers.
    pub(super) fn look_at_rooms(&mut self) {
        while let Some(id) = self.taken_of.pop_first() {
            let Some(offer) = self.hosts.get(&id).copied() else {
                self.wrong(format!("a VM is on {id}, which never joined"));
                continue;
            };
            let there = self.vms.values().filter(|vm| vm.host == id);
            let held = there.fold(Host::of_vcpus(0), |sum, vm| sum.with(&vm.held()));
            self.require(offer.holds(&held), || {
                format!("the VMs on {id} have {held}, and it offers {offer}")
            });
        }
    }
}
