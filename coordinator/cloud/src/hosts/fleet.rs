//! The hosts of a provider and the free room on each.

use std::collections::BTreeSet;

use dormouse_units::{ById, HostId, Time, VmId};

use crate::{Host, Market};

/// The hosts, what is free on each, and the VMs that hold the rest.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    hosts: ById<HostId, Carrier>,
    /// VMs that waited for room and have it now, in the order in which they got it.
    placed: Vec<VmId>,
    /// Hosts where parked VMs may have their room again.
    regained: BTreeSet<HostId>,
    /// The hosts that changed, in the order in which they did; the oldest are forgotten.
    changes: Vec<HostId>,
    /// Number of changes that are forgotten.
    forgotten: usize,
}

/// A host and what it carries.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// Room that no VM holds: the full view.
    pub(super) free: Host,
    /// Free room together with all that preemptible VMs yield: the partial view.
    pub(super) partial: Host,
    vms: ById<VmId, Held>,
    /// VMs that wait for the room of others, first come first, and the room that each still lacks.
    waiting: Vec<(VmId, Host)>,
    /// VMs that made room for others by hibernating, in the order in which they froze, and the room
    /// that each takes again as soon as it is free.
    parked: Vec<(VmId, Host)>,
}

/// Part of a VM's room that others get if the provider wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// Nothing: the VM stays, or its end is already decided.
    Nothing,
    /// The room that the VM leaves while it is hibernated.
    Hibernating,
    /// All of the room: the VM ends.
    All,
}

/// Room that a VM holds of its host, and the part of it that others can get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) room: Host,
    yields: Yields,
    /// Instant since which the VM is charged without a break; `None`: it is not charged.
    pub(super) since: Option<Time>,
}

impl Held {
    /// Room that others get of the VM's if the provider wants it.
    pub(super) const fn yielded(&self) -> Host {
        match self.yields {
            Yields::Nothing => Host::NONE,
            Yields::Hibernating => self.room.left_while_hibernated(),
            Yields::All => self.room,
        }
    }
}

impl Carrier {
    /// The VMs that can still be told to make room, in the order of their ids.
    pub(super) fn preemptible(&self) -> impl Iterator<Item = (VmId, &Held)> {
        let can_be = |held: &Held| held.yields != Yields::Nothing;
        self.vms.iter().filter(move |(_, held)| can_be(held)).map(|(&vm, held)| (vm, held))
    }

    /// Number of VMs that can still be told to make room.
    pub(super) fn preemptible_count(&self) -> usize {
        self.preemptible().count()
    }

    /// A copy of the host that is built anew from the VMs on it: the preemptible ones take no room.
    pub(super) fn without_preemptible(&self) -> Self {
        let mut copy = self.clone();
        copy.free = self.preemptible().fold(self.free, |sum, (_, held)| sum.with(&held.yielded()));
        copy
    }

    /// Free room that no parked VM waits for.
    pub(super) fn spare(&self) -> Host {
        self.parked.iter().fold(self.free, |left, (_, room)| left.without(room))
    }
}

impl Fleet {
    /// A host joins, or comes back empty.
    pub fn join(&mut self, id: HostId, host: Host) {
        let empty = Carrier {
            free: host,
            partial: host,
            vms: ById::new(),
            waiting: Vec::new(),
            parked: Vec::new(),
        };
        self.hosts.insert(id, empty);
        self.changed(id);
    }

    /// A host is gone; returns the VMs that it carried, in the order of their ids.
    pub fn leave(&mut self, id: HostId) -> Vec<VmId> {
        let Some(gone) = self.hosts.remove(&id) else { return Vec::new() };
        self.changed(id);
        gone.vms.keys().copied().collect()
    }

    /// Ids of all hosts, ascending.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// All hosts with what they carry, in the order of their ids.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, &Carrier)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }

    /// One host with what it carries.
    pub(super) fn host(&self, id: HostId) -> Option<&Carrier> {
        self.hosts.get(&id)
    }

    /// Number of changes so far to anything that a placer looks at.
    pub(super) fn changes(&self) -> usize {
        self.forgotten + self.changes.len()
    }

    /// Hosts changed since the count of changes was `changes`, some perhaps repeated; `None`: the
    /// oldest of these changes are forgotten.
    pub(super) fn changed_since(&self, changes: usize) -> Option<&[HostId]> {
        self.changes.get(changes.checked_sub(self.forgotten)?..)
    }

