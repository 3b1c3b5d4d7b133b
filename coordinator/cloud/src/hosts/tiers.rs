//! Assignment of VMs to processors, where spot VMs run in the background of others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dormouse_units::{HostId, Tier, VmId};

/// Processors of all hosts. Each has two places: one in the foreground, whose VM gets all that it
/// uses, and one in the background, whose VM gets what the foreground leaves.
#[derive(Clone, Debug, Default)]
pub struct HostTiers {
    hosts: BTreeMap<HostId, HostProcessors>,
    vms: BTreeMap<VmId, PlacedVm>,
}

/// Processors of one host, with the VMs that have places on them.
#[derive(Clone, Debug)]
struct HostProcessors {
    count: u32,
    /// Processors with an occupied place: for each tier, the VM and the index of its vCPU.
    taken: BTreeMap<u32, [Option<(VmId, u32)>; 2]>,
}

/// The places of a VM on its host's processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedVm {
    /// The host that the VM is on.
    pub host: HostId,
    /// The tier of all the VM's places.
    pub tier: Tier,
    /// The processor for each of the VM's vCPUs.
    pub processors: Vec<u32>,
}

impl HostProcessors {
    fn is_free(&self, processor: u32, tier: Tier) -> bool {
        self.taken.get(&processor).is_none_or(|places| places[tier as usize].is_none())
    }

    /// Number of processors with a free place in this tier, and of entirely free processors.
    fn count_free(&self, tier: Tier) -> (u32, u32) {
        let taken = self.taken.values().filter(|places| places[tier as usize].is_some()).count();
        let less = |n: usize| self.count.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX));
        (less(taken), less(self.taken.len()))
    }

    /// Chooses processors for a VM of `vcpus` vCPUs: entirely free ones first, then by number. `None` if too few are
    /// available.
    fn choose_processors(&self, vcpus: u32, tier: Tier) -> Option<Vec<u32>> {
        let unused = (0..self.count).filter(|processor| !self.taken.contains_key(processor));
        let shared = self.taken.keys().copied().filter(|one| self.is_free(*one, tier));
        let chosen: Vec<u32> = unused.chain(shared).take(vcpus as usize).collect();
        (chosen.len() == vcpus as usize).then_some(chosen)
    }
}

impl HostTiers {
    /// Adds a host of `count` processors; a host that comes back becomes empty.
    pub fn add_host(&mut self, id: HostId, count: u32) {
        self.remove_host(id);
        self.hosts.insert(id, HostProcessors { count, taken: BTreeMap::new() });
    }

    /// Removes a host with its processors.
    pub fn remove_host(&mut self, id: HostId) {
        self.hosts.remove(&id);
        self.vms.retain(|_, placed| placed.host != id);
    }

    /// Chooses a host for a VM of `vcpus` vCPUs in the background, among those for which
    /// `have_room` is true: the host with most entirely free processors, among equals the one with
    /// most free background places, then the one with the lowest id.
    pub fn for_background(&self, vcpus: u32, have_room: impl Fn(HostId) -> bool) -> Option<HostId> {
        let free = |host: &HostProcessors| host.count_free(Tier::Background);
        let fit =
            |(id, host): &(&HostId, &HostProcessors)| free(host).0 >= vcpus && have_room(**id);
        let fitting = self.hosts.iter().filter(fit);
        let best = fitting.max_by_key(|(id, host)| (free(host).1, free(host).0, Reverse(**id)));
        best.map(|(id, _)| *id)
    }

    /// Number of processors of a host with a free place in this tier.
    #[must_use]
    pub fn free_places(&self, id: HostId, tier: Tier) -> u32 {
        self.hosts.get(&id).map_or(0, |host| host.count_free(tier).0)
    }

