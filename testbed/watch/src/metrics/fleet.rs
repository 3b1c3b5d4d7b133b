//! Living VMs of a run: their stages, cost and credits.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_analysis::{RunRecord, VmHistory};
use dormouse_cloud::{BillingTerms, Catalogue, InterruptionAction, Market, Prices};
use dormouse_model::{Effect, Setup, Step};
use dormouse_units::{Credits, Money, Time, TypeName};

/// Stage of a VM that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FleetStage {
    Booting,
    Running,
    /// The VM runs and has notice of its end.
    Notice,
    Hibernating,
    Hibernated,
    Resuming,
}

impl FleetStage {
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

/// The market as a label value.
pub(super) const fn market_word(market: Market) -> &'static str {
    match market {
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    }
}

/// The present stage of a VM that has not ended.
fn stage_of(vm: &VmHistory) -> FleetStage {
    match (vm.is_running(), vm.told) {
        (true, Some(InterruptionAction::Hibernate)) => FleetStage::Hibernating,
        (true, _) if vm.has_notice => FleetStage::Notice,
        (true, _) => FleetStage::Running,
        (false, _) if vm.ready.is_none() => FleetStage::Booting,
        (false, Some(InterruptionAction::Resume)) => FleetStage::Resuming,
        (false, _) => FleetStage::Hibernated,
    }
}

/// VMs of a run: counts of launches and ends, and the cost of those that ended.
#[derive(Debug)]
pub(super) struct FleetMetrics {
    catalogue: Catalogue,
    billing: BillingTerms,
    prices: Arc<dyn Prices>,
    /// Cost of the VMs that ended.
    settled: Money,
    pub(super) launched: BTreeMap<&'static str, u64>,
    pub(super) ended: BTreeMap<&'static str, u64>,
    pub(super) rebalances: u64,
}

impl FleetMetrics {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            catalogue: setup.catalogue.clone(),
            billing: setup.terms.billing,
            prices: setup.terms.price_source(),
            settled: Money::ZERO,
            launched: BTreeMap::new(),
            ended: BTreeMap::new(),
            rebalances: 0,
        }
    }

    pub(super) fn see(&mut self, step: &Step) {
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { market, .. } => {
                    *self.launched.entry(market_word(*market)).or_default() += 1;
                }
                Effect::VmEnded { why, cost, .. } => {
                    *self.ended.entry(why.one_word()).or_default() += 1;
                    self.settled += *cost;
                }
                Effect::Interrupted { action: InterruptionAction::Rebalance, vms, .. } => {
                    self.rebalances += vms.len() as u64;
                }
                _ => {}
            }
        }
    }

    /// Number of VMs by market and stage.
    pub(super) fn by_state(record: &RunRecord) -> BTreeMap<(&'static str, FleetStage), u64> {
        let none = MARKETS.into_iter().flat_map(|market| {
            FleetStage::ALL.into_iter().map(move |stage| ((market_word(market), stage), 0))
        });
        let mut count: BTreeMap<_, _> = none.collect();
        for vm in record.vms.values() {
            *count.entry((market_word(vm.market), stage_of(vm))).or_default() += 1;
        }
        count
    }

    /// Cost of all VMs up to `now`.
    pub(super) fn cost(&self, record: &RunRecord, now: Time) -> Money {
        self.settled + record.vms.values().map(|vm| vm.owed(now)).sum()
    }

    /// Hourly cost of all VMs that are charged now, in dollars.
    pub(super) fn rate(&self, record: &RunRecord) -> f64 {
        let is_charged = |vm: &&VmHistory| match stage_of(vm) {
            FleetStage::Booting => self.billing.boot,
            FleetStage::Running | FleetStage::Notice | FleetStage::Hibernating => true,
            FleetStage::Hibernated | FleetStage::Resuming => false,
        };
        let charged = record.vms.values().filter(is_charged);
        let used: f64 = charged.map(|vm| vm.meter().charged_price().as_usd_per_hour()).sum();
        let disks = record.vms.values().map(|vm| vm.meter().disk_price_now().as_usd_per_hour());
        used + disks.sum::<f64>()
    }

    /// Credits of the burstable VMs of each type: their sum, and the lowest balance.
    pub(super) fn credits<'a>(&self, record: &'a RunRecord) -> BTreeMap<&'a TypeName, (f64, f64)> {
        let initial =
            |kind| Some(self.catalogue.get(kind)?.burstable.map(|of| of.initial.min(of.cap)));
        let mut by_type: BTreeMap<&TypeName, (f64, f64)> = BTreeMap::new();
        for vm in record.vms.values() {
            let told = vm.credits.last().map(|(_, balance)| *balance);
            let Some(credits) = told.or_else(|| initial(&vm.kind)?).map(Credits::as_f64) else {
                continue;
            };
            let of = by_type.entry(&vm.kind).or_insert((0.0, f64::INFINITY));
            *of = (of.0 + credits, of.1.min(credits));
        }
        by_type
    }

    /// Spot price of each type that is sold as spot, in dollars per hour.
    pub(super) fn spot_prices(&self, now: Time) -> impl Iterator<Item = (&TypeName, f64)> {
        let sold = self.catalogue.types.values().filter(|kind| kind.vm_limit(Market::Spot) > 0);
        sold.filter_map(move |kind| {
            let price = self.prices.price_at(kind, Market::Spot, now)?;
            Some((&kind.name, price.as_usd_per_hour()))
        })
    }
}
