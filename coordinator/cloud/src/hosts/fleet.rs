//! What is free on which host.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::{ById, HostId, VmId};

use crate::{Host, Market};

/// The hosts, what is free on each, and the VMs that hold the rest.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    hosts: BTreeMap<HostId, Carrier>,
    /// The hosts by their free vCPUs.
    by_vcpus: BTreeMap<u32, BTreeSet<HostId>>,
    /// VMs that waited for room and have it now, in the order in which they got it.
    placed: Vec<VmId>,
}

/// A host and what it carries.
#[derive(Clone, Debug)]
struct Carrier {
    free: Host,
    vms: ById<VmId, Held>,
    /// What VMs that wait for others to end still lack, first come first.
    waiting: Vec<(VmId, Host)>,
}

/// What a VM holds of its host.
#[derive(Clone, Copy, Debug)]
struct Held {
    room: Host,
    /// Others may have its room: a spot VM whose end is not decided yet.
    preemptible: bool,
}

impl Fleet {
    /// A host joins, or comes back empty.
    pub fn join(&mut self, id: HostId, host: Host) {
        self.leave(id);
        self.hosts.insert(id, Carrier { free: host, vms: ById::new(), waiting: Vec::new() });
        self.by_vcpus.entry(host.vcpus).or_default().insert(id);
    }

    /// A host is gone; the VMs that it carried, in order.
    pub fn leave(&mut self, id: HostId) -> Vec<VmId> {
        let Some(gone) = self.hosts.remove(&id) else { return Vec::new() };
        self.unlist(id, gone.free.vcpus);
        gone.vms.keys().copied().collect()
    }

    /// All hosts, in order.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// The hosts with at least so many free vCPUs, by how many they have.
    pub fn with_vcpus(
        &self,
        least: u32,
    ) -> impl DoubleEndedIterator<Item = (&u32, &BTreeSet<HostId>)> {
        self.by_vcpus.range(least..)
    }

    /// What is free on a host; nothing where there is none.
    #[must_use]
    pub fn free(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, |host| host.free)
    }

    /// The spot VMs on a host that can still be told to end, and what each holds now.
    pub fn preemptible(&self, id: HostId) -> impl Iterator<Item = (VmId, Host)> + '_ {
        let vms = self.hosts.get(&id).into_iter().flat_map(|host| &host.vms);
        vms.filter(|(_, held)| held.preemptible).map(|(&vm, held)| (vm, held.room))
    }

    /// A VM goes on a host. Whether all its room is there now: what is lacking it gets from VMs
    /// there as they end.
    pub fn place(&mut self, id: HostId, vm: VmId, room: Host, market: Market) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let now = host.free.common(&room);
        let lacks = room.without(&now);
        host.vms.insert(vm, Held { room: now, preemptible: market == Market::Spot });
        if lacks != Host::NONE {
            host.waiting.push((vm, lacks));
        }
        let free = host.free.without(&now);
        self.set_free(id, free);
        lacks == Host::NONE
    }

    /// A VM will end: nobody else may count on its room.
    pub fn ends(&mut self, id: HostId, vm: VmId) {
        if let Some(held) = self.hosts.get_mut(&id).and_then(|host| host.vms.get_mut(&vm)) {
            held.preemptible = false;
        }
    }

    /// A VM takes more of its host, which has it free; false if it hasn't.
    pub fn take(&mut self, id: HostId, vm: VmId, more: Host) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let Some(held) = host.vms.get_mut(&vm) else { return false };
        if !host.free.holds(&more) {
            return false;
        }
        held.room = held.room.with(&more);
        let free = host.free.without(&more);
        self.set_free(id, free);
        true
    }

    /// A VM gives back a part of what it holds.
    pub fn release(&mut self, id: HostId, vm: VmId, part: Host) {
        let held = self.hosts.get_mut(&id).and_then(|host| host.vms.get_mut(&vm));
        let Some(held) = held else { return };
        let part = held.room.common(&part);
        held.room = held.room.without(&part);
        self.give(id, part);
    }

    /// A VM is gone, and gives back all that it holds.
    pub fn remove(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.waiting.retain(|(waits, _)| *waits != vm);
        self.placed.retain(|placed| *placed != vm);
        if let Some(held) = host.vms.remove(&vm) {
            self.give(id, held.room);
        }
    }

    /// What a VM holds of its host.
    #[must_use]
    pub fn held(&self, id: HostId, vm: VmId) -> Host {
        self.hosts.get(&id).and_then(|host| host.vms.get(&vm)).map_or(Host::NONE, |held| held.room)
    }

    /// The VMs that have got all the room that they waited for since this was last asked.
    pub fn placed(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.placed)
    }

    /// Room is free again: those who wait for it have it first.
    fn give(&mut self, id: HostId, mut room: Host) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        for (vm, lacks) in &mut host.waiting {
            let part = lacks.common(&room);
            *lacks = lacks.without(&part);
            room = room.without(&part);
            if let Some(held) = host.vms.get_mut(vm) {
                held.room = held.room.with(&part);
            }
        }
        let there = host.waiting.extract_if(.., |(_, lacks)| *lacks == Host::NONE);
        self.placed.extend(there.map(|(vm, _)| vm));
        let free = host.free.with(&room);
        self.set_free(id, free);
    }

    fn set_free(&mut self, id: HostId, free: Host) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let before = std::mem::replace(&mut host.free, free).vcpus;
        if before != free.vcpus {
            self.unlist(id, before);
            self.by_vcpus.entry(free.vcpus).or_default().insert(id);
        }
    }

    fn unlist(&mut self, id: HostId, vcpus: u32) {
        if let Some(hosts) = self.by_vcpus.get_mut(&vcpus) {
            hosts.remove(&id);
            if hosts.is_empty() {
                self.by_vcpus.remove(&vcpus);
            }
        }
    }
}
