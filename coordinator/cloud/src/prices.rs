//! What a VM costs an hour, and from when on.

use std::collections::BTreeMap;

use dormouse_units::{Price, Time, TypeName};
use serde::{Deserialize, Serialize};

use crate::{InstanceType, Market};

/// Says what VMs cost. Prices on demand never change.
pub trait Prices: std::fmt::Debug + Send + Sync {
    /// The price of a type at a time; `None` where it isn't offered in that market.
    fn at(&self, kind: &InstanceType, market: Market, at: Time) -> Option<Price>;

    /// When the spot price of a type changes next, after a time.
    fn next_change(&self, kind: &TypeName, after: Time) -> Option<Time>;
}

/// What the catalogue says, for ever.
#[derive(Clone, Copy, Debug)]
pub struct Listed;

impl Prices for Listed {
    fn at(&self, kind: &InstanceType, market: Market, _: Time) -> Option<Price> {
        kind.price(market)
    }

    fn next_change(&self, _: &TypeName, _: Time) -> Option<Time> {
        None
    }
}

/// The spot prices of a type: each holds from its time until the next one's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PriceTrace(Vec<(Time, Price)>);

impl PriceTrace {
    /// Of these prices, in any order. Of several at one time the last one given holds; what repeats
    /// the price before it is left out.
    #[must_use]
    pub fn new(mut prices: Vec<(Time, Price)>) -> Self {
        // A stable sort: those of one time stay in the order in which they were given.
        prices.sort_by_key(|(at, _)| *at);
        let mut trace: Vec<(Time, Price)> = Vec::with_capacity(prices.len());
        for (at, price) in prices {
            trace.pop_if(|last| last.0 == at);
            if trace.last().is_none_or(|last| last.1 != price) {
                trace.push((at, price));
            }
        }
        Self(trace)
    }

    /// The price at a time; `None` before the first.
    #[must_use]
    pub fn at(&self, at: Time) -> Option<Price> {
        let after = self.0.partition_point(|(from, _)| *from <= at);
        after.checked_sub(1).and_then(|n| self.0.get(n)).map(|(_, price)| *price)
    }

    /// When the price changes next, after a time.
    #[must_use]
    pub fn next_change(&self, after: Time) -> Option<Time> {
        self.0.get(self.0.partition_point(|(from, _)| *from <= after)).map(|(from, _)| *from)
    }

    /// The times from which on each price holds, and the prices.
    #[must_use]
    pub fn steps(&self) -> &[(Time, Price)] {
        &self.0
    }
}

/// Spot prices that were recorded; types without a record cost what the catalogue says.
#[derive(Clone, Debug)]
pub struct Recorded(pub BTreeMap<TypeName, PriceTrace>);

impl Prices for Recorded {
    fn at(&self, kind: &InstanceType, market: Market, at: Time) -> Option<Price> {
        let listed = kind.price(market)?;
        let trace = self.0.get(&kind.name).filter(|_| market == Market::Spot);
        Some(trace.and_then(|trace| trace.at(at)).unwrap_or(listed))
    }

    fn next_change(&self, kind: &TypeName, after: Time) -> Option<Time> {
        self.0.get(kind)?.next_change(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_holds_until_the_next_one() {
        let (s, p) = (Time::from_secs, Price::from_nanos_per_hour);
        let given = vec![(s(50), p(2)), (s(10), p(9)), (s(10), p(1)), (s(60), p(2)), (s(70), p(3))];
        let trace = PriceTrace::new(given);
        assert_eq!(trace.steps(), [(s(10), p(1)), (s(50), p(2)), (s(70), p(3))]);
        assert_eq!(
            [9, 10, 49, 50, 69, 99].map(|t| trace.at(s(t)).map_or(0, |p| p.as_nanos_per_hour())),
            [0, 1, 1, 2, 2, 3]
        );
        assert_eq!(
            [0, 10, 50, 70].map(|t| trace.next_change(s(t))),
            [Some(s(10)), Some(s(50)), Some(s(70)), None]
        );
    }
}
