//! Prices as a scheduler has heard them.

use std::collections::BTreeMap;

use dormouse_units::{Price, Time};

use crate::problem::KindId;

/// What spot VMs of each type cost from when on, as far as that was heard.
#[derive(Debug, Default)]
pub(crate) struct HeardPrices(BTreeMap<KindId, Vec<(Time, Price)>>);

impl HeardPrices {
    /// A price is this from `now` on, which never runs backwards.
    pub(crate) fn hear(&mut self, now: Time, kind: KindId, price: Price) {
        self.0.entry(kind).or_default().push((now, price));
    }

    /// The last one; `None`: nothing was heard.
    pub(crate) fn last(&self, kind: KindId) -> Option<Price> {
        self.0.get(&kind)?.last().map(|(_, price)| *price)
    }

    /// The one at a time that is over or now; `None`: nothing had been heard by then.
    pub(crate) fn at(&self, kind: KindId, at: Time) -> Option<Price> {
        let heard = self.0.get(&kind)?;
        let after = heard.partition_point(|(from, _)| *from <= at);
        heard[..after].last().map(|(_, price)| *price)
    }
}
