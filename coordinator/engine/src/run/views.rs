//! Read-only views of a run, at any moment.

use dormouse_cloud::Provider;
use dormouse_model::{Setup, TenantWork, Tenants};
use dormouse_units::{Money, TaskId, Time, VmId};

use super::Run;
use crate::tasks::TaskTable;
use crate::vm_record::VmUse;
use crate::{DecisionDigest, RunCounts};

impl Run {
    /// Returns the time at which the run was over; `None`: it continues.
    #[must_use]
    pub const fn over_at(&self) -> Option<Time> {
        self.over
    }

    /// Returns why the run was cancelled; `None`: it wasn't.
    #[must_use]
    pub fn cancel_reason(&self) -> Option<&str> {
        self.cancelled.as_deref()
    }

    /// Returns the time at which the last task finished; `None`: tasks are left.
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

    /// Returns the tenants, each with its part of the work.
    #[must_use]
    pub const fn sharing(&self) -> &Tenants {
        &self.sharing
    }

    /// Returns a view of each tenant's work and costs at `now`, in order of tenants.
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

    /// Returns the money owed for all VMs up to `now`.
    #[must_use]
    pub fn owed_now(&self, now: Time) -> Money {
        self.provider.owed_at(self.over.unwrap_or(now))
    }

    /// Returns the setup of the run.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the provider of the run's VMs.
    #[must_use]
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Returns the tasks by id.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTable {
        &self.tasks
    }

    /// Returns the id of the next submitted job.
    #[must_use]
    pub fn next_task(&self) -> TaskId {
        self.tasks.next_id()
    }

    /// Returns whether nothing more will be submitted.
    #[must_use]
    pub const fn all_submitted(&self) -> bool {
        self.all_submitted
    }

    /// Returns the number of unfinished tasks.
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

    /// Returns the counts of the run's events.
    #[must_use]
    pub const fn counts(&self) -> &RunCounts {
        &self.counts
    }

    /// Returns the digest of all decisions so far; empty after [`Run::without_digest`].
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(DecisionDigest::to_hex).unwrap_or_default()
    }

    /// Returns the CPU time that each VM was promised and received.
    pub fn vm_usage(&self) -> impl Iterator<Item = (VmId, VmUse)> + '_ {
        self.vms.iter().map(|(id, vm)| (id, vm.usage()))
    }
}

/// State of a tenant's work and its costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantView {
    /// The tenant's part of the run's work.
    pub work: TenantWork,
    /// Time at which the tenant's last task finished; `None`: tasks are left.
    pub makespan: Option<Time>,
    /// Number of the tenant's unfinished tasks.
    pub unfinished: usize,
    /// Money owed for the tenant's VMs.
    pub owed: Money,
}
