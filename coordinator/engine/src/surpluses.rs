//! Accounts of burstable VMs in unlimited mode or with declared use: credits spent beyond those earned.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{BurstableTerms, SurplusAccount};
use dormouse_units::{Credits, Money, Price, Time, VmId};

/// Accounts of the living VMs whose use can lead to surplus credits.
#[derive(Debug, Default)]
pub(crate) struct SurplusAccounts {
    accounts: BTreeMap<VmId, SurplusAccount>,
    /// VMs that never run tasks. Only their use of vCPUs can be declared by a user instead of following from tasks.
    without_tasks: BTreeSet<VmId>,
}

impl SurplusAccounts {
    /// Adds a launched VM with these terms, if its type is in unlimited mode, or no tasks will run on it.
    pub(crate) fn vm_launched(
        &mut self,
        now: Time,
        vm: VmId,
        terms: Option<BurstableTerms>,
        is_without_tasks: bool,
    ) {
        let terms = terms.filter(|terms| terms.surplus.is_some() || is_without_tasks);
        let account = terms.map(|terms| SurplusAccount::open_account(now, terms));
        self.without_tasks.extend(account.iter().filter(|_| is_without_tasks).map(|_| vm));
        self.accounts.extend(account.map(|account| (vm, account)));
    }

    /// Removes a VM that has ended.
    pub(crate) fn vm_ended(&mut self, vm: VmId) {
        self.accounts.remove(&vm);
        self.without_tasks.remove(&vm);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Returns the VMs with an account, in order.
    pub(crate) fn vms(&self) -> impl Iterator<Item = VmId> {
        self.accounts.keys().copied()
    }

    /// Sets the vCPU use of a VM from now on, in millionths of a vCPU; `None`: the VM doesn't run.
    pub(crate) fn set_use(&mut self, now: Time, vm: VmId, used: Option<u64>) {
        if let Some(account) = self.accounts.get_mut(&vm) {
            account.set_use(now, used);
        }
    }

    /// Sets the use of a VM's vCPUs by programs of which its machine knows nothing; see
    /// [`SurplusAccount::declare_use`]. Returns the surplus credits that the VM has been charged so far and their price; `None`: the
    /// VM has no account.
    pub(crate) fn declare_use(
        &mut self,
        now: Time,
        vm: VmId,
        declared: u64,
        price: Option<Price>,
    ) -> Option<(Credits, Money)> {
        let account = self.accounts.get_mut(&vm)?;
        account.declare_use(now, declared, price);
        Some(account.total_charged())
    }

    /// The use of the vCPUs of a VM on which no tasks run, in millionths of a vCPU: what was declared, or none; `None`: tasks may run
    /// on the VM.
    pub(crate) fn declared_use(&self, vm: VmId) -> Option<u64> {
        let account = self.accounts.get(&vm).filter(|_| self.without_tasks.contains(&vm))?;
        Some(account.declared_use().unwrap_or(0))
    }

    /// Records the credit balance that a VM's machine reports; returns the VM's credits.
    pub(crate) fn record_balance(&mut self, now: Time, vm: VmId, machine: Credits) -> Credits {
        let account = self.accounts.get_mut(&vm).filter(|account| account.has_balance());
        let Some(account) = account else { return machine };
        account.record_balance(now, machine);
        account.credits()
    }

    /// Stops a VM, for good or for now; returns the surplus credits it has been charged so far and their price.
    pub(crate) fn stop_vm(&mut self, now: Time, vm: VmId) -> Option<(Credits, Money)> {
        self.accounts.get_mut(&vm).map(|account| account.stop_account(now))
    }
}
