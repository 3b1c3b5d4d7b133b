//! Checkpoints by the hours of a VM and by its prices (HOUR, EDGE, ADAPT and OPT of the ACC paper).

use std::collections::BTreeMap;

use dormouse_cloud::{Market, PriceTrace};
use dormouse_model::AdaptKnowledge;
use dormouse_units::{Price, Span, Time, TypeName};

use super::{Checkpointing, Quote, TaskView, When};
use dormouse_spot::{SpotRecord, SpotScheme, UnkeptWork};

/// A spot scheme that decides by prices. It holds all prices of the run, future ones too, since OPT
/// looks ahead. ADAPT estimates its probabilities from the prices up to the decision, including
/// known prices from before the run, unless it is told to use all prices.
#[derive(Debug)]
pub(super) struct PricedCheckpoints {
    scheme: SpotScheme,
    /// Time between two decisions of ADAPT.
    every: Span,
    /// Prices that ADAPT may use.
    knows: AdaptKnowledge,
    /// Time before the price exceeds the bid by which OPT's checkpoint is complete.
    look: Span,
    prices: BTreeMap<TypeName, PriceTrace>,
    /// Price records by type and bid, for the bids that have occurred; the type is `None` for types
    /// without prices. Each comes with the time before the run at which the record begins.
    records: BTreeMap<(Option<TypeName>, Price), (SpotRecord<'static>, Span)>,
}

impl PricedCheckpoints {
    pub(super) fn new(
        scheme: SpotScheme,
        (every, knows): (Span, AdaptKnowledge),
        look: Span,
        prices: &BTreeMap<TypeName, PriceTrace>,
    ) -> Self {
        let prices = if scheme == SpotScheme::Hour { BTreeMap::new() } else { prices.clone() };
        Self { scheme, every, knows, look, prices, records: BTreeMap::new() }
    }
}

impl Checkpointing for PricedCheckpoints {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        let changes = quote.market == Market::Spot && self.prices.contains_key(quote.kind);
        let kind = changes.then(|| quote.kind.clone());
        // A VM without a bid is never taken away for its price.
        let bid = quote.bid.unwrap_or(Price::from_nanos_per_hour(u64::MAX));
        let none = PriceTrace::default();
        let (record, before) = self.records.entry((kind, bid)).or_insert_with_key(|(kind, bid)| {
            let trace = kind.as_ref().and_then(|kind| self.prices.get(kind)).unwrap_or(&none);
            let (trace, before) = match self.scheme {
                SpotScheme::Adapt => trace.with_past(),
                _ => (trace.clone(), Span::ZERO),
            };
            // The last price holds for ever.
            let record = SpotRecord::new(&trace, *bid, Time::from_micros(u64::MAX)).into_owned();
            (record, before)
        });
        let before = *before;
        let work = UnkeptWork {
            begins: quote.charged_from? + before,
            since: task.since + before,
            from: now + before,
            done: task.since + task.unkept_work() + before,
            cost: task.cost,
            every: self.every,
            knows: self.knows,
        };
        let next = self.scheme.next(record, &work)? - before;
        Some(When::At(if self.scheme == SpotScheme::Opt { next - self.look } else { next }))
    }
}
