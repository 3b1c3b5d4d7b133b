//! The ends of a run, of its VMs and of its tasks.

use dormouse_cloud::Market;
use dormouse_model::{Command, Effect, TenantWork, VmEnd};
use dormouse_units::{Money, TaskId, Time, VmId};

use super::Run;
use crate::tasks::TaskState;
use crate::tenants::RunTenant;

impl Run {
    /// Ends the run if all work is done, or it was cancelled. If other tenants continue, a tenant whose work is done
    /// gives back its VMs, so that it isn't charged for their time.
    pub(super) fn end_what_is_done(&mut self, now: Time) {
        if self.over.is_some() {
            return;
        }
        // What has happened is heard of before the end.
        let done = |run: &Self, t: &RunTenant| {
            run.begun && t.pending_instant().is_none() && run.is_all_done(t.work())
        };
        let tenants = self.tenants.len();
        let is_waited_for = |t: &&RunTenant| t.work() != TenantWork::Requests || tenants == 1;
        let complete = self.tenants.iter().filter(is_waited_for).all(|tenant| done(self, tenant));
        if complete || self.cancelled.is_some() {
            self.end_vms(now, VmEnd::RunOver, |_| true);
            self.over = Some(now);
            self.effects.push(Effect::Over { complete });
            return;
        }
        for tenant in (0..tenants).filter(|_| tenants > 1) {
            if !self.tenants[tenant].is_done() && done(self, &self.tenants[tenant]) {
                self.tenants[tenant].end_work();
                let numbers = self.tenants[tenant].numbers();
                self.end_vms(now, VmEnd::WorkDone, |vm| numbers.owns_vm(vm));
            }
        }
    }

    /// Returns whether all of this work has been submitted and is finished.
    pub(super) fn is_all_done(&self, work: TenantWork) -> bool {
        match work {
            TenantWork::Requests => self.requests.are_over(),
            // Whoever calls the provider's API may call again.
            TenantWork::All if !self.requests.is_all() => false,
            _ => (!work.has_jobs() || self.all_submitted) && self.unfinished_of(work) == 0,
        }
    }

    pub(super) fn end_vms(&mut self, now: Time, why: VmEnd, of: impl Fn(VmId) -> bool) {
        let alive = self.provider.alive_vms().filter(|(id, _)| of(*id));
        let alive: Vec<_> = alive.map(|(id, vm)| (id, vm.host)).collect();
        for (vm, host) in alive {
            self.end_vm(now, vm, why);
            self.commands.push(Command::DestroyVm { host, vm });
        }
    }

    /// Ends a VM: charging stops, and its tasks are on no VM.
    pub(super) fn end_vm(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.charge_surplus(now, vm);
        self.provider.vm_terminated(now, vm, why.ended_by());
        self.vm_ended(now, vm, why);
    }

    /// Ends a VM as [`Run::end_vm`] does, after the provider has recorded it as terminated.
    pub(super) fn vm_ended(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.interruptions.vm_ended(vm);
        self.surpluses.vm_ended(vm);
        self.supplies.vm_ended(vm);
        self.there_is_room();
        let sharing = &self.sharing;
        if sharing.are_several() {
            self.refused.vm_ended(|refused| sharing.vm_owner(*refused) != sharing.vm_owner(vm));
        }
        self.place_came_free(vm);
        let left = self.vms.get_mut(vm).map(|record| record.end_vm()).unwrap_or_default();
        for task in left {
            self.set_state(task, TaskState::Waiting);
        }
        self.request_is_over(now, vm);
        let cost = self.provider.find_vm(vm).map_or(Money::ZERO, |v| v.owed_at(now));
        self.effects.push(Effect::VmEnded { vm, why, cost });
    }

    /// Records that a VM was ended or hibernated, and so no longer counts against the capacity of its type. If its type has limited
    /// capacity, tenants with refused launches are notified.
    pub(super) fn place_came_free(&mut self, vm: VmId) {
        let spot = self.provider.find_vm(vm).filter(|vm| vm.market == Market::Spot);
        let kind = spot.map(|vm| &vm.kind).filter(|kind| self.provider.is_scarce(kind));
        if let Some(kind) = kind {
            self.refused.place_came_free(kind);
        }
    }

    /// Records that a host has more room, so that tenants with a refused machine may ask again.
    pub(super) fn there_is_room(&mut self) {
        self.tenants.iter_mut().for_each(RunTenant::may_find_room);
    }

    /// Records that a task has finished.
    pub(super) fn note_finish(&mut self, now: Time, task: TaskId) {
        let of_bag = self.tasks.is_of_bag(task);
        let is_its = |tenant: &&mut RunTenant| match of_bag {
            true => tenant.work().has_bag(),
            false => tenant.work().has_jobs(),
        };
        if let Some(tenant) = self.tenants.iter_mut().find(is_its) {
            tenant.count_finished(now);
        }
    }
}
