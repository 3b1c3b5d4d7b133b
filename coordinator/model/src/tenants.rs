//! Tenants of a run, and the owner of each VM, wake-up and request.
//!
//! Every tenant numbers its VMs and wake-ups from zero, as if it were alone. In the run, number k
//! of tenant t of n becomes k · n + t. So no two tenants share a number, a VM's number tells its
//! owner, and in a run of one tenant the numbers are the policy's own. Only [`Tenants`] does this
//! calculation.

use dormouse_units::{RequestId, TenantId, VmId};

/// Part of a run's work that belongs to a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TenantWork {
    /// The tenant's work is the bag of tasks, which is known from the beginning.
    Bag,
    /// The tenant's work is the parallel jobs that are submitted during the run.
    Jobs,
    /// The VMs that customers of the provider request during the run. They serve as load for other
    /// tenants: if there are any, the run does not wait for the last request.
    Requests,
    /// The work of a run's only tenant is both the bag of tasks and the parallel jobs.
    All,
}

impl TenantWork {
    /// The word for this work in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bag => "bag",
            Self::Jobs => "jobs",
            Self::Requests => "requests",
            Self::All => "all",
        }
    }

    /// True if this work includes the tasks that exist from the beginning.
    #[must_use]
    pub const fn has_bag(self) -> bool {
        matches!(self, Self::Bag | Self::All)
    }

    /// True if this work includes the parallel jobs.
    #[must_use]
    pub const fn has_jobs(self) -> bool {
        matches!(self, Self::Jobs | Self::All)
    }
}

/// The tenants of a run, each with its work. No two tenants have the same kind of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants {
    work: Vec<TenantWork>,
}

impl FromIterator<TenantWork> for Tenants {
    fn from_iter<I: IntoIterator<Item = TenantWork>>(work: I) -> Self {
        Self { work: work.into_iter().collect() }
    }
}

impl<const N: usize> From<[TenantWork; N]> for Tenants {
    fn from(work: [TenantWork; N]) -> Self {
        work.into_iter().collect()
    }
}

impl Tenants {
    /// The work of each tenant, in their order.
    #[must_use]
    pub fn all_work(&self) -> &[TenantWork] {
        &self.work
    }

    /// Ids of the tenants, in their order.
    pub fn tenant_ids(&self) -> impl Iterator<Item = TenantId> + use<> {
        (0..self.tenant_count()).map(TenantId::new)
    }

    /// True if several tenants share the run.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.work.len() > 1
    }

    /// The tenant with exactly this kind of work; `None`: there is none.
    #[must_use]
    pub fn find_tenant(&self, work: TenantWork) -> Option<TenantId> {
        self.tenant_ids().zip(&self.work).find(|(_, own)| **own == work).map(|(id, _)| id)
    }

    /// The tenant of the tasks that exist from the beginning; `None`: there is none.
    #[must_use]
    pub fn with_bag(&self) -> Option<TenantId> {
        self.tenant_ids().zip(&self.work).find(|(_, own)| own.has_bag()).map(|(id, _)| id)
    }

    /// The tenant of the parallel jobs; `None`: there is none.
    #[must_use]
    pub fn with_jobs(&self) -> Option<TenantId> {
        self.tenant_ids().zip(&self.work).find(|(_, own)| own.has_jobs()).map(|(id, _)| id)
    }

    /// Work of a tenant; `None`: there is no such tenant.
    #[must_use]
    pub fn work_of(&self, tenant: TenantId) -> Option<TenantWork> {
        self.work.get(tenant.get() as usize).copied()
    }

    /// Owner of a VM; the first tenant in a run without tenants.
    #[must_use]
    pub fn vm_owner(&self, vm: VmId) -> TenantId {
        TenantId::new(vm.get() % self.tenant_count().max(1))
    }

    /// The tenant that requested the wake-up with this token.
    #[must_use]
    pub fn wake_owner(&self, token: u64) -> TenantId {
        let tenant = token % u64::from(self.tenant_count().max(1));
        TenantId::new(u32::try_from(tenant).unwrap_or_default())
    }

    /// Work of a VM's owner; `None`: there are no tenants.
    #[must_use]
    pub fn work_on(&self, vm: VmId) -> Option<TenantWork> {
        self.work_of(self.vm_owner(vm))
    }

    /// True if a VM belongs to the tenant with this work; a single tenant owns all.
    #[must_use]
    pub fn owns_vm(&self, work: TenantWork, vm: VmId) -> bool {
        !self.are_several() || self.work_on(vm) == Some(work)
    }

    /// The request that a VM serves, whose number is the tenant's own number of the VM. `None`: the VM belongs to
    /// another tenant.
    #[must_use]
    pub fn request_of(&self, vm: VmId) -> Option<RequestId> {
        let is_requested = self.work_on(vm) == Some(TenantWork::Requests);
        is_requested
            .then(|| RequestId::new(self.tenant_numbers(self.vm_owner(vm)).own_vm(vm).get()))
    }

    /// The VM that serves a request; `None`: no tenant has requests.
    #[must_use]
    pub fn vm_of(&self, request: RequestId) -> Option<VmId> {
        let tenant = self.find_tenant(TenantWork::Requests)?;
        Some(self.tenant_numbers(tenant).run_vm(VmId::new(request.get())))
    }

    /// Conversion between a tenant's own numbers and the run's.
    #[must_use]
    pub fn tenant_numbers(&self, tenant: TenantId) -> TenantNumbers {
        TenantNumbers { tenant: tenant.get(), tenants: self.tenant_count().max(1) }
    }

    fn tenant_count(&self) -> u32 {
        u32::try_from(self.work.len()).unwrap_or(u32::MAX)
    }
}

