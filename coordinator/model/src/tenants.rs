//! Who shares a run, and whose a VM, a wake-up or a request of it is.
//!
//! Every tenant numbers its VMs and its wake-ups from zero, as if it were alone. The run's numbers
//! of them are others: the k-th of tenant t of n is number k · n + t. So no two tenants can have
//! the same, a VM's number says whose it is, and a run of one tenant has its policy's numbers. That
//! is reckoned here and nowhere else: all others ask [`Tenants`].

use dormouse_units::{RequestId, TenantId, VmId};

/// The part of a run's work that a tenant has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The tasks that are there from the beginning.
    Bag,
    /// The parallel jobs that are submitted while it runs.
    Jobs,
    /// The VMs that customers of the provider request while it runs. They are there for others: where
    /// there are any, the run does not wait for the last request.
    Requests,
    /// Bag and jobs: it is alone.
    All,
}

impl Work {
    /// The word for it in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bag => "bag",
            Self::Jobs => "jobs",
            Self::Requests => "requests",
            Self::All => "all",
        }
    }

    /// Whether the tasks that are there from the beginning are a part of it.
    #[must_use]
    pub const fn has_bag(self) -> bool {
        matches!(self, Self::Bag | Self::All)
    }

    /// Whether the parallel jobs are a part of it.
    #[must_use]
    pub const fn has_jobs(self) -> bool {
        matches!(self, Self::Jobs | Self::All)
    }
}

/// The tenants of a run, each with its work. No two have work of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenants {
    work: Vec<Work>,
}

impl FromIterator<Work> for Tenants {
    fn from_iter<I: IntoIterator<Item = Work>>(work: I) -> Self {
        Self { work: work.into_iter().collect() }
    }
}

impl<const N: usize> From<[Work; N]> for Tenants {
    fn from(work: [Work; N]) -> Self {
        work.into_iter().collect()
    }
}

impl Tenants {
    /// The work of each, in their order.
    #[must_use]
    pub fn work(&self) -> &[Work] {
        &self.work
    }

    /// The tenants, in their order.
    pub fn ids(&self) -> impl Iterator<Item = TenantId> + use<> {
        (0..self.count()).map(TenantId::new)
    }

    /// Whether several share the run.
    #[must_use]
    pub fn are_several(&self) -> bool {
        self.work.len() > 1
    }

    /// The tenant with work of this kind, and of no other.
    #[must_use]
    pub fn with(&self, work: Work) -> Option<TenantId> {
        self.ids().zip(&self.work).find(|(_, own)| **own == work).map(|(id, _)| id)
    }

    /// The tenant that has the tasks that are there from the beginning.
    #[must_use]
    pub fn with_bag(&self) -> Option<TenantId> {
        self.ids().zip(&self.work).find(|(_, own)| own.has_bag()).map(|(id, _)| id)
    }

    /// The tenant that has the parallel jobs.
    #[must_use]
    pub fn with_jobs(&self) -> Option<TenantId> {
        self.ids().zip(&self.work).find(|(_, own)| own.has_jobs()).map(|(id, _)| id)
    }

    /// What work a tenant has; `None`: there is no such tenant.
    #[must_use]
    pub fn work_of(&self, tenant: TenantId) -> Option<Work> {
        self.work.get(tenant.get() as usize).copied()
    }

    /// The owner of a VM; of a run without tenants, the first.
    #[must_use]
    pub fn owner(&self, vm: VmId) -> TenantId {
        TenantId::new(vm.get() % self.count().max(1))
    }

    /// The tenant that asked for a wake-up.
    #[must_use]
    pub fn sleeper(&self, token: u64) -> TenantId {
        let tenant = token % u64::from(self.count().max(1));
        TenantId::new(u32::try_from(tenant).unwrap_or_default())
    }

    /// What work the owner of a VM has; `None`: there are no tenants.
    #[must_use]
    pub fn work_on(&self, vm: VmId) -> Option<Work> {
        self.work_of(self.owner(vm))
    }

    /// Whether a VM is of the tenant with this work. Whoever is alone has all.
    #[must_use]
    pub fn owns(&self, work: Work, vm: VmId) -> bool {
        !self.are_several() || self.work_on(vm) == Some(work)
    }

