//! VMs of a picture: how many run, and their cost.

use std::collections::BTreeMap;

use dormouse_analysis::{RunRecord, VmHistory};
use dormouse_cloud::Market;
use dormouse_units::{Money, Price, Time, TypeName, VmId};

/// VMs of a run at a moment.
#[derive(Debug, Default)]
pub(super) struct VmTotals {
    /// Contribution of each living VM to the totals.
    parts: BTreeMap<VmId, VmContribution>,
    /// Cost of the VMs that have ended.
    ended: Money,
    /// Sum of the contributions of all living VMs.
    total: VmContribution,
    /// Last cost that was summed over all VMs' meters, with the time of that sum.
    reckoned: (Time, Money),
    /// Number of times that the cost was requested since it was last computed.
    asked: usize,
}

/// Number of running VMs by market, and the rate of their charges.
#[derive(Clone, Copy, Debug, Default)]
struct VmContribution {
    spot: u32,
    on_demand: u32,
    nanos_per_hour: u64,
}

/// Number of running VMs by market, and the cost of all VMs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FleetTotals {
    pub(super) spot: u32,
    pub(super) on_demand: u32,
    pub(super) cost_usd: f64,
    pub(super) usd_per_hour: f64,
}

impl VmContribution {
    /// Contribution of a VM in its present state.
    fn of(vm: &VmHistory) -> Self {
        let is = |market| u32::from(vm.is_running() && vm.market == market);
        let charged = vm.meter().runs_since().is_some();
        Self {
            spot: is(Market::Spot),
            on_demand: is(Market::OnDemand),
            nanos_per_hour: if charged {
                vm.meter().charged_price().as_nanos_per_hour()
            } else {
                0
            },
        }
    }
}

impl VmTotals {
    /// Updates the contribution of a VM that has changed.
    pub(super) fn changed(&mut self, record: &RunRecord, vm: VmId) {
        if let Some(history) = record.vms.get(&vm) {
            let is = VmContribution::of(history);
            let was = self.parts.insert(vm, is).unwrap_or_default();
            self.replace_part(was, is);
        }
    }

    /// Removes a VM that is gone, and adds its final cost, computed by the engine.
    pub(super) fn ended(&mut self, vm: VmId, cost: Money) {
        let Some(was) = self.parts.remove(&vm) else { return };
        self.ended += cost;
        self.replace_part(was, VmContribution::default());
        // The summed cost has what the VM owed by then, not what it really cost.
        self.asked = usize::MAX;
    }

    /// Updates the contributions of the VMs of a type whose spot price has changed.
    pub(super) fn repriced(&mut self, record: &RunRecord, kind: &TypeName) {
        let alike = |vm: &&VmHistory| vm.market == Market::Spot && vm.kind == *kind;
        for vm in record.vms.values().filter(alike) {
            self.changed(record, vm.id);
        }
    }

    /// Number of running VMs, and the cost of all VMs. With many VMs not all meters are read each time: between two
    /// readings the cost grows by the hourly rate.
    pub(super) fn fleet(&mut self, record: &RunRecord, now: Time) -> FleetTotals {
        self.asked = self.asked.saturating_add(1);
        if self.asked > record.vms.len() / 64 {
            let owed = record.vms.values().map(|vm| vm.owed(now));
            self.reckoned = (now, self.ended + owed.sum::<Money>());
            self.asked = 0;
        }
        let VmContribution { spot, on_demand, nanos_per_hour } = self.total;
        let usd_per_hour = Price::from_nanos_per_hour(nanos_per_hour).as_usd_per_hour();
        let (at, cost) = self.reckoned;
        let since_h = now.since(at).as_secs_f64() / 3_600.0;
        let cost_usd = cost.as_usd() + usd_per_hour * since_h;
        FleetTotals { spot, on_demand, cost_usd, usd_per_hour }
    }

    const fn replace_part(&mut self, was: VmContribution, is: VmContribution) {
        let total = &mut self.total;
        total.spot = total.spot + is.spot - was.spot;
        total.on_demand = total.on_demand + is.on_demand - was.on_demand;
        total.nanos_per_hour = total.nanos_per_hour + is.nanos_per_hour - was.nanos_per_hour;
    }
}
