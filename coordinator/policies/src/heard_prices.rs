//! Spot prices as a scheduler has heard them.

use std::collections::BTreeMap;

use dormouse_units::{Price, Time};

use crate::problem::KindId;

/// Spot prices by type, each with the time from which it holds, as far as the scheduler got notices of them.
#[derive(Debug, Default)]
pub(crate) struct HeardPrices(BTreeMap<KindId, Vec<(Time, Price)>>);

impl HeardPrices {
    /// Notes a price that holds from `now` on; `now` never runs backwards.
    pub(crate) fn add_price(&mut self, now: Time, kind: KindId, price: Price) {
        self.0.entry(kind).or_default().push((now, price));
    }

    /// The last known price of a type; `None`: the scheduler got no notice of one.
    pub(crate) fn last_price(&self, kind: KindId) -> Option<Price> {
        self.0.get(&kind)?.last().map(|(_, price)| *price)
    }

    /// The price of a type at the time `at`, which must not be in the future; `None`: the scheduler knew no
    /// price by then.
    pub(crate) fn price_at(&self, kind: KindId, at: Time) -> Option<Price> {
        let heard = self.0.get(&kind)?;
        let after = heard.partition_point(|(from, _)| *from <= at);
        heard[..after].last().map(|(_, price)| *price)
    }
}
