//! The provider's offer in EC2's terms: types in zones, their prices and their capacity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dormouse_cloud::{Catalogue, InstanceType, Market, PriceTrace, Prices, SpotAvailability};
use dormouse_model::Setup;
use dormouse_units::{Price, Time, TypeName};

/// The zone of instance types whose names have none.
const DEFAULT_ZONE: &str = "us-east-1a";

/// A capacity pool: instances of one type in one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapacityPool {
    /// The pool's instance type in the provider's catalogue, like `c5.large@us-east-1a`.
    pub(crate) kind: TypeName,
    /// The pool's instance type as EC2 names it, without the zone.
    pub(crate) name: String,
    /// The zone of the pool.
    pub(crate) zone: String,
}

/// All pools, with their prices and their capacity over time.
#[derive(Debug)]
pub(crate) struct PoolMarket {
    catalogue: Catalogue,
    prices: Arc<dyn Prices>,
    traces: BTreeMap<TypeName, PriceTrace>,
    availability: BTreeMap<TypeName, SpotAvailability>,
    regions: BTreeMap<String, Vec<String>>,
}

/// The region of a zone: its name without the last letter.
pub(crate) fn region_of(zone: &str) -> &str {
    zone.strip_suffix(|last: char| last.is_ascii_lowercase()).unwrap_or(zone)
}

impl PoolMarket {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut zones: BTreeSet<&str> =
            setup.catalogue.types.keys().filter_map(TypeName::zone).collect();
        if zones.is_empty() {
            zones.insert(DEFAULT_ZONE);
        }
        let mut regions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for zone in zones {
            regions.entry(region_of(zone).to_owned()).or_default().push(zone.to_owned());
        }
        Self {
            catalogue: setup.catalogue.clone(),
            prices: setup.terms.price_source(),
            traces: setup.terms.prices.clone(),
            availability: setup.terms.availability.clone(),
            regions,
        }
    }

    /// The regions, in the order of their names.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &str> {
        self.regions.keys().map(String::as_str)
    }

    /// The zones of a region; empty for a region that the experiment does not have.
    pub(crate) fn zones(&self, region: &str) -> &[String] {
        self.regions.get(region).map_or(&[], Vec::as_slice)
    }

    /// The pools of a region. A type without a zone is in the first zone of every region.
    pub(crate) fn pools(&self, region: &str) -> Vec<CapacityPool> {
        let zones = self.zones(region);
        let pool = |kind: &InstanceType| {
            let zone = match kind.name.zone() {
                Some(zone) => zones.iter().find(|own| *own == zone)?,
                None => zones.first()?,
            };
            let name = kind.name.without_zone().to_owned();
            Some(CapacityPool { kind: kind.name.clone(), name, zone: zone.clone() })
        };
        self.catalogue.types.values().filter_map(pool).collect()
    }

    /// The catalogue's entry for the instance type of a pool; `None` if the catalogue lacks the type.
    pub(crate) fn offer(&self, kind: &TypeName) -> Option<&InstanceType> {
        self.catalogue.get(kind)
    }

    /// Number of vCPUs of a type.
    pub(crate) fn vcpus(&self, kind: &TypeName) -> u32 {
        self.offer(kind).map_or(0, |offer| offer.vcpus)
    }

    /// Price of an instance now, per hour; `None`: the type is not offered in that market.
    pub(crate) fn price(&self, kind: &TypeName, market: Market, now: Time) -> Option<Price> {
        self.prices.price_at(self.catalogue.get(kind)?, market, now)
    }

    /// Greatest number of spot instances that can exist now; `None`: no limit.
    pub(crate) fn available(&self, kind: &TypeName, now: Time) -> Option<u32> {
        self.availability.get(kind)?.count_at(now)
    }

    /// The next instant at which the pool's price or capacity changes; `None` if neither will change.
    pub(crate) fn next_change(&self, kind: &TypeName, now: Time) -> Option<Time> {
        let capacity = self.availability.get(kind).and_then(|trace| trace.next_change(now));
        Time::sooner_of(self.prices.next_change(kind, now), capacity)
    }

    /// The changes of a pool's spot price, oldest first, each with its time in microseconds from the beginning of the
    /// run; times before the beginning are negative. A price that never changes holds from the beginning on.
    pub(crate) fn price_changes(&self, kind: &TypeName) -> Vec<(i64, Price)> {
        let Some(trace) = self.traces.get(kind) else {
            let price = self.price(kind, Market::Spot, Time::ZERO);
            return price.map(|price| (0, price)).into_iter().collect();
        };
        let (whole, before) = trace.with_past();
        let micros = |at: Time| i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
        let before = i64::try_from(before.as_micros()).unwrap_or(i64::MAX);
        whole
            .steps()
            .iter()
            .map(|(at, price)| (micros(*at).saturating_sub(before), *price))
            .collect()
    }
}

/// A price in EC2's form: dollars an hour with six decimals, or with nine if the price needs them.
pub(crate) fn price_text(price: Price) -> String {
    let nanos = price.as_nanos_per_hour();
    let (dollars, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    match rest % 1_000 {
        0 => format!("{dollars}.{:06}", rest / 1_000),
        _ => format!("{dollars}.{rest:09}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_six_decimals_and_zones_their_regions() {
        let text = |nanos| price_text(Price::from_nanos_per_hour(nanos));
        assert_eq!(text(34_900_000), "0.034900");
        assert_eq!(text(1_000_000_001), "1.000000001");
        assert_eq!(region_of("us-east-1a"), "us-east-1");
    }
}
