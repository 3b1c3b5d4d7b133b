//! Prices of VMs per hour over time.

use std::collections::BTreeMap;

use dormouse_units::{Price, RandomStream, Span, Time, TypeName};
use serde::{Deserialize, Serialize};

use crate::{InstanceType, Market};

/// Source of VMs' prices. On-demand prices never change.
pub trait Prices: std::fmt::Debug + Send + Sync {
    /// Price of a type at a time; `None` if the type isn't sold in that market.
    fn price_at(&self, kind: &InstanceType, market: Market, at: Time) -> Option<Price>;

    /// Time of the next change of a type's spot price after `after`; `None`: there is none.
    fn next_change(&self, kind: &TypeName, after: Time) -> Option<Time>;
}

/// Constant prices of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct ListedPrices;

impl Prices for ListedPrices {
    fn price_at(&self, kind: &InstanceType, market: Market, _: Time) -> Option<Price> {
        kind.price(market)
    }

    fn next_change(&self, _: &TypeName, _: Time) -> Option<Time> {
        None
    }
}

/// Spot prices of a type over time; each holds until the next one's time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PriceTraceForm", into = "PriceTraceForm")]
pub struct PriceTrace {
    steps: Vec<(Time, Price)>,
    /// Prices before the beginning, oldest first, each with the time from when it began to hold until the beginning.
    past: Vec<(Span, Price)>,
}

/// Serialised form of a trace: a plain list if it has no past.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PriceTraceForm {
    Steps(Vec<(Time, Price)>),
    WithPast { past: Vec<(Span, Price)>, steps: Vec<(Time, Price)> },
}

impl From<PriceTraceForm> for PriceTrace {
    fn from(written: PriceTraceForm) -> Self {
        match written {
            PriceTraceForm::Steps(steps) => Self { steps, past: Vec::new() },
            PriceTraceForm::WithPast { past, steps } => Self { steps, past },
        }
    }
}

impl From<PriceTrace> for PriceTraceForm {
    fn from(PriceTrace { steps, past }: PriceTrace) -> Self {
        if past.is_empty() { Self::Steps(steps) } else { Self::WithPast { past, steps } }
    }
}

impl PriceTrace {
    /// A trace of prices in any order. Of several prices at one time the last one given counts;
    /// repetitions are dropped.
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
        Self { steps: trace, past: Vec::new() }
    }

    /// The price at a time; `None` before the first price.
    #[must_use]
    pub fn price_at(&self, at: Time) -> Option<Price> {
        let after = self.steps.partition_point(|(from, _)| *from <= at);
        after.checked_sub(1).and_then(|n| self.steps.get(n)).map(|(_, price)| *price)
    }

    /// Time of the next price change after `after`; `None`: there is none.
    #[must_use]
    pub fn next_change(&self, after: Time) -> Option<Time> {
        let next = self.steps.partition_point(|(from, _)| *from <= after);
        self.steps.get(next).map(|(from, _)| *from)
    }

    /// The prices for a run that begins at the time `start` of this trace; earlier prices become the new trace's past.
    #[must_use]
    pub fn begun_at(&self, start: Span) -> Self {
        let since = |at: Time| Time::ZERO + at.since(Time::ZERO).saturating_sub(start);
        // Prices from before the beginning all move to it, and the last of them holds.
        let new = Self::new(self.steps.iter().map(|(at, price)| (since(*at), *price)).collect());
        let begins = Time::ZERO + start;
        let gone = self.steps.iter().take_while(|(at, _)| *at < begins);
        let gone = gone.map(|(at, price)| (begins.since(*at), *price));
        let before = self.past.iter().map(|(before, price)| (*before + start, *price));
        Self { past: before.chain(gone).collect(), ..new }
    }

    /// The trace with its past prices in front, and the time from the first past price to the beginning.
    #[must_use]
    pub fn with_past(&self) -> (Self, Span) {
        let length = self.past.first().map_or(Span::ZERO, |(before, _)| *before);
        let past = self
            .past
            .iter()
            .map(|(before, price)| (Time::ZERO + length.saturating_sub(*before), *price));
        let since = self.steps.iter().map(|(at, price)| (*at + length, *price));
        (Self::new(past.chain(since).collect()), length)
    }

    /// The prices multiplied by the factor `by`; a price that would become too large is unchanged.
    #[must_use]
    pub fn scaled_by(&self, by: f64) -> Self {
        let scaled =
            |price: Price| Price::from_usd_per_hour(price.as_usd_per_hour() * by).unwrap_or(price);
        let new = Self::new(self.steps.iter().map(|(at, price)| (*at, scaled(*price))).collect());
        let past = self.past.iter().map(|(before, price)| (*before, scaled(*price)));
        Self { past: past.collect(), ..new }
    }

    /// The prices in order of time, each with the time from which it holds.
    #[must_use]
    pub fn steps(&self) -> &[(Time, Price)] {
        &self.steps
    }
}

/// Recorded spot prices of a type; each run begins at a random point of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnStart {
    /// The recorded prices of the type.
    pub record: PriceTrace,
    /// Length of the price record.
    pub length: Span,
}

