//! What others may know of a run, at any moment.

use dormouse_cloud::Provider;
use dormouse_model::{Setup, Tenants, Work};
use dormouse_units::{Money, TaskId, Time, VmId};

use super::Run;
use crate::tasks::Tasks;
use crate::vm_record::VmUse;
use crate::{Counts, DecisionDigest};

impl Run {
    /// The time at which the run was over, if it is.
    #[must_use]
    pub const fn over(&self) -> Option<Time> {
        self.over
    }

    /// Why it was ended before its time, if it was.
    #[must_use]
    pub fn cancelled(&self) -> Option<&str> {
        self.cancelled.as_deref()
    }

    /// The time at which the last task finished, if all have.
    #[must_use]
    pub fn makespan(&self) -> Option<Time> {
        if let [alone] = self.tenants.as_slice()
            && alone.work() == Work::Requests
        {
            return Some(alone.last_finish()).filter(|_| self.requests.are_over());
        }
        let with_work = self.tenants.iter().filter(|tenant| tenant.work() != Work::Requests);
        let last = with_work.map(|tenant| tenant.last_finish()).max();
        last.filter(|_| self.is_all_done(Work::All))
    }

    /// Who shares it, each with its work.
    #[must_use]
    pub const fn sharing(&self) -> &Tenants {
        &self.sharing
    }

    /// What became of the work of each tenant by now, in their order.
    pub fn tenants(&self, now: Time) -> impl Iterator<Item = TenantView> + '_ {
        self.tenants.iter().zip(self.sharing.ids()).map(move |(tenant, id)| {
            let own = move |(vm, _): &(VmId, _)| self.sharing.owner(*vm) == id;
            let vms = self.provider.vms().filter(own);
            let (work, until) = (tenant.work(), self.over.unwrap_or(now));
            TenantView {
                work,
                makespan: self.is_all_done(work).then_some(tenant.last_finish()),
                unfinished: self.unfinished_of(work),
                owed: tenant.settled() + vms.map(|(_, vm)| vm.owed_at(until)).sum(),
            }
        })
    }

    /// What is owed so far.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
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
    pub const fn tasks(&self) -> &Tasks {
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
    pub fn unfinished(&self) -> usize {
        self.tasks.unfinished()
    }

    pub(super) fn unfinished_of(&self, work: Work) -> usize {
        match work {
            Work::Bag => self.tasks.bag_unfinished(),
            Work::Jobs => self.tasks.jobs_unfinished(),
            Work::Requests => self.requests.open(),
            Work::All => self.tasks.unfinished(),
        }
    }

    /// How often what happened.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The digest of all decisions so far; empty of a run that is [`Self::undigested`].
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(DecisionDigest::hex).unwrap_or_default()
    }

    /// What each VM was promised and got of the processor.
    pub fn usage(&self) -> impl Iterator<Item = (VmId, VmUse)> + '_ {
        self.vms.iter().map(|(id, vm)| (id, vm.usage()))
    }
}

/// What became of a tenant's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantView {
    /// What of the run's work it has.
    pub work: Work,
    /// When the last of its tasks finished, if all have.
    pub makespan: Option<Time>,
    /// Number of the tenant's tasks that have not finished.
    pub unfinished: usize,
    /// What is owed for its VMs.
    pub owed: Money,
}
