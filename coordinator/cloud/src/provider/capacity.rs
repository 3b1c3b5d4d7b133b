//! Limits on spot VMs of scarce types, and the VMs that the provider takes back when a limit falls.

use dormouse_units::{Time, TypeName, VmId};

use super::Provider;
use crate::{Market, ProviderVm, ProviderVmState};

/// A change of the number of spot VMs of a type that may exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AvailabilityChange {
    /// Instance type whose availability changes.
    pub kind: TypeName,
    /// New limit of spot VMs of the type.
    pub vms: u32,
    /// Previous limit of spot VMs of the type.
    pub before: u32,
    /// VMs that are reclaimed because there are more than the limit: those launched last.
    pub reclaimed: Vec<VmId>,
}

impl Provider {
    /// Time of the next change of availability; `None`: there is none.
    #[must_use]
    pub fn next_availability(&self) -> Option<Time> {
        self.availability_changes.first().map(|(at, _)| *at)
    }

    /// True if the number of spot VMs of this type is limited.
    #[must_use]
    pub fn is_scarce(&self, kind: &TypeName) -> bool {
        self.available.contains_key(kind)
    }

    /// Types of which no spot VM is available now, and of which none will become available later in the run.
    pub fn exhausted_types(&self) -> impl Iterator<Item = &TypeName> {
        let comes =
            |kind: &TypeName| self.availability_changes.iter().any(|(_, other)| other == kind);
        let none = self.available.iter().filter(|(_, vms)| **vms == 0).map(|(kind, _)| kind);
        none.filter(move |kind| !comes(kind))
    }

    /// Applies the changes of availability due by now, one per type. If there are more VMs than the
    /// new limit, those launched last are given notice; hibernated VMs don't count, nor do VMs with
    /// a notice.
    pub fn change_availability(&mut self, now: Time) -> Vec<AvailabilityChange> {
        let mut changed = Vec::new();
        while self.next_availability().is_some_and(|at| at <= now) {
            let Some((_, kind)) = self.availability_changes.pop_first() else { break };
            let Some(trace) = self.availability.get(&kind) else { continue };
            let (next, vms) = (trace.next_change(now), trace.count_at(now).unwrap_or(u32::MAX));
            self.availability_changes.extend(next.map(|at| (at, kind.clone())));
            let before = self.available.insert(kind.clone(), vms).unwrap_or(0);
            let reclaimed = self.reclaim_vms(&kind);
            if vms > before {
                self.places_came_free(&kind);
            }
            changed.push(AvailabilityChange { kind, vms, before, reclaimed });
        }
        changed
    }

    /// Gives notice to spot VMs of a type beyond its limit; returns these VMs.
    pub fn reclaim_vms(&mut self, kind: &TypeName) -> Vec<VmId> {
        let Some(&most) = self.available.get(kind) else { return Vec::new() };
        let stays = |vm: &ProviderVm| {
            let is_up = matches!(
                vm.state,
                ProviderVmState::Booting | ProviderVmState::Running | ProviderVmState::Resuming
            );
            !vm.has_notice && is_up
        };
        let staying = self.spot_of(kind).filter(|(_, vm)| stays(vm));
        let staying: Vec<(VmId, ProviderVmState)> =
            staying.map(|(id, vm)| (id, vm.state)).collect();
        let excess = staying.len().saturating_sub(most as usize);
        // One that is about to run again can't be told anything yet: it is looked at when it runs.
        let told = staying.iter().rev().filter(|(_, state)| *state != ProviderVmState::Resuming);
        let reclaimed: Vec<VmId> = told.take(excess).map(|(id, _)| *id).collect();
        for &vm in &reclaimed {
            if !self.hibernates_instead(vm) {
                self.given_notice(vm);
            }
        }
        reclaimed
    }

    /// Lets VMs of a type that made room for others resume, as far as their hosts have room,
    /// because the type's limit allows more VMs.
    pub(super) fn places_came_free(&mut self, kind: &TypeName) {
        if !self.is_scarce(kind) {
            return;
        }
        let waiting = self.spot_of(kind).filter(|(_, vm)| vm.is_displaced).map(|(_, vm)| vm.host);
        for host in waiting.collect::<Vec<_>>() {
            self.fleet.look_again(host);
        }
    }

    /// True if availability allows another spot VM of this type.
    pub(super) fn is_available(&self, kind: &TypeName) -> bool {
        let Some(&most) = self.available.get(kind) else { return true };
        let holds = |vm: &ProviderVm| !matches!(vm.state, ProviderVmState::Hibernated { .. });
        let held = self.spot_of(kind).filter(|(_, vm)| holds(vm)).count();
        held < most as usize
    }

    /// Living spot VMs of a type, ordered by id.
    fn spot_of(&self, kind: &TypeName) -> impl Iterator<Item = (VmId, &ProviderVm)> {
        let alike = self.alike.get(&(kind.clone(), Market::Spot));
        alike.into_iter().flatten().filter_map(|id| Some((*id, self.find_vm(*id)?)))
    }
}
