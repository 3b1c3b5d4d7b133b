//! Hosts of a provider with their free room.

use std::collections::BTreeSet;

use dormouse_units::{ById, HostId, Time, VmId};

use crate::{Host, Market};

/// The hosts, the VMs on each, and the free room.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    hosts: ById<HostId, Carrier>,
    /// VMs that waited for room and got it, in that order.
    placed: Vec<VmId>,
    /// Hosts where parked VMs may get their room back.
    regained: BTreeSet<HostId>,
    /// Hosts that changed, in order; the oldest entries are dropped.
    changes: Vec<HostId>,
    /// Number of entries dropped from `changes`.
    forgotten: usize,
}

/// A host with the VMs on it.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// Free room: the full view.
    pub(super) free: Host,
    /// Free room plus what preemptible VMs would yield: the partial view.
    pub(super) partial: Host,
    vms: ById<VmId, Held>,
    /// VMs waiting for room of others, in order, each with the room that it still lacks.
    waiting: Vec<(VmId, Host)>,
    /// VMs hibernated to make room for others, in order, each with the room that it takes back as
    /// soon as it is free.
    parked: Vec<(VmId, Host)>,
}

/// The part of a VM's room that the provider can give to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// No room: the VM stays, or its end is already decided.
    Nothing,
    /// The room that the VM leaves while it is hibernated.
    Hibernating,
    /// All of the room: the VM is ended.
    All,
}

/// Room that a VM holds on its host, and what of it others can get.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) room: Host,
    yields: Yields,
    /// Start of the present uninterrupted charging; `None`: the VM is not charged.
    pub(super) since: Option<Time>,
}

impl Held {
    /// The room that others can get from this VM.
    pub(super) const fn yielded(&self) -> Host {
        match self.yields {
            Yields::Nothing => Host::NONE,
            Yields::Hibernating => self.room.left_while_hibernated(),
            Yields::All => self.room,
        }
    }
}

impl Carrier {
    /// VMs that can still be told to make room, ordered by id.
    pub(super) fn preemptible(&self) -> impl Iterator<Item = (VmId, &Held)> {
        let can_be = |held: &Held| held.yields != Yields::Nothing;
        self.vms.iter().filter(move |(_, held)| can_be(held)).map(|(&vm, held)| (vm, held))
    }

    /// Number of VMs that can still be told to make room.
    pub(super) fn preemptible_count(&self) -> usize {
        self.preemptible().count()
    }

    /// A copy of the host, rebuilt from its VMs, in which the preemptible ones take no room.
    pub(super) fn without_preemptible(&self) -> Self {
        let mut copy = self.clone();
        copy.free = self.preemptible().fold(self.free, |sum, (_, held)| sum.with(&held.yielded()));
        copy
    }

    /// Free room that is not reserved for parked VMs.
    pub(super) fn spare(&self) -> Host {
        self.parked.iter().fold(self.free, |left, (_, room)| left.without(room))
    }
}

impl Fleet {
    /// Adds a host, or empties one that comes back.
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

    /// Removes a host; returns its VMs, ordered by id.
    pub fn leave(&mut self, id: HostId) -> Vec<VmId> {
        let Some(gone) = self.hosts.remove(&id) else { return Vec::new() };
        self.changed(id);
        gone.vms.keys().copied().collect()
    }

    /// Ids of all hosts, ascending.
    pub fn ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// All hosts with their VMs, ordered by id.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, &Carrier)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }

    /// One host with its VMs.
    pub(super) fn host(&self, id: HostId) -> Option<&Carrier> {
        self.hosts.get(&id)
    }

    /// Number of changes so far that placers care about.
    pub(super) fn changes(&self) -> usize {
        self.forgotten + self.changes.len()
    }

    /// Hosts changed since the number of changes was `changes`, possibly repeated; `None`: the list
    /// no longer goes back so far.
    pub(super) fn changed_since(&self, changes: usize) -> Option<&[HostId]> {
        self.changes.get(changes.checked_sub(self.forgotten)?..)
    }