    /// The request that a VM is there for, which has the number that its tenant gives the VM; `None`: it is another
    /// tenant's VM.
    #[must_use]
    pub fn request_of(&self, vm: VmId) -> Option<RequestId> {
        let is_requested = self.work_on(vm) == Some(Work::Requests);
        is_requested.then(|| RequestId::new(self.numbers(self.owner(vm)).own_vm(vm).get()))
    }

    /// The VM of a request; `None`: no tenant has requests.
    #[must_use]
    pub fn vm_of(&self, request: RequestId) -> Option<VmId> {
        let tenant = self.with(Work::Requests)?;
        Some(self.numbers(tenant).vm(VmId::new(request.get())))
    }

    /// The numbers that a tenant gives its VMs and wake-ups, and the run's.
    #[must_use]
    pub fn numbers(&self, tenant: TenantId) -> TenantNumbers {
        TenantNumbers { tenant: tenant.get(), tenants: self.count().max(1) }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.work.len()).unwrap_or(u32::MAX)
    }
}

/// A tenant's numbers of VMs and wake-ups, and the run's numbers of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantNumbers {
    tenant: u32,
    tenants: u32,
}

impl TenantNumbers {
    /// The numbers of a policy that is alone, or of one who knows of all tenants: the run's.
    pub const SAME: Self = Self { tenant: 0, tenants: 1 };

    /// Whether they are the same as the run's.
    #[must_use]
    pub const fn are_same(self) -> bool {
        self.tenants == 1
    }

    /// Whether a VM of the run is the tenant's.
    #[must_use]
    pub const fn owns(self, vm: VmId) -> bool {
        vm.get() % self.tenants == self.tenant
    }

    /// The run's number of the tenant's own VM. One that is too large for the run to have is its
    /// largest: taken once, it is refused.
    #[must_use]
    pub const fn vm(self, own: VmId) -> VmId {
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

    /// The run's number of the tenant's own wake-up. One that is too large for the run to have is its largest.
    #[must_use]
    pub fn wake(self, own: u64) -> u64 {
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
        let tenants = Tenants::from([Work::Bag, Work::Jobs, Work::Requests]);
        let mut seen = std::collections::BTreeSet::new();
        for tenant in tenants.ids() {
            let numbers = tenants.numbers(tenant);
            for own in (0..50).map(VmId::new) {
                let vm = numbers.vm(own);
                assert!(seen.insert(vm), "{vm} twice");
                assert_eq!((numbers.own_vm(vm), tenants.owner(vm)), (own, tenant));
                let token = numbers.wake(own.get().into());
                assert_eq!(numbers.own_wake(token), u64::from(own.get()));
                assert_eq!(tenants.sleeper(token), tenant);
            }
            // Of those that are too large the number is not kept, but whose they are.
            let (vm, token) = (numbers.vm(VmId::new(u32::MAX)), numbers.wake(u64::MAX));
            assert_eq!((tenants.owner(vm), tenants.sleeper(token)), (tenant, tenant));
        }
        let alone = Tenants::from([Work::All]);
        let numbers = alone.numbers(TenantId::new(0));
        assert_eq!((numbers.vm(VmId::new(7)), numbers.are_same()), (VmId::new(7), true));
    }

    #[test]
    fn a_vm_says_whose_it_is_and_for_which_request() {
        let tenants = Tenants::from([Work::Bag, Work::Requests]);
        let (bag, requested) = (VmId::new(6), VmId::new(7));
        assert_eq!(tenants.work_on(bag), Some(Work::Bag));
        assert_eq!(
            (tenants.request_of(bag), tenants.request_of(requested)),
            (None, Some(RequestId::new(3)))
        );
        assert_eq!(tenants.vm_of(RequestId::new(3)), Some(requested));
        assert!(tenants.owns(Work::Bag, bag) && !tenants.owns(Work::Bag, requested));
        assert_eq!((tenants.with_bag(), tenants.with_jobs()), (Some(TenantId::new(0)), None));
        // Whoever is alone has all; nobody has anything.
        assert!(Tenants::from([Work::All]).owns(Work::Bag, requested));
        let nobody = Tenants::default();
        assert_eq!((nobody.work_on(bag), nobody.vm_of(RequestId::new(1))), (None, None));
    }
}
