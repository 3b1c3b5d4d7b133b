//! Accounts of VMs in unlimited mode: credits spent beyond those earned.

use std::collections::BTreeMap;

use dormouse_cloud::{BurstableTerms, SurplusAccount};
use dormouse_units::{Credits, Money, Time, VmId};

/// Accounts of the living VMs in unlimited mode.
#[derive(Debug, Default)]
pub(crate) struct SurplusAccounts {
    accounts: BTreeMap<VmId, SurplusAccount>,
}

impl SurplusAccounts {
    /// Adds a launched VM, if its type is in unlimited mode.
    pub(crate) fn vm_launched(&mut self, now: Time, vm: VmId, of: Option<BurstableTerms>) {
        let account = of.and_then(|of| SurplusAccount::open_account(now, of));
        self.accounts.extend(account.map(|account| (vm, account)));
    }

    /// Removes a VM that has ended.
    pub(crate) fn vm_ended(&mut self, vm: VmId) {
        self.accounts.remove(&vm);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// Returns the VMs with an account, in order.
    pub(crate) fn vms(&self) -> impl Iterator<Item = VmId> {
        self.accounts.keys().copied()
    }

    /// Sets the vCPU use of a VM from now on, a sum of millionths; `None`: it doesn't run.
    pub(crate) fn set_use(&mut self, now: Time, vm: VmId, used: Option<u64>) {
        if let Some(account) = self.accounts.get_mut(&vm) {
            account.set_use(now, used);
        }
    }

    /// Records the credit balance that a VM's machine reports; returns the VM's credits.
    pub(crate) fn record_balance(&mut self, now: Time, vm: VmId, machine: Credits) -> Credits {
        let Some(account) = self.accounts.get_mut(&vm) else { return machine };
        account.record_balance(now, machine);
        account.credits()
    }

    /// Stops a VM, for good or for now; returns the surplus credits it has been charged so far and their price.
    pub(crate) fn stop_vm(&mut self, now: Time, vm: VmId) -> Option<(Credits, Money)> {
        self.accounts.get_mut(&vm).map(|account| account.stop_account(now))
    }
}
