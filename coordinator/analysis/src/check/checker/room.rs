//! Checks of the room that VMs take on their hosts, of the processors that they are placed on, and of VMs that make room
//! for others.

use dormouse_cloud::{InterruptionAction, Market, PreemptionAction, ResourceVector, SpotPlaces};
use dormouse_units::{Ppm, Tier, VmId};

use super::{ALIVE, Checker, VmStage};

impl Checker<'_> {
    /// Whether, by the provider's terms, spot VMs hibernate to make room instead of ending.
    pub(super) fn hibernates(&self) -> bool {
        self.setup.terms.preemption == PreemptionAction::Hibernate
    }

    /// Checks that VM `id` may make room for VM `by`, which must be an on-demand VM launched now.
    pub(super) fn check_displacement(&mut self, id: VmId, by: VmId, action: InterruptionAction) {
        let now = self.now;
        match self.vms.get_mut(&by) {
            Some(by) if by.market == Market::OnDemand && by.launched == now => by.waits = true,
            // A VM that is not known here belongs to another tenant.
            None if self.setup.jobs.is_some() || self.setup.requests => {}
            _ => self.report_violation(format!(
                "{id} makes room for {by}, which is not an on-demand VM launched now"
            )),
        }
        if action == InterruptionAction::Preempt {
            let hibernates = self.hibernates();
            return self.check_preemption(id, |vm| {
                let ends = !hibernates || vm.life == VmStage::Booting;
                (!ends).then(|| "it ends to make room where it is to hibernate".to_owned())
            });
        }
        let hibernates = self.hibernates() && action == InterruptionAction::Hibernate;
        self.check_vm(id, &[VmStage::Running], "hibernates to make room", |vm| {
            (vm.life, vm.is_displaced) = (VmStage::Freezing, true);
            let spot = vm.market == Market::Spot;
            (!spot || !hibernates).then(|| "it is not a VM that hibernates to make room".to_owned())
        });
    }

    /// Checks that a VM that hibernated to make room may resume.
    pub(super) fn given_back(&mut self, id: VmId) {
        let (now, least) = (self.now, self.setup.catalogue.hibernation);
        self.takes_room(id);
        self.check_vm(id, &[VmStage::Frozen], "has its room again", |vm| {
            let was_displaced = std::mem::take(&mut vm.is_displaced);
            vm.resumes = true;
            if !was_displaced {
                return Some("it resumes as if it had made room".to_owned());
            }
            let early = vm.frozen_since.is_some_and(|since| now < since + least);
            early.then(|| format!("it resumes sooner than {least} after it froze"))
        });
    }

    /// Records that a VM takes room on its host in this step, so that [`Self::look_at_rooms`] checks that host.
    pub(super) fn takes_room(&mut self, id: VmId) {
        self.taken_of.extend(self.vms.get(&id).map(|vm| vm.host));
    }

    /// Checks that the VMs fit on each host on which a VM took room in this step.
    pub(super) fn look_at_rooms(&mut self) {
        while let Some(id) = self.taken_of.pop_first() {
            let Some(offer) = self.hosts.get(&id).copied() else {
                self.report_violation(format!("a VM is placed on {id}, which never joined"));
                continue;
            };
            let there = self.vms.values().filter(|vm| vm.host == id);
            let held = there.fold(ResourceVector::of_vcpus(0), |sum, vm| sum.plus_room(&vm.held()));
            self.require(offer.holds(&held), || {
                format!("the VMs on {id} have {held}, and it offers {offer}")
            });
        }
    }

    /// Requires that a VM gets existing processors of its host, in the right tier, that no other VM
    /// has in that tier.
    pub(super) fn check_placement(&mut self, id: VmId, tier: Tier, processors: &[u32]) {
        let (host, is_spot) = match self.vms.get(&id) {
            Some(vm) => (vm.host, vm.market == Market::Spot),
            None => {
                return self
                    .report_violation(format!("{id} has processors but was never launched"));
            }
        };
        let right = self.setup.terms.spot == SpotPlaces::Background
            && is_spot == (tier == Tier::Background);
        self.require(right, || format!("{id} is in the {tier} of its processors"));
        let count = self.hosts.get(&host).map_or(0, |host| host.vcpus);
        for processor in processors {
            self.require(*processor < count, || format!("{host} has no processor {processor}"));
        }
        let taken = self.vms.iter().find(|(other, vm)| {
            let there = vm.host == host && matches!(&vm.places, Some((t, p)) if *t == tier && p.iter().any(|p| processors.contains(p)));
            **other != id && there
        });
        if let Some(other) = taken.map(|(other, _)| *other) {
            self.report_violation(format!(
                "{id} has a processor of {host} whose {tier} is held by {other}"
            ));
        }
        if let Some(vm) = self.vms.get_mut(&id) {
            let right = vm.kind.vcpus as usize == processors.len();
            vm.places = Some((tier, processors.to_vec()));
            self.require(right, || format!("{id} has not one processor for each vCPU"));
        }
    }

    /// Requires that a VM in the background is left at most a whole processor, on one that it is placed on.
    pub(super) fn check_supply(&mut self, id: VmId, vcpu: u32, share: Ppm) {
        self.check_vm(id, &ALIVE, "is left a share of a processor", |vm| {
            let there =
                matches!(&vm.places, Some((Tier::Background, on)) if (vcpu as usize) < on.len());
            match (there, share <= Ppm::ONE) {
                (false, _) => Some(format!("it has no vCPU {vcpu} in the background")),
                (_, false) => Some(format!("{share} of a processor is more than it")),
                _ => None,
            }
        });
    }
}