    /// Assigns a VM `vcpus` places of this tier on a host; returns false, without a change, if too few are free.
    pub fn take_places(&mut self, id: HostId, vm: VmId, tier: Tier, vcpus: u32) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let Some(processors) = host.choose_processors(vcpus, tier) else { return false };
        for (vcpu, processor) in (0..).zip(&processors) {
            host.taken.entry(*processor).or_default()[tier as usize] = Some((vm, vcpu));
        }
        self.vms.insert(vm, PlacedVm { host: id, tier, processors });
        true
    }

    /// Frees a VM's places on processors, if the VM has any.
    pub fn leave_places(&mut self, vm: VmId) {
        let Some(placed) = self.vms.remove(&vm) else { return };
        let Some(host) = self.hosts.get_mut(&placed.host) else { return };
        for processor in placed.processors {
            if let Some(places) = host.taken.get_mut(&processor) {
                places[placed.tier as usize] = None;
                if *places == [None; 2] {
                    host.taken.remove(&processor);
                }
            }
        }
    }

    /// Places of a VM on processors; `None` if the VM has none, for example while it is hibernated.
    #[must_use]
    pub fn vm_places(&self, vm: VmId) -> Option<&PlacedVm> {
        self.vms.get(&vm)
    }

    /// All VMs that have places on processors, ordered by id.
    pub fn all_places(&self) -> impl Iterator<Item = (VmId, &PlacedVm)> {
        self.vms.iter().map(|(vm, placed)| (*vm, placed))
    }

    /// VMs with places in the background, ordered by id.
    pub fn background_places(&self) -> impl Iterator<Item = (VmId, &PlacedVm)> {
        self.all_places().filter(|(_, placed)| placed.tier == Tier::Background)
    }

    /// The VM in the foreground of a processor, with the index of its vCPU there; `None`: the foreground is free.
    #[must_use]
    pub fn foreground_vm(&self, id: HostId, processor: u32) -> Option<(VmId, u32)> {
        self.hosts.get(&id)?.taken.get(&processor)?[Tier::Foreground as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_go_where_nobody_is_before_they_share_a_processor() {
        let (a, b) = (HostId::new(0), HostId::new(1));
        let [spot, own, more, late] = [0, 1, 2, 3].map(VmId::new);
        let mut tiers = HostTiers::default();
        tiers.add_host(a, 4);
        tiers.add_host(b, 4);
        let any = |_| true;
        assert_eq!(tiers.for_background(2, any), Some(a));
        assert!(tiers.take_places(a, spot, Tier::Background, 2));
        assert_eq!(tiers.for_background(2, any), Some(b), "all of its processors are unused");
        assert_eq!(tiers.for_background(2, |id| id == a), Some(a));
        assert_eq!(
            (tiers.for_background(5, any), tiers.for_background(3, |id| id == a)),
            (None, None)
        );

        assert!(tiers.take_places(a, own, Tier::Foreground, 3));
        assert!(!tiers.take_places(a, more, Tier::Foreground, 2), "one is left");
        assert_eq!(tiers.vm_places(own).map(|p| p.processors.clone()), Some(vec![2, 3, 0]));
        assert_eq!(tiers.foreground_vm(a, 0), Some((own, 2)));
        assert_eq!((tiers.foreground_vm(a, 1), tiers.foreground_vm(b, 0)), (None, None));

        // A VM that hibernates leaves its places to others, and has other places when it is back.
        tiers.leave_places(spot);
        assert_eq!(tiers.vm_places(spot), None);
        assert!(tiers.take_places(a, late, Tier::Background, 1));
        assert!(tiers.take_places(a, spot, Tier::Background, 2));
        assert_eq!(tiers.vm_places(late).map(|p| p.processors.clone()), Some(vec![1]));
        assert_eq!(tiers.vm_places(spot).map(|p| p.processors.clone()), Some(vec![0, 2]));
        assert_eq!(tiers.background_places().map(|(vm, _)| vm).collect::<Vec<_>>(), [spot, late]);
        tiers.remove_host(a);
        assert_eq!((tiers.vm_places(own), tiers.background_places().count()), (None, 0));
    }
}