    /// Free room on a host; none if there is no such host.
    #[must_use]
    pub fn free(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, |host| host.free)
    }

    /// Free room on a host that no parked VM waits for: all that spot VMs can have.
    #[must_use]
    pub fn spare(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, Carrier::spare)
    }

    /// Spot VMs on a host that can still be told to make room, each with the room that it would
    /// make now.
    pub fn preemptible(&self, id: HostId) -> impl Iterator<Item = (VmId, Host)> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(Carrier::preemptible).map(|(vm, held)| (vm, held.yielded()))
    }

    /// A VM goes on a host. True if all its room is free now; otherwise it gets what is lacking
    /// from VMs there as they leave.
    pub fn place(&mut self, id: HostId, vm: VmId, room: Host, market: Market) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let now = host.free.common(&room);
        let lacks = room.without(&now);
        let yields = if market == Market::Spot { Yields::All } else { Yields::Nothing };
        host.vms.insert(vm, Held { room: now, yields, since: None });
        if lacks != Host::NONE {
            host.waiting.push((vm, lacks));
        }
        host.free = host.free.without(&now);
        self.changed(id);
        lacks == Host::NONE
    }

    /// A VM will end, or leaves its room to a certain VM: no other VM may count on that room.
    pub fn ends(&mut self, id: HostId, vm: VmId) {
        self.yields(id, vm, Yields::Nothing);
    }

    /// From now on others get `yields` of a VM's room if the provider wants it.
    pub fn yields(&mut self, id: HostId, vm: VmId, yields: Yields) {
        if let Some(held) = self.held_mut(id, vm).filter(|held| held.yields != yields) {
            held.yields = yields;
            self.changed(id);
        }
    }

    /// Sets the instant since which a VM is charged; `None`: it is not charged.
    pub fn charged(&mut self, id: HostId, vm: VmId, since: Option<Time>) {
        if let Some(held) = self.held_mut(id, vm) {
            held.since = since;
            self.changed(id);
        }
    }

    /// A VM has left this room to others and takes it again as soon as it is free.
    pub fn park(&mut self, id: HostId, vm: VmId, room: Host) {
        if let Some(host) = self.hosts.get_mut(&id).filter(|host| host.vms.contains_key(&vm)) {
            host.parked.push((vm, room));
            self.regained.insert(id);
            self.changed(id);
        }
    }

    /// A VM is no longer parked: it takes no room again by itself.
    pub fn unpark(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let before = host.parked.len();
        host.parked.retain(|(parked, _)| *parked != vm);
        if host.parked.len() < before {
            self.changed(id);
        }
    }

    /// VMs that are parked on a host, in the order in which they were parked.
    pub fn parked(&self, id: HostId) -> impl Iterator<Item = VmId> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(|host| &host.parked).map(|(vm, _)| *vm)
    }

    /// Hosts with parked VMs where room has come free or a VM was parked since the last call, or
    /// where a VM [looks again](Self::look_again), in the order of their ids.
    pub fn regained(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.regained)
    }

    /// The VMs that are parked on a host may have their room now.
    pub fn look_again(&mut self, id: HostId) {
        if self.hosts.get(&id).is_some_and(|host| !host.parked.is_empty()) {
            self.regained.insert(id);
        }
    }

    /// A VM takes `more` room of its host; false, and nothing changes, if that is not free.
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
        host.parked.retain(|(parked, _)| *parked != vm);
        self.placed.retain(|placed| *placed != vm);
        if let Some(held) = host.vms.remove(&vm) {
            self.give(id, held.room);
        }
    }

    /// Room that a VM holds of its host; none if it is not there.
    #[must_use]
    pub fn held(&self, id: HostId, vm: VmId) -> Host {
        self.hosts.get(&id).and_then(|host| host.vms.get(&vm)).map_or(Host::NONE, |held| held.room)
    }

    /// Whether a VM still waits for room of other VMs.
    #[must_use]
    pub fn waits(&self, id: HostId, vm: VmId) -> bool {
        self.hosts.get(&id).is_some_and(|host| host.waiting.iter().any(|(one, _)| *one == vm))
    }

    /// VMs that have got all the room they waited for since the last call.
    pub fn placed(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.placed)
    }

    /// Room is free again: VMs that wait for it get it first.
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
        self.look_again(id);
        self.changed(id);
    }

    fn held_mut(&mut self, id: HostId, vm: VmId) -> Option<&mut Held> {
        self.hosts.get_mut(&id)?.vms.get_mut(&vm)
    }

    /// Something about a host has changed: placers look at it anew.
    fn changed(&mut self, id: HostId) {
        if let Some(host) = self.hosts.get_mut(&id) {
            let rooms = host.preemptible().map(|(_, held)| held.yielded());
            host.partial = rooms.fold(host.free, |sum, room| sum.with(&room));
        }
        // A placer that would have to look at so many changes may as well look at all hosts. The
        // later half is kept: without it, placers that lack only the last few changes would look at
        // all hosts.
        if self.changes.len() >= 64 + 2 * self.hosts.len() {
            let older = self.changes.len() / 2;
            self.changes.drain(..older);
            self.forgotten += older;
        }
        self.changes.push(id);
    }
}