/// Conversion between a tenant's own numbers of VMs and wake-ups and the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantNumbers {
    tenant: u32,
    tenants: u32,
}

impl TenantNumbers {
    /// Identity conversion, for a single tenant or an observer of all.
    pub const SAME: Self = Self { tenant: 0, tenants: 1 };

    /// True if the tenant's own numbers are the run's.
    #[must_use]
    pub const fn are_same(self) -> bool {
        self.tenants == 1
    }

    /// True if a VM of the run belongs to the tenant.
    #[must_use]
    pub const fn owns_vm(self, vm: VmId) -> bool {
        vm.get() % self.tenants == self.tenant
    }

    /// The run's number of the tenant's own VM. A number too large for the run becomes the largest
    /// one, which is refused.
    #[must_use]
    pub const fn run_vm(self, own: VmId) -> VmId {
        match own.get().checked_mul(self.tenants) {
            Some(first) if first <= u32::MAX - self.tenant => VmId::new(first + self.tenant),
            _ => {
                // The largest that is the tenant's.
                let above = (u32::MAX % self.tenants + self.tenants - self.tenant) % self.tenants;
                VmId::new(u32::MAX - above)
            }
        }
    }

    /// The tenant's own number of a VM of the run.
    #[must_use]
    pub const fn own_vm(self, vm: VmId) -> VmId {
        VmId::new(vm.get() / self.tenants)
    }

    /// The run's number of the tenant's own wake-up. A number too large for the run becomes the largest one.
    #[must_use]
    pub fn run_wake(self, own: u64) -> u64 {
        let (tenant, tenants) = (u64::from(self.tenant), u64::from(self.tenants));
        let outside = own.checked_mul(tenants).and_then(|first| first.checked_add(tenant));
        // The largest that is the tenant's.
        outside.unwrap_or(u64::MAX - (u64::MAX % tenants + tenants - tenant) % tenants)
    }

    /// The tenant's own number of a wake-up of the run.
    #[must_use]
    pub fn own_wake(self, token: u64) -> u64 {
        token / u64::from(self.tenants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tenants_have_a_number_and_each_gets_its_own_back() {
        let tenants = Tenants::from([TenantWork::Bag, TenantWork::Jobs, TenantWork::Requests]);
        let mut seen = std::collections::BTreeSet::new();
        for tenant in tenants.tenant_ids() {
            let numbers = tenants.tenant_numbers(tenant);
            for own in (0..50).map(VmId::new) {
                let vm = numbers.run_vm(own);
                assert!(seen.insert(vm), "{vm} twice");
                assert_eq!((numbers.own_vm(vm), tenants.vm_owner(vm)), (own, tenant));
                let token = numbers.run_wake(own.get().into());
                assert_eq!(numbers.own_wake(token), u64::from(own.get()));
                assert_eq!(tenants.wake_owner(token), tenant);
            }
            // Of those that are too large the number is not kept, but whose they are.
            let (vm, token) = (numbers.run_vm(VmId::new(u32::MAX)), numbers.run_wake(u64::MAX));
            assert_eq!((tenants.vm_owner(vm), tenants.wake_owner(token)), (tenant, tenant));
        }
        let alone = Tenants::from([TenantWork::All]);
        let numbers = alone.tenant_numbers(TenantId::new(0));
        assert_eq!((numbers.run_vm(VmId::new(7)), numbers.are_same()), (VmId::new(7), true));
    }

    #[test]
    fn a_vm_says_whose_it_is_and_for_which_request() {
        let tenants = Tenants::from([TenantWork::Bag, TenantWork::Requests]);
        let (bag, requested) = (VmId::new(6), VmId::new(7));
        assert_eq!(tenants.work_on(bag), Some(TenantWork::Bag));
        assert_eq!(
            (tenants.request_of(bag), tenants.request_of(requested)),
            (None, Some(RequestId::new(3)))
        );
        assert_eq!(tenants.vm_of(RequestId::new(3)), Some(requested));
        assert!(
            tenants.owns_vm(TenantWork::Bag, bag) && !tenants.owns_vm(TenantWork::Bag, requested)
        );
        assert_eq!((tenants.with_bag(), tenants.with_jobs()), (Some(TenantId::new(0)), None));
        // Whoever is alone has all; nobody has anything.
        assert!(Tenants::from([TenantWork::All]).owns_vm(TenantWork::Bag, requested));
        let nobody = Tenants::default();
        assert_eq!((nobody.work_on(bag), nobody.vm_of(RequestId::new(1))), (None, None));
    }
}
