//! What others may know of a run, at any moment.

use dormouse_cloud::Provider;
use dormouse_model::{Setup, TenantWork, Tenants};
use dormouse_units::{Money, TaskId, Time, VmId};

use super::Run;
use crate::tasks::TaskTable;
use crate::vm_record::VmUse;
use crate::{DecisionDigest, RunCounts};

impl Run {
    /// The time at which the run was over, if it is.
    #[must_use]
    pub const fn over_at(&self) -> Option<Time> {
        self.over
    }

    /// Why it was ended before its time, if it was.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<&str> {
        self.cancelled.as_deref()
    }

    /// The time at which the last task finished, if all have.
    #[must_use]
    pub fn makespan(&self) -> Option<Time> {
        if let [alone] = self.tenants.as_slice()
            && alone.work() == TenantWork::Requests
        {
            return Some(alone.last_finish()).filter(|_| self.requests.are_over());
        }
        let with_work = self.tenants.iter().filter(|tenant| tenant.work() != TenantWork::Requests);
        let last = with_work.map(|tenant| tenant.last_finish()).max();
        last.filter(|_| self.is_all_done(TenantWork::All))
    }

    /// Who shares it, each with its work.
    #[must_use]
    pub const fn sharing(&self) -> &Tenants {
        &self.sharing
    }

    /// What became of the work of each tenant by now, in their order.
    pub fn tenant_views(&self, now: Time) -> impl Iterator<Item = TenantView> + '_ {
        self.tenants.iter().zip(self.sharing.tenant_ids()).map(move |(tenant, id)| {
            let own = move |(vm, _): &(VmId, _)| self.sharing.vm_owner(*vm) == id;
            let vms = self.provider.vms().filter(own);
            let (work, until) = (tenant.work(), self.over.unwrap_or(now));
            TenantView {
                work,
                makespan: self.is_all_done(work).then_some(tenant.last_finish()),
                unfinished: self.unfinished_of(work),
                owed: tenant.settled_money() + vms.map(|(_, vm)| vm.owed_at(until)).sum(),
            }
        })
    }

    /// What is owed so far.
    #[must_use]
    pub fn owed_now(&self, now: Time) -> Money {
        self.provider.owed_at(self.over.unwrap_or(now))
    }

    /// What the run is made of.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The provider, to look at.
    #[must_use]
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The tasks, by id.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    /// The id of the next job that is submitted.
    #[must_use]
    pub fn next_task(&self) -> TaskId {
        self.tasks.next_id()
    }

    /// Whether nothing more will be submitted.
    #[must_use]
    pub const fn all_submitted(&self) -> bool {
        self.all_submitted
    }

    /// How many tasks are not finished.
    #[must_use]
    pub fn unfinished_count(&self) -> usize {
        self.tasks.unfinished_count()
    }

    pub(super) fn unfinished_of(&self, work: TenantWork) -> usize {
        match work {
            TenantWork::Bag => self.tasks.bag_unfinished(),
            TenantWork::Jobs => self.tasks.jobs_unfinished(),
            TenantWork::Requests => self.requests.open(),
            TenantWork::All => self.tasks.unfinished_count(),
        }
    }

    /// How often what happened.
    #[must_use]
    pub const fn counts(&self) -> &RunCounts {
        &self.counts
    }

    /// The digest of all decisions so far; empty of a run that is [`Self::undigested`].
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(DecisionDigest::to_hex).unwrap_or_default()
    }

    /// What each VM was promised and got of the processor.
    pub fn vm_usage(&self) -> impl Iterator<Item = (VmId, VmUse)> + '_ {
        self.vms.iter().map(|(id, vm)| (id, vm.usage()))
    }
}

/// What became of a tenant's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantView {
    /// What of the run's work it has.
    pub work: TenantWork,
    /// When the last of its tasks finished, if all have.
    pub makespan: Option<Time>,
    /// Number of the tenant's tasks that have not finished.
    pub unfinished: usize,
    /// What is owed for its VMs.
    pub owed: Money,
}
