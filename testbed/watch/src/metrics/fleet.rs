//! The VMs of a run that are alive: their states, what they cost and the credits that they have.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{Action, Billing, Burstable, Catalogue, Market, Meter, Prices, TariffName};
use dormouse_model::{Effect, Event, Notice, Report, Setup, Step, VmEnd};
use dormouse_units::{Credits, Money, Price, Time, TypeName, VmId};

/// The stage of a VM's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Booting,
    Running,
    /// The VM runs, and its end is announced.
    Notice,
    Hibernating,
    Hibernated,
    Resuming,
}

impl Stage {
    pub(super) const ALL: [Self; 6] = [
        Self::Booting,
        Self::Running,
        Self::Notice,
        Self::Hibernating,
        Self::Hibernated,
        Self::Resuming,
    ];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Booting => "booting",
            Self::Running => "running",
            Self::Notice => "notice",
            Self::Hibernating => "hibernating",
            Self::Hibernated => "hibernated",
            Self::Resuming => "resuming",
        }
    }
}

pub(super) const MARKETS: [Market; 2] = [Market::Spot, Market::OnDemand];

/// The market as labels have it.
pub(super) const fn market_word(market: Market) -> &'static str {
    match market {
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    }
}

#[derive(Clone, Debug)]
struct Vm {
    kind: TypeName,
    market: Market,
    bid: Option<Price>,
    stage: Stage,
    has_notice: bool,
    meter: Meter,
    surcharge: Money,
    /// Credits that a burstable VM has.
    credits: Option<Credits>,
}

/// All VMs that are alive, and sums over those that were.
#[derive(Debug)]
pub(super) struct Fleet {
    catalogue: Catalogue,
    tariff: TariffName,
    billing: Billing,
    prices: Arc<dyn Prices>,
    vms: BTreeMap<VmId, Vm>,
    /// The cost of the VMs that have ended.
    settled: Money,
    pub(super) launched: BTreeMap<&'static str, u64>,
    pub(super) ended: BTreeMap<&'static str, u64>,
    pub(super) launches_refused: u64,
    pub(super) hibernations: u64,
    pub(super) resumes: u64,
    pub(super) preemptions: u64,
    pub(super) rebalances: u64,
}

