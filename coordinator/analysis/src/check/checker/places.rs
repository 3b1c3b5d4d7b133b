//! Checks of the processors that VMs are placed on and of the shares that background VMs are left.

use dormouse_cloud::{Market, SpotPlaces};
use dormouse_units::{Ppm, Tier, VmId};

use super::{ALIVE, Checker};

impl Checker<'_> {
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
