//! The accounts of VMs in unlimited mode: what they spend beyond what they have earned.

use std::collections::BTreeMap;

use dormouse_cloud::{BurstableTerms, SurplusAccount};
use dormouse_units::{Credits, Money, Time, VmId};

/// The accounts of the living VMs that are in unlimited mode.
#[derive(Debug, Default)]
pub(crate) struct SurplusAccounts {
    accounts: BTreeMap<VmId, SurplusAccount>,
}

impl SurplusAccounts {
    /// A VM is launched, with an account if its type is in unlimited mode.
    pub(crate) fn vm_launched(&mut self, now: Time, vm: VmId, of: Option<BurstableTerms>) {
        let account = of.and_then(|of| SurplusAccount::open_account(now, of));
        self.accounts.extend(account.map(|account| (vm, account)));
    }

    /// A VM is gone.
    pub(crate) fn vm_ended(&mut self, vm: VmId) {
        self.accounts.remove(&vm);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The VMs that have an account, in order.
    pub(crate) fn vms(&self) -> impl Iterator<Item = VmId> {
        self.accounts.keys().copied()
    }

    /// What a VM uses of its vCPUs from now on, a sum of millionths; `None`: it does not run.
    pub(crate) fn set_use(&mut self, now: Time, vm: VmId, used: Option<u64>) {
        if let Some(account) = self.accounts.get_mut(&vm) {
            account.set_use(now, used);
        }
    }

    /// The machine of a VM says what credits it has; returns those of the VM.
    pub(crate) fn record_balance(&mut self, now: Time, vm: VmId, machine: Credits) -> Credits {
        let Some(account) = self.accounts.get_mut(&vm) else { return machine };
        account.record_balance(now, machine);
        account.credits()
    }

    /// A VM stops, for good or for now: what it drew beyond what it had, and the price of that.
    pub(crate) fn stop_vm(&mut self, now: Time, vm: VmId) -> Option<(Credits, Money)> {
        self.accounts.get_mut(&vm).map(|account| account.stop_account(now))
    }
}
