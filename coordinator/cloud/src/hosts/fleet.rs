//! Hosts of a provider with their free room.

use std::collections::BTreeSet;

use dormouse_units::{ById, HostId, Time, VmId};

use crate::{Market, ResourceVector};

/// The hosts, the VMs on each, and the free room.
#[derive(Clone, Debug, Default)]
pub struct HostFleet {
    hosts: ById<HostId, OccupiedHost>,
    /// VMs that got the room they waited for, in the order in which they got it.
    placed: Vec<VmId>,
    /// Hosts on which hibernated VMs may get their room back.
    regained: BTreeSet<HostId>,
    /// Hosts that changed, in order; the oldest entries are dropped.
    changes: Vec<HostId>,
    /// Number of entries dropped from `changes`.
    forgotten: usize,
}

/// A host with the VMs on it.
#[derive(Clone, Debug)]
pub(super) struct OccupiedHost {
    /// Room that no VM of the host holds (the full view of the host).
    pub(super) free: ResourceVector,
    /// Free room plus the room that preemptible VMs would free (the partial view of the host).
    pub(super) partial: ResourceVector,
    vms: ById<VmId, HeldRoom>,
    /// VMs waiting for room that other VMs hold, in order, each with the room that the VM still lacks.
    waiting: Vec<(VmId, ResourceVector)>,
    /// VMs hibernated to make room for others, in order, each with the room that the VM takes back
    /// as soon as that room is free.
    parked: Vec<(VmId, ResourceVector)>,
}

/// The part of a VM's room that the provider can give to other VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YieldedRoom {
    /// Other VMs can get no room of the VM: it stays, or its end is already decided.
    Nothing,
    /// Other VMs can get the room that the VM leaves while it is hibernated.
    Hibernating,
    /// Other VMs can get all of the VM's room, because the VM is ended.
    All,
}

/// Room that a VM holds on its host, and the part of that room that other VMs can get.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldRoom {
    pub(super) room: ResourceVector,
    yields: YieldedRoom,
    /// Start of the present uninterrupted charging; `None`: the VM is not charged.
    pub(super) since: Option<Time>,
}

impl HeldRoom {
    /// The room that other VMs can get from this VM.
    pub(super) const fn yielded_room(&self) -> ResourceVector {
        match self.yields {
            YieldedRoom::Nothing => ResourceVector::NONE,
            YieldedRoom::Hibernating => self.room.left_while_hibernated(),
            YieldedRoom::All => self.room,
        }
    }
}

impl OccupiedHost {
    /// Spot VMs that can still be preempted to make room, ordered by id.
    pub(super) fn preemptible_vms(&self) -> impl Iterator<Item = (VmId, &HeldRoom)> {
        let can_be = |held: &HeldRoom| held.yields != YieldedRoom::Nothing;
        self.vms.iter().filter(move |(_, held)| can_be(held)).map(|(&vm, held)| (vm, held))
    }

    /// Number of spot VMs that can still be preempted to make room.
    pub(super) fn preemptible_count(&self) -> usize {
        self.preemptible_vms().count()
    }

    /// A copy of the host, rebuilt from its VMs, in which the preemptible ones take no room.
    pub(super) fn without_preemptible(&self) -> Self {
        let mut copy = self.clone();
        copy.free = self
            .preemptible_vms()
            .fold(self.free, |sum, (_, held)| sum.plus_room(&held.yielded_room()));
        copy
    }

    /// Free room that is not reserved for parked VMs (those hibernated to make room).
    pub(super) fn spare_room(&self) -> ResourceVector {
        self.parked.iter().fold(self.free, |left, (_, room)| left.minus_room(room))
    }
}

impl HostFleet {
    /// Adds a host; a host that comes back becomes empty.
    pub fn add_host(&mut self, id: HostId, host: ResourceVector) {
        let empty = OccupiedHost {
            free: host,
            partial: host,
            vms: ById::new(),
            waiting: Vec::new(),
            parked: Vec::new(),
        };
        self.hosts.insert(id, empty);
        self.note_change(id);
    }

    /// Removes a host; returns the host's VMs, ordered by id.
    pub fn remove_host(&mut self, id: HostId) -> Vec<VmId> {
        let Some(gone) = self.hosts.remove(&id) else { return Vec::new() };
        self.note_change(id);
        gone.vms.keys().copied().collect()
    }