    /// Free room on a host; none if it doesn't exist.
    #[must_use]
    pub fn free(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, |host| host.free)
    }

    /// Free room on a host that is not reserved for parked VMs, and so available to spot VMs.
    #[must_use]
    pub fn spare(&self, id: HostId) -> Host {
        self.hosts.get(&id).map_or(Host::NONE, Carrier::spare)
    }

    /// Spot VMs on a host that can still be told to make room, each with the room that it would
    /// make.
    pub fn preemptible(&self, id: HostId) -> impl Iterator<Item = (VmId, Host)> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(Carrier::preemptible).map(|(vm, held)| (vm, held.yielded()))
    }

    /// Places a VM on a host. True if all its room is free now; else it gets the missing room as
    /// VMs there leave.
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

    /// Records that a VM will end, or leaves its room to a certain VM: others can't count on that
    /// room.
    pub fn ends(&mut self, id: HostId, vm: VmId) {
        self.yields(id, vm, Yields::Nothing);
    }

    /// Sets the part of a VM's room that others can get.
    pub fn yields(&mut self, id: HostId, vm: VmId, yields: Yields) {
        if let Some(held) = self.held_mut(id, vm).filter(|held| held.yields != yields) {
            held.yields = yields;
            self.changed(id);
        }
    }

    /// Sets the time since which a VM is charged; `None`: it is not charged.
    pub fn charged(&mut self, id: HostId, vm: VmId, since: Option<Time>) {
        if let Some(held) = self.held_mut(id, vm) {
            held.since = since;
            self.changed(id);
        }
    }

    /// Parks a VM that left this room to others; it takes the room back as soon as it is free.
    pub fn park(&mut self, id: HostId, vm: VmId, room: Host) {
        if let Some(host) = self.hosts.get_mut(&id).filter(|host| host.vms.contains_key(&vm)) {
            host.parked.push((vm, room));
            self.regained.insert(id);
            self.changed(id);
        }
    }

    /// Unparks a VM: it takes no room back by itself.
    pub fn unpark(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let before = host.parked.len();
        host.parked.retain(|(parked, _)| *parked != vm);
        if host.parked.len() < before {
            self.changed(id);
        }
    }

    /// VMs parked on a host, in the order of parking.
    pub fn parked(&self, id: HostId) -> impl Iterator<Item = VmId> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(|host| &host.parked).map(|(vm, _)| *vm)
    }

    /// Hosts with parked VMs where room was freed or a VM was parked since the last call, or for
    /// which [`look_again`](Self::look_again) was called; ordered by id.
    pub fn regained(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.regained)
    }

    /// Marks a host so that the VMs parked there are tried again.
    pub fn look_again(&mut self, id: HostId) {
        if self.hosts.get(&id).is_some_and(|host| !host.parked.is_empty()) {
            self.regained.insert(id);
        }
    }

    /// Gives a VM `more` room of its host; false, without a change, if it is not free.
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

    /// Frees a part of the room that a VM holds.
    pub fn release(&mut self, id: HostId, vm: VmId, part: Host) {
        let Some(held) = self.held_mut(id, vm) else { return };
        let part = held.room.common(&part);
        held.room = held.room.without(&part);
        self.give(id, part);
    }

    /// Removes a VM and frees all of its room.
    pub fn remove(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.waiting.retain(|(waits, _)| *waits != vm);
        host.parked.retain(|(parked, _)| *parked != vm);
        self.placed.retain(|placed| *placed != vm);
        if let Some(held) = host.vms.remove(&vm) {
            self.give(id, held.room);
        }
    }

    /// Room that a VM holds on its host; none if it is not there.
    #[must_use]
    pub fn held(&self, id: HostId, vm: VmId) -> Host {
        self.hosts.get(&id).and_then(|host| host.vms.get(&vm)).map_or(Host::NONE, |held| held.room)
    }

    /// True if a VM still waits for room of other VMs.
    #[must_use]
    pub fn waits(&self, id: HostId, vm: VmId) -> bool {
        self.hosts.get(&id).is_some_and(|host| host.waiting.iter().any(|(one, _)| *one == vm))
    }

    /// VMs that got all of their missing room since the last call.
    pub fn placed(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.placed)
    }

    /// Adds free room, which VMs waiting for it get first.
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

    /// Records that a host changed, so that placers look at it again.
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