impl DrawnStart {
    /// Point of the record at which a run with this seed begins: at the same fraction of the length in all records.
    #[must_use]
    pub fn draw_start(&self, seed: u64) -> Span {
        let part = RandomStream::new(seed, "start of prices", 0).draw_unit();
        Span::from_secs_f64(self.length.as_secs_f64() * part).unwrap_or_default()
    }

    /// Prices for a run with this seed, from its point of the record on.
    #[must_use]
    pub fn draw_trace(&self, seed: u64) -> PriceTrace {
        self.record.begun_at(self.draw_start(seed))
    }
}

/// Recorded spot prices; types without a record have the catalogue's price.
#[derive(Clone, Debug)]
pub struct RecordedSpotPrices(pub BTreeMap<TypeName, PriceTrace>);

impl Prices for RecordedSpotPrices {
    fn price_at(&self, kind: &InstanceType, market: Market, at: Time) -> Option<Price> {
        let listed = kind.price(market)?;
        let trace = self.0.get(&kind.name).filter(|_| market == Market::Spot);
        Some(trace.and_then(|trace| trace.price_at(at)).unwrap_or(listed))
    }

    fn next_change(&self, kind: &TypeName, after: Time) -> Option<Time> {
        self.0.get(kind)?.next_change(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_before_the_beginning_is_the_past() {
        let (s, p) = (Time::from_secs, Price::from_nanos_per_hour);
        let record = PriceTrace::new(vec![(s(10), p(1)), (s(40), p(2)), (s(80), p(3))]);
        assert_eq!(record.with_past(), (record.clone(), Span::ZERO));
        let later = record.begun_at(Span::from_secs(50));
        let (whole, length) = later.with_past();
        // From the first price on.
        assert_eq!(length, Span::from_secs(40));
        assert_eq!(whole.steps(), [(s(0), p(1)), (s(30), p(2)), (s(70), p(3))]);
        // Later still, and at a price of its own.
        let again = later.begun_at(Span::from_secs(30));
        assert_eq!(again.steps(), [(s(0), p(3))]);
        assert_eq!(again.with_past(), (whole, Span::from_secs(70)));
        assert_eq!(again.scaled_by(2.0).with_past().0.steps()[1], (s(30), p(4)));
        for trace in [record, again] {
            let written = serde_json::to_string(&trace).expect("JSON");
            assert_eq!(serde_json::from_str::<PriceTrace>(&written).expect("a trace"), trace);
        }
        let old = "[[0,1],[30000000,2]]";
        let old: PriceTrace = serde_json::from_str(old).expect("a log's");
        assert_eq!(old.steps(), [(s(0), p(1)), (s(30), p(2))]);
    }

    #[test]
    fn a_run_begins_where_its_seed_has_it_in_all_records() {
        let (s, p) = (Time::from_secs, Price::from_nanos_per_hour);
        let record = PriceTrace::new(vec![(s(0), p(1)), (s(40), p(2)), (s(80), p(3))]);
        assert_eq!(record.begun_at(Span::from_secs(50)).steps(), [(s(0), p(2)), (s(30), p(3))]);
        assert_eq!(record.begun_at(Span::from_secs(500)).steps(), [(s(0), p(3))]);
        assert_eq!(record.scaled_by(2.5).steps()[1], (s(40), p(5)));
        let long = PriceTrace::new(
            record
                .steps()
                .iter()
                .map(|(at, price)| (Time::ZERO + at.since(Time::ZERO).times(10), *price))
                .collect(),
        );
        let [short, long] = [(record, 100), (long, 1_000)]
            .map(|(record, length)| DrawnStart { record, length: Span::from_secs(length) });
        let first = |of: &DrawnStart, seed| of.draw_trace(seed).price_at(Time::ZERO);
        assert!((0..40).all(|seed| first(&short, seed) == first(&long, seed)));
        let of: BTreeMap<_, _> = (0..40).map(|seed| (first(&short, seed), ())).collect();
        assert_eq!(of.len(), 3, "runs begin all over the record: {of:?}");
        assert_eq!(short.draw_trace(7), short.draw_trace(7));
    }

    #[test]
    fn a_price_holds_until_the_next_one() {
        let (s, p) = (Time::from_secs, Price::from_nanos_per_hour);
        let given = vec![(s(50), p(2)), (s(10), p(9)), (s(10), p(1)), (s(60), p(2)), (s(70), p(3))];
        let trace = PriceTrace::new(given);
        assert_eq!(trace.steps(), [(s(10), p(1)), (s(50), p(2)), (s(70), p(3))]);
        assert_eq!(
            [9, 10, 49, 50, 69, 99]
                .map(|t| trace.price_at(s(t)).map_or(0, |p| p.as_nanos_per_hour())),
            [0, 1, 1, 2, 2, 3]
        );
        assert_eq!(
            [0, 10, 50, 70].map(|t| trace.next_change(s(t))),
            [Some(s(10)), Some(s(50)), Some(s(70)), None]
        );
    }
}
