//! Spot VMs that can't be had, or are taken back, because their type has become scarce.

use dormouse_units::{Time, TypeName, VmId};

use super::Provider;
use crate::{Market, Vm, VmState};

/// A change of how many spot VMs of a type there can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilityChange {
    /// The instance type.
    pub kind: TypeName,
    /// Most spot VMs of the type from now on.
    pub vms: u32,
    /// Most spot VMs of the type until now.
    pub before: u32,
    /// VMs that are taken back, as there are more: those launched last.
    pub reclaimed: Vec<VmId>,
}

impl Provider {
    /// Instant of the next change of what can be had; `None`: none is to come.
    #[must_use]
    pub fn next_availability(&self) -> Option<Time> {
        self.availability_changes.first().map(|(at, _)| *at)
    }

    /// Whether the provider says how many spot VMs of this type there can be.
    #[must_use]
    pub fn is_scarce(&self, kind: &TypeName) -> bool {
        self.available.contains_key(kind)
    }

    /// The types of which no spot VM can be had now, nor ever again.
    pub fn exhausted(&self) -> impl Iterator<Item = &TypeName> {
        let comes =
            |kind: &TypeName| self.availability_changes.iter().any(|(_, other)| other == kind);
        let none = self.available.iter().filter(|(_, vms)| **vms == 0).map(|(kind, _)| kind);
        none.filter(move |kind| !comes(kind))
    }

    /// The changes of what can be had until now, one of a type. Where fewer VMs can be had than there
    /// are, those that were launched last are given notice; hibernated ones hold nothing, and one that
    /// has its notice already counts as gone.
    pub fn change_availability(&mut self, now: Time) -> Vec<AvailabilityChange> {
        let mut changed = Vec::new();
        while self.next_availability().is_some_and(|at| at <= now) {
            let Some((_, kind)) = self.availability_changes.pop_first() else { break };
            let Some(trace) = self.availability.get(&kind) else { continue };
            let (next, vms) = (trace.next_change(now), trace.at(now).unwrap_or(u32::MAX));
            self.availability_changes.extend(next.map(|at| (at, kind.clone())));
            let before = self.available.insert(kind.clone(), vms).unwrap_or(0);
            let reclaimed = self.reclaim(&kind);
            if vms > before {
                self.places_came_free(&kind);
            }
            changed.push(AvailabilityChange { kind, vms, before, reclaimed });
        }
        changed
    }

    /// Gives notice to the spot VMs of a type that are more than can be had; returns them.
    pub fn reclaim(&mut self, kind: &TypeName) -> Vec<VmId> {
        let Some(&most) = self.available.get(kind) else { return Vec::new() };
        let stays = |vm: &Vm| {
            let is_up = matches!(vm.state, VmState::Booting | VmState::Running | VmState::Resuming);
            !vm.has_notice && is_up
        };
        let staying = self.spot_of(kind).filter(|(_, vm)| stays(vm));
        let staying: Vec<(VmId, VmState)> = staying.map(|(id, vm)| (id, vm.state)).collect();
        let excess = staying.len().saturating_sub(most as usize);
        // One that is about to run again can't be told anything yet: it is looked at when it runs.
        let told = staying.iter().rev().filter(|(_, state)| *state != VmState::Resuming);
        let reclaimed: Vec<VmId> = told.take(excess).map(|(id, _)| *id).collect();
        for &vm in &reclaimed {
            if !self.hibernates_instead(vm) {
                self.given_notice(vm);
            }
        }
        reclaimed
    }

    /// There are places again for spot VMs of a type: those of it that made room for others may
    /// resume, if their hosts have room.
    pub(super) fn places_came_free(&mut self, kind: &TypeName) {
        if !self.is_scarce(kind) {
            return;
        }
        let waiting = self.spot_of(kind).filter(|(_, vm)| vm.is_displaced).map(|(_, vm)| vm.host);
        for host in waiting.collect::<Vec<_>>() {
            self.fleet.look_again(host);
        }
    }

    /// Whether another spot VM of this type can be had now, as far as availability goes.
    pub(super) fn is_available(&self, kind: &TypeName) -> bool {
        let Some(&most) = self.available.get(kind) else { return true };
        let holds = |vm: &Vm| !matches!(vm.state, VmState::Hibernated { .. });
        let held = self.spot_of(kind).filter(|(_, vm)| holds(vm)).count();
        held < most as usize
    }

    /// The living spot VMs of a type, in the order of their ids.
    fn spot_of(&self, kind: &TypeName) -> impl Iterator<Item = (VmId, &Vm)> {
        let alike = self.alike.get(&(kind.clone(), Market::Spot));
        alike.into_iter().flatten().filter_map(|id| Some((*id, self.vm(*id)?)))
    }
}
