//! Cost of a plan's VMs, billed like those of a run.

use dormouse_cloud::{BillingMeter, Catalogue, EndedBy, InstanceType, Market, ProviderTerms};
use dormouse_model::{PlannedVm, Setup};
use dormouse_units::{Money, Span, Time};

use crate::dynamic::cycle_end;
use crate::{BagSchedulerConfig, KeepIdle, Plan};

/// Cost of a run in which everything goes as planned: each VM is paid from its launch until the scheduler
/// gives it back, by the provider's tariff and prices. In contrast, [`Plan::cost`], which a search
/// minimises, leaves out the boot and the time in which VMs are kept idle.
#[must_use]
pub fn planned_bill(plan: &Plan, config: &BagSchedulerConfig, setup: &Setup) -> Money {
    let Setup { catalogue, terms, .. } = setup;
    let keeping = VmKeeping::new(plan, config, catalogue);
    let cost = |vm: &PlannedVm| {
        let kind = catalogue.get(&vm.kind)?;
        let until = keeping.end_of_vm(vm, kind);
        bill_vm(kind, vm.market, (catalogue.boot, until), terms)
    };
    plan.vms.iter().filter_map(cost).sum()
}

/// Times until which the scheduler of a plan keeps its VMs.
#[derive(Clone, Copy, Debug)]
struct VmKeeping {
    boot: Time,
    /// Time at which the last task of the plan ends; the run and all of its VMs end then.
    over: Time,
    /// Length of the allocation cycles: an idle VM is kept to the end of its cycle; `None`: idle VMs are
    /// given back at once.
    cycle: Option<Span>,
    /// Time at which the last task on a spot VM ends, after which no idle VM is kept; `None`: idle VMs are kept after it, too.
    spot_over: Option<Time>,
}

impl VmKeeping {
    fn new(plan: &Plan, config: &BagSchedulerConfig, catalogue: &Catalogue) -> Self {
        let boot = Time::ZERO + catalogue.boot;
        let cycle = config.name.scheduling().keeps_idle(config);
        let spot = plan.vms.iter().filter(|vm| vm.market == Market::Spot);
        let beside_spot = cycle.is_some() && config.keep_idle == KeepIdle::WhileSpotWorks;
        let spot_over = beside_spot.then(|| spot.filter_map(last_end).max().unwrap_or(boot));
        Self { boot, over: Time::ZERO + plan.makespan, cycle, spot_over }
    }

    /// Time at which a VM is given back if nothing unplanned happens to it.
    fn end_of_vm(&self, vm: &PlannedVm, kind: &InstanceType) -> Time {
        let idle_from = last_end(vm).unwrap_or(self.boot);
        let kept = match self.cycle {
            // A burstable VM stands by as long as there are tasks.
            _ if kind.burstable.is_some() => self.over,
            None => idle_from,
            Some(cycle) => cycle_end(self.boot, cycle, idle_from).min(self.over),
        };
        self.spot_over.map_or(kept, |over| kept.min(over)).max(idle_from)
    }
}

/// Time at which the last task of a VM ends; `None`: the VM has no task and stands by.
fn last_end(vm: &PlannedVm) -> Option<Time> {
    vm.vcpus.iter().flatten().map(|task| task.end).max()
}

/// Cost of a VM that is launched at the beginning, is ready after `boot` and is given back at `until`;
/// `None` if its type isn't sold in its market.
fn bill_vm(
    kind: &InstanceType,
    market: Market,
    (boot, until): (Span, Time),
    terms: &ProviderTerms,
) -> Option<Money> {
    let (prices, from) = (terms.price_source(), Time::ZERO);
    let first = prices.price_at(kind, market, from)?;
    let bid = kind.default_bid(market, terms.default_bid);
    let mut meter = BillingMeter::start_at_launch(from, first, terms.billing).at_most(bid);
    meter.start_charging(from + boot);
    let next = |at| prices.next_change(&kind.name, at).filter(|at| *at < until);
    let mut change = next(from).filter(|_| market == Market::Spot);
    while let Some(at) = change {
        if let Some(price) = prices.price_at(kind, market, at) {
            meter.change_price(at, price);
        }
        change = next(at);
    }
    meter.end_charging(until, EndedBy::User);
    Some(meter.settled_cost(terms.tariff))
}