    /// Ids of all hosts, ascending.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + '_ {
        self.hosts.keys().copied()
    }

    /// All hosts with their VMs, ordered by id.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (HostId, &OccupiedHost)> {
        self.hosts.iter().map(|(id, host)| (*id, host))
    }

    /// Returns a host with its VMs; `None` if no host has this id.
    pub(super) fn host_by_id(&self, id: HostId) -> Option<&OccupiedHost> {
        self.hosts.get(&id)
    }

    /// Number of changes so far that placers care about.
    pub(super) fn change_count(&self) -> usize {
        self.forgotten + self.changes.len()
    }

    /// Hosts that have changed since the count of changes was `changes`, possibly repeated; `None`:
    /// the list of changes no longer goes back so far.
    pub(super) fn changed_since(&self, changes: usize) -> Option<&[HostId]> {
        self.changes.get(changes.checked_sub(self.forgotten)?..)
    }

    /// Free room on a host; none if the host doesn't exist.
    #[must_use]
    pub fn free_room(&self, id: HostId) -> ResourceVector {
        self.hosts.get(&id).map_or(ResourceVector::NONE, |host| host.free)
    }

    /// Free room on a host that is not reserved for parked VMs (those hibernated to make room), and
    /// so available to spot VMs.
    #[must_use]
    pub fn spare_room(&self, id: HostId) -> ResourceVector {
        self.hosts.get(&id).map_or(ResourceVector::NONE, OccupiedHost::spare_room)
    }

    /// Spot VMs on a host that can still be preempted to make room, each with the room that it would free.
    pub fn preemptible_vms(&self, id: HostId) -> impl Iterator<Item = (VmId, ResourceVector)> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(OccupiedHost::preemptible_vms).map(|(vm, held)| (vm, held.yielded_room()))
    }

    /// Places a VM on a host. Returns true if all its room is free now; else the VM gets the missing room as other VMs
    /// leave the host.
    pub fn place_vm(&mut self, id: HostId, vm: VmId, room: ResourceVector, market: Market) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let now = host.free.common_part(&room);
        let lacks = room.minus_room(&now);
        let yields = if market == Market::Spot { YieldedRoom::All } else { YieldedRoom::Nothing };
        host.vms.insert(vm, HeldRoom { room: now, yields, since: None });
        if lacks != ResourceVector::NONE {
            host.waiting.push((vm, lacks));
        }
        host.free = host.free.minus_room(&now);
        self.note_change(id);
        lacks == ResourceVector::NONE
    }

    /// Records that a VM will end, or leaves its room to a certain VM, so that no other VM can get that room.
    pub fn mark_ending(&mut self, id: HostId, vm: VmId) {
        self.set_yielded(id, vm, YieldedRoom::Nothing);
    }

    /// Sets the part of a VM's room that other VMs can get.
    pub fn set_yielded(&mut self, id: HostId, vm: VmId, yields: YieldedRoom) {
        if let Some(held) = self.held_mut(id, vm).filter(|held| held.yields != yields) {
            held.yields = yields;
            self.note_change(id);
        }
    }

    /// Sets the time since which a VM is charged; `None`: it is not charged.
    pub fn set_charged_since(&mut self, id: HostId, vm: VmId, since: Option<Time>) {
        if let Some(held) = self.held_mut(id, vm) {
            held.since = since;
            self.note_change(id);
        }
    }

    /// Parks a VM that hibernated and left `room` to other VMs; the VM takes the room back as soon as it is free.
    pub fn park_vm(&mut self, id: HostId, vm: VmId, room: ResourceVector) {
        if let Some(host) = self.hosts.get_mut(&id).filter(|host| host.vms.contains_key(&vm)) {
            host.parked.push((vm, room));
            self.regained.insert(id);
            self.note_change(id);
        }
    }

    /// Removes a hibernated VM from the parked ones (those that wait to get their room back); this
    /// alone does not give the room back.
    pub fn unpark_vm(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let before = host.parked.len();
        host.parked.retain(|(parked, _)| *parked != vm);
        if host.parked.len() < before {
            self.note_change(id);
        }
    }

    /// VMs that were hibernated on a host to make room and wait to get it back, in the order of their hibernation.
    pub fn parked_vms(&self, id: HostId) -> impl Iterator<Item = VmId> + '_ {
        let host = self.hosts.get(&id).into_iter();
        host.flat_map(|host| &host.parked).map(|(vm, _)| *vm)
    }

    /// Hosts with parked VMs where room was freed or a VM was parked since the last call, or for
    /// which [`look_again`](Self::look_again) was called; ordered by id.
    pub fn take_regained(&mut self) -> BTreeSet<HostId> {
        std::mem::take(&mut self.regained)
    }

    /// Marks a host, so that the provider tries again to resume the hibernated VMs parked on the host.
    pub fn look_again(&mut self, id: HostId) {
        if self.hosts.get(&id).is_some_and(|host| !host.parked.is_empty()) {
            self.regained.insert(id);
        }
    }

    /// Gives a VM `more` room of its host; false, without a change, if that room is not free.
    pub fn take_room(&mut self, id: HostId, vm: VmId, more: ResourceVector) -> bool {
        let Some(host) = self.hosts.get_mut(&id) else { return false };
        let Some(held) = host.vms.get_mut(&vm) else { return false };
        if !host.free.holds(&more) {
            return false;
        }
        held.room = held.room.plus_room(&more);
        host.free = host.free.minus_room(&more);
        self.note_change(id);
        true
    }

    /// Frees a part of the room that a VM holds.
    pub fn release_room(&mut self, id: HostId, vm: VmId, part: ResourceVector) {
        let Some(held) = self.held_mut(id, vm) else { return };
        let part = held.room.common_part(&part);
        held.room = held.room.minus_room(&part);
        self.give_room(id, part);
    }

    /// Removes a VM and frees all of its room.
    pub fn remove(&mut self, id: HostId, vm: VmId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        host.waiting.retain(|(waits, _)| *waits != vm);
        host.parked.retain(|(parked, _)| *parked != vm);
        self.placed.retain(|placed| *placed != vm);
        if let Some(held) = host.vms.remove(&vm) {
            self.give_room(id, held.room);
        }
    }

    /// Room that a VM holds on its host; none if the VM is not on a host.
    #[must_use]
    pub fn held_room(&self, id: HostId, vm: VmId) -> ResourceVector {
        self.hosts
            .get(&id)
            .and_then(|host| host.vms.get(&vm))
            .map_or(ResourceVector::NONE, |held| held.room)
    }

    /// True if a VM still waits for room of other VMs.
    #[must_use]
    pub fn waits_for_room(&self, id: HostId, vm: VmId) -> bool {
        self.hosts.get(&id).is_some_and(|host| host.waiting.iter().any(|(one, _)| *one == vm))
    }

    /// VMs that got all of their missing room since the last call.
    pub fn take_placed(&mut self) -> Vec<VmId> {
        std::mem::take(&mut self.placed)
    }

    /// Adds free room to a host; VMs that wait for it get it first.
    fn give_room(&mut self, id: HostId, mut room: ResourceVector) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        for (vm, lacks) in &mut host.waiting {
            let part = lacks.common_part(&room);
            *lacks = lacks.minus_room(&part);
            room = room.minus_room(&part);
            if let Some(held) = host.vms.get_mut(vm) {
                held.room = held.room.plus_room(&part);
            }
        }
        let there = host.waiting.extract_if(.., |(_, lacks)| *lacks == ResourceVector::NONE);
        self.placed.extend(there.map(|(vm, _)| vm));
        host.free = host.free.plus_room(&room);
        self.look_again(id);
        self.note_change(id);
    }

    fn held_mut(&mut self, id: HostId, vm: VmId) -> Option<&mut HeldRoom> {
        self.hosts.get_mut(&id)?.vms.get_mut(&vm)
    }

    /// Records that a host changed, so that placers examine the host again.
    fn note_change(&mut self, id: HostId) {
        if let Some(host) = self.hosts.get_mut(&id) {
            let rooms = host.preemptible_vms().map(|(_, held)| held.yielded_room());
            host.partial = rooms.fold(host.free, |sum, room| sum.plus_room(&room));
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
