//! VMs of a picture: how many run, and what they cost.

use std::collections::BTreeMap;

use dormouse_analysis::Lanes;
use dormouse_cloud::{Billing, Market, Meter, TariffName};
use dormouse_model::Setup;
use dormouse_units::{Money, Price, TaskId, Time, TypeName, VmId};

/// The VMs that a run has at a moment.
#[derive(Debug)]
pub(super) struct Machines {
    tariff: TariffName,
    billing: Billing,
    alive: BTreeMap<VmId, Machine>,
    /// The cost of the VMs that have ended.
    ended: Money,
    /// The sum of what all VMs that are alive add to the fleet.
    total: Part,
    /// The last cost that was added up of all meters, and when.
    reckoned: (Time, Money),
    /// The number of times that the cost was asked for since then.
    asked: usize,
}

/// One of the VMs that a run has.
#[derive(Debug)]
struct Machine {
    kind: TypeName,
    market: Market,
    bid: Option<Price>,
    runs: bool,
    meter: Meter,
    /// The part that the VM adds to the fleet.
    part: Part,
    /// The task on each vCPU, where nobody says which vCPUs a task has.
    lanes: Lanes,
}

impl Machine {
    /// The part that the VM adds to the fleet by now.
    fn counted(&self) -> Part {
        let is = |market| u32::from(self.runs && self.market == market);
        let price = self.bid.map_or(self.meter.price(), |bid| bid.min(self.meter.price()));
        let charged = self.meter.runs_since().is_some();
        Part {
            spot: is(Market::Spot),
            on_demand: is(Market::OnDemand),
            nanos_per_hour: if charged { price.as_nanos_per_hour() } else { 0 },
        }
    }
}

/// VMs that run, by market, and what is charged for them.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    spot: u32,
    on_demand: u32,
    nanos_per_hour: u64,
}

/// The number of VMs that run, and the cost of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fleet {
    pub(super) spot: u32,
    pub(super) on_demand: u32,
    pub(super) cost_usd: f64,
    pub(super) usd_per_hour: f64,
}

impl Machines {
    /// An empty fleet, of a run of this setup.
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            tariff: setup.terms.tariff,
            billing: setup.terms.billing,
            alive: BTreeMap::new(),
            ended: Money::ZERO,
            total: Part::default(),
            reckoned: (Time::ZERO, Money::ZERO),
            asked: 0,
        }
    }

    pub(super) fn launched(
        &mut self,
        now: Time,
        vm: VmId,
        (kind, market, vcpus): (&TypeName, Market, u32),
        (price, bid): (Price, Option<Price>),
    ) {
        let meter = Meter::launched(now, price, self.billing).at_most(bid);
        let (kind, lanes) = (kind.clone(), Lanes::new(vcpus));
        let part = Part::default();
        self.alive.insert(vm, Machine { kind, market, bid, runs: false, meter, part, lanes });
        self.on(vm, |_| {});
    }

    /// The VM runs: it has booted, or resumed.
    pub(super) fn runs(&mut self, now: Time, vm: VmId) {
        self.on(vm, |it| {
            it.runs = true;
            it.meter.start(now);
        });
    }

    pub(super) fn froze(&mut self, now: Time, vm: VmId) {
        self.on(vm, |it| {
            it.runs = false;
            it.meter.freeze(now);
        });
    }

    /// The VM is gone. What it cost is what the engine says.
    pub(super) fn ended(&mut self, vm: VmId, cost: Money) {
        let Some(it) = self.alive.remove(&vm) else { return };
        self.ended += cost;
        self.count(it.part, Part::default());
        // The cost that was added up before has what the VM owed then, not what it cost.
        self.asked = usize::MAX;
    }

    pub(super) fn repriced(&mut self, now: Time, kind: &TypeName, price: Price) {
        let alike = |it: &Machine| it.market == Market::Spot && it.kind == *kind;
        let alike = self.alive.iter().filter(|(_, it)| alike(it)).map(|(vm, _)| *vm);
        for vm in alike.collect::<Vec<_>>() {
            self.on(vm, |it| it.meter.reprice(now, price));
        }
    }

    /// A vCPU for a task of which nobody says where it is: the first that is free.
    pub(super) fn lane(&mut self, vm: VmId, task: TaskId) -> u32 {
        let Some(it) = self.alive.get_mut(&vm) else { return 0 };
        u32::try_from(it.lanes.take(task, None)).unwrap_or(u32::MAX)
    }

    /// The task leaves its vCPU.
    pub(super) fn leave(&mut self, vm: VmId, task: TaskId) {
        let Some(it) = self.alive.get_mut(&vm) else { return };
        it.lanes.leave(task);
    }

    /// The VMs that run now and the cost of all. Where there are many VMs, not all meters are read each time:
    /// in between the cost grows by what is charged an hour.
    pub(super) fn fleet(&mut self, now: Time) -> Fleet {
        self.asked = self.asked.saturating_add(1);
        if self.asked > self.alive.len() / 64 {
            let owed = self.alive.values().map(|it| it.meter.owed(now, self.tariff));
            self.reckoned = (now, self.ended + owed.sum::<Money>());
            self.asked = 0;
        }
        let Part { spot, on_demand, nanos_per_hour } = self.total;
        let usd_per_hour = Price::from_nanos_per_hour(nanos_per_hour).as_usd_per_hour();
        let (at, cost) = self.reckoned;
        let since_h = now.since(at).as_secs_f64() / 3_600.0;
        let cost_usd = cost.as_usd() + usd_per_hour * since_h;
        Fleet { spot, on_demand, cost_usd, usd_per_hour }
    }

    /// Changes a VM, and what it adds to the fleet.
    fn on(&mut self, vm: VmId, change: impl FnOnce(&mut Machine)) {
        let Some(it) = self.alive.get_mut(&vm) else { return };
        change(it);
        let (was, is) = (it.part, it.counted());
        it.part = is;
        self.count(was, is);
    }

    const fn count(&mut self, was: Part, is: Part) {
        let total = &mut self.total;
        total.spot = total.spot + is.spot - was.spot;
        total.on_demand = total.on_demand + is.on_demand - was.on_demand;
        total.nanos_per_hour = total.nanos_per_hour + is.nanos_per_hour - was.nanos_per_hour;
    }
}