impl Fleet {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            catalogue: setup.catalogue.clone(),
            tariff: setup.terms.tariff,
            billing: setup.terms.billing,
            prices: setup.terms.prices(),
            vms: BTreeMap::new(),
            settled: Money::ZERO,
            launched: BTreeMap::new(),
            ended: BTreeMap::new(),
            launches_refused: 0,
            hibernations: 0,
            resumes: 0,
            preemptions: 0,
            rebalances: 0,
        }
    }

    /// Takes in a step; `is_stale` says that its report is of no concern any more.
    pub(super) fn see(&mut self, step: &Step, is_stale: bool) {
        if let Event::Machine { report: Report::Credits { vm, balance, .. }, .. } = step.event
            && !is_stale
        {
            let burstable = self.vms.get(&vm).and_then(|vm| self.burstable(&vm.kind));
            let balance = burstable.map_or(balance, |of| of.of_vm(balance));
            self.on(vm, |vm| vm.credits = Some(balance));
        }
        for effect in &step.effects {
            self.effect(step.at, effect);
        }
        for notice in &step.notices {
            match notice {
                Notice::LaunchRefused { .. } => self.launches_refused += 1,
                // In unlimited mode what the machine says is not what the VM has.
                Notice::Credits { vm, balance } => {
                    self.on(*vm, |vm| vm.credits = Some(*balance));
                }
                _ => {}
            }
        }
    }

    fn effect(&mut self, now: Time, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, .. } => {
                *self.launched.entry(market_word(*market)).or_default() += 1;
                let credits = self.burstable(kind).map(|of| of.initial.min(of.cap));
                let launched = Vm {
                    kind: kind.clone(),
                    market: *market,
                    bid: *bid,
                    stage: Stage::Booting,
                    has_notice: false,
                    meter: Meter::launched(now, *price, self.billing).at_most(*bid),
                    surcharge: Money::ZERO,
                    credits,
                };
                self.vms.insert(*vm, launched);
            }
            Effect::VmReady { vm } => self.runs(now, *vm),
            Effect::VmResumed { vm, .. } => {
                self.resumes += 1;
                self.runs(now, *vm);
            }
            Effect::VmHibernated { vm, .. } => {
                self.hibernations += 1;
                self.on(*vm, |vm| {
                    vm.stage = Stage::Hibernated;
                    vm.meter.freeze(now);
                });
            }
            Effect::Interrupted { action, vms, .. } => {
                vms.iter().for_each(|vm| self.acted_on(*vm, *action));
            }
            Effect::Outbid { vm } | Effect::Reclaimed { vm } => self.acted_on(*vm, Action::Preempt),
            Effect::Displaced { vm, action, .. } => self.acted_on(*vm, *action),
            Effect::GivenBack { vm } => self.acted_on(*vm, Action::Resume),
            Effect::PriceChanged { kind, price } => {
                let of_kind = |vm: &&mut Vm| vm.market == Market::Spot && vm.kind == *kind;
                for vm in self.vms.values_mut().filter(of_kind) {
                    vm.meter.reprice(now, *price);
                }
            }
            Effect::SurplusCharged { vm, cost, .. } => self.on(*vm, |vm| vm.surcharge = *cost),
            Effect::VmEnded { vm, why, cost } => {
                *self.ended.entry(why.word()).or_default() += 1;
                self.preemptions += u64::from(*why == VmEnd::Preempted);
                self.settled += *cost;
                self.vms.remove(vm);
            }
            _ => {}
        }
    }

    fn on(&mut self, vm: VmId, change: impl FnOnce(&mut Vm)) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            change(vm);
        }
    }

    fn runs(&mut self, now: Time, vm: VmId) {
        self.on(vm, |vm| {
            vm.stage = Stage::Running;
            vm.meter.start(now);
        });
    }

    /// The provider did this to a VM.
    fn acted_on(&mut self, vm: VmId, action: Action) {
        self.rebalances += u64::from(action == Action::Rebalance);
        self.on(vm, |vm| match action {
            Action::Hibernate => vm.stage = Stage::Hibernating,
            Action::Resume => vm.stage = Stage::Resuming,
            Action::Preempt => vm.has_notice = true,
            Action::Rebalance => {}
        });
    }

    fn burstable(&self, kind: &TypeName) -> Option<Burstable> {
        self.catalogue.get(kind)?.burstable
    }

    /// The number of VMs of each market in each state.
    pub(super) fn by_state(&self) -> BTreeMap<(&'static str, Stage), u64> {
        let none = MARKETS.into_iter().flat_map(|market| {
            Stage::ALL.into_iter().map(move |stage| ((market_word(market), stage), 0))
        });
        let mut count: BTreeMap<_, _> = none.collect();
        for vm in self.vms.values() {
            let stage = match vm.stage {
                Stage::Running if vm.has_notice => Stage::Notice,
                stage => stage,
            };
            *count.entry((market_word(vm.market), stage)).or_default() += 1;
        }
        count
    }

    /// The cost of all VMs up to `now`.
    pub(super) fn cost(&self, now: Time) -> Money {
        let alive = self.vms.values().map(|vm| vm.meter.owed(now, self.tariff) + vm.surcharge);
        self.settled + alive.sum()
    }

    /// The cost of an hour of all VMs that are charged now, in dollars.
    pub(super) fn rate(&self) -> f64 {
        let is_charged = |vm: &&Vm| match vm.stage {
            Stage::Booting => self.billing.boot,
            Stage::Running | Stage::Notice | Stage::Hibernating => true,
            Stage::Hibernated | Stage::Resuming => false,
        };
        let charged = self.vms.values().filter(is_charged).map(|vm| {
            let price = vm.meter.price();
            vm.bid.map_or(price, |bid| price.min(bid)).as_usd_per_hour()
        });
        charged.sum()
    }

    /// Credits of the burstable VMs of each type: all together, and those of the poorest.
    pub(super) fn credits(&self) -> BTreeMap<&TypeName, (f64, f64)> {
        let mut by_type: BTreeMap<&TypeName, (f64, f64)> = BTreeMap::new();
        for vm in self.vms.values() {
            let Some(credits) = vm.credits.map(Credits::as_f64) else { continue };
            let of = by_type.entry(&vm.kind).or_insert((0.0, f64::INFINITY));
            *of = (of.0 + credits, of.1.min(credits));
        }
        by_type
    }

    /// The spot price of each type that is sold so, in dollars an hour.
    pub(super) fn spot_prices(&self, now: Time) -> impl Iterator<Item = (&TypeName, f64)> {
        let sold = self.catalogue.types.values().filter(|kind| kind.limit(Market::Spot) > 0);
        sold.filter_map(move |kind| {
            let price = self.prices.at(kind, Market::Spot, now)?;
            Some((&kind.name, price.as_usd_per_hour()))
        })
    }
}
