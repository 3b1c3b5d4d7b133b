//! What is free on which host.

use dormouse_units::{ById, HostId, Time, VmId};

use crate::{Host, Market};

/// The hosts, what is free on each, and the VMs that hold the rest.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    hosts: ById<HostId, Carrier>,
    /// VMs that waited for room and have it now, in the order in which they got it.
    placed: Vec<VmId>,
    /// The hosts that changed, in the order in which they did; the oldest are forgotten.
    changes: Vec<HostId>,
    /// How many changes are forgotten.
    forgotten: usize,
}

/// A host and what it carries.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// What nobody holds: the full view.
    pub(super) free: Host,
    /// What would be free without its preemptible VMs: the partial view.
    pub(super) partial: Host,
    vms: ById<VmId, Held>,
    /// What VMs that wait for others to end still lack, first come first.
    waiting: Vec<(VmId, Host)>,
}

/// What a VM holds of its host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) room: Host,
    /// Others may have its room: a spot VM whose end is not decided yet.
    preemptible: bool,
    /// Since when it is charged without a break, if it is.
    pub(super) since: Option<Time>,
}

impl Carrier {
    /// The VMs that can still be told to end, in the order of their ids.
    pub(super) fn preemptible(&self) -> impl Iterator<Item = (VmId, &Held)> {
        self.vms.iter().filter(|(_, held)| held.preemptible).map(|(&vm, held)| (vm, held))
    }

    /// How many these are.
    pub(super) fn preemptible_count(&self) -> usize {
        self.vms.values().filter(|held| held.preemptible).count()
    }
}

impl Fleet {
    /// A host joins, or comes back empty.
    pub fn join(&mut self, id: HostId, host: Host) {
        let empty = Carrier { free: host, partial: host, vms: ById::new(), waiting: Vec::new() };
        self.hosts.insert(id, empty);
        self.changed(id);
    }

    /// A host is gone; the VMs that it carried, in order.
    pub fn leave(&mut self, id: HostId) -> Vec<VmId> {
        let Some(gone) = self.hosts.remove(&id) else { return Vec::new() };
        self.changed(id);
        gone.vms.keys().copied().collect()
    }

    /// All hosts, in order.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// All hosts with what they carry, in order.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, &Carrier)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }

    /// One host with what it carries.
    pub(super) fn host(&self, id: HostId) -> Option<&Carrier> {
        self.hosts.get(&id)
    }

    /// How often anything has changed that a placer looks at.
    pub(super) fn changes(&self) -> usize {
        self.forgotten + self.changes.len()
    }

    /// The hosts that have changed since so many changes, some perhaps several times; `None`: so long
    /// ago that it is forgotten.
    pub(super) fn changed_since(&self, changes: usize) -> Option<&[HostId]> {
        self.changes.get(changes.checked_sub(self.forgotten)?..)
    }

    /// What is free on a host; nothing where there is none.
    #[must_use]
    pub fn free(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, |host| host.free)
    }

    /// The spot VMs on a host that can still be told to end, and what each holds now.
    pub fn preemptible(&self, id: HostId) -> impl Iterator<Item = (VmId, Host)> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(Carrier::preemptible).map(|(vm, held)| (vm, held.room))
    }

    /// A VM goes on a host. Whether all its room is there now: what is lacking it gets from VMs
    /// there as they end.
    pub fn place(&mut self, id: HostId, vm: VmId, room: Host, market: Market) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let now = host.free.common(&room);
        let lacks = room.without(&now);
        let preemptible = market == Market::Spot;
        host.vms.insert(vm, Held { room: now, preemptible, since: None });
        if lacks != Host::NONE {
            host.waiting.push((vm, lacks));
        }
        host.free = host.free.without(&now);
        self.changed(id);
        lacks == Host::NONE
    }

    /// A VM will end: nobody else may count on its room.
    pub fn ends(&mut self, id: HostId, vm: VmId) {
        if let Some(held) = self.held_mut(id, vm) {
            held.preemptible = false;
            self.changed(id);
        }
    }

    /// Since when a VM is charged; `None`: it is not.
    pub fn charged(&mut self, id: HostId, vm: VmId, since: Option<Time>) {
        if let Some(held) = self.held_mut(id, vm) {
            held.since = since;
            self.changed(id);
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
        host.free = host.free.without(&more);
        self.changed(id);
        true
    }

    /// A VM gives back a part of what it holds.
    pub fn release(&mut self, id: HostId, vm: VmId, part: Host) {
        let Some(held) = self.held_mut(id, vm) else { return };
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
        host.free = host.free.with(&room);
        self.changed(id);
    }

    fn held_mut(&mut self, id: HostId, vm: VmId) -> Option<&mut Held> {
        self.hosts.get_mut(&id)?.vms.get_mut(&vm)
    }

    /// Something of a host is another: placers look at it anew.
    fn changed(&mut self, id: HostId) {
        if let Some(host) = self.hosts.get_mut(&id) {
            let rooms = host.preemptible().map(|(_, held)| held.room);
            host.partial = rooms.fold(host.free, |sum, room| sum.with(&room));
        }
        // Whoever would have to look at so many may as well look at all. The later half is kept: those
        // who know all but the last few would have to look at all as well.
        if self.changes.len() >= 64 + 2 * self.hosts.len() {
            let older = self.changes.len() / 2;
            self.changes.drain(..older);
            self.forgotten += older;
        }
        self.changes.push(id);
    }
}
