//! Price record seen from one bid, and the uptimes of instances at that bid.

use std::borrow::Cow;

use dormouse_cloud::PriceTrace;
use dormouse_model::AdaptKnowledge;
use dormouse_units::{Money, Price, Span, Time};

/// One hour, the unit in which an instance is charged.
pub const HOUR: Span = Span::from_secs(3_600);

/// Price record at one bid. An instance is available while the price does not exceed the bid.
#[derive(Clone, Debug)]
pub struct SpotRecord<'a> {
    trace: Cow<'a, PriceTrace>,
    bid: Price,
    /// Intervals in which an instance can be had, in order. The last may end with the record.
    available: Vec<(Time, Time)>,
    /// Times at which the price rose, in order.
    rises: Vec<Time>,
    /// Uptimes: durations for which instances could be kept at this bid, ascending, without an uptime that the record's
    /// end cut off.
    uptimes: Vec<Span>,
    /// The uptimes in the order in which they ended.
    ended: OrderedUptimes,
    until: Time,
}

impl<'a> SpotRecord<'a> {
    /// A record of prices at a bid; prices are known until `until`.
    #[must_use]
    pub fn new(trace: &'a PriceTrace, bid: Price, until: Time) -> Self {
        let steps = trace.steps();
        let mut available: Vec<(Time, Time)> = Vec::new();
        for (n, (from, price)) in steps.iter().enumerate() {
            let to = steps.get(n + 1).map_or(until, |next| next.0).min(until);
            if *price > bid || *from >= to {
                continue;
            }
            match available.last_mut() {
                Some(last) if last.1 == *from => last.1 = to,
                _ => available.push((*from, to)),
            }
        }
        let is_rise = |pair: &&[(Time, Price)]| pair[0].1 < pair[1].1;
        let rises = steps.windows(2).filter(is_rise).map(|pair| pair[1].0).collect();
        let whole = available.iter().filter(|(_, to)| *to < until);
        let mut uptimes: Vec<_> = whole.map(|(from, to)| to.since(*from)).collect();
        let ended = OrderedUptimes::new(uptimes.clone());
        uptimes.sort_unstable();
        Self { trace: Cow::Borrowed(trace), bid, available, rises, uptimes, ended, until }
    }

    /// A copy of the record that owns its prices.
    pub fn into_owned(self) -> SpotRecord<'static> {
        SpotRecord { trace: Cow::Owned(self.trace.into_owned()), ..self }
    }

    /// Time until which prices are known.
    pub(super) const fn known_until(&self) -> Time {
        self.until
    }

    /// The next time at or after `at` at which an instance is available, and the time at which the price then exceeds the bid;
    /// `None`: no instance is available any more.
    pub(super) fn next_available(&self, at: Time) -> Option<(Time, Time)> {
        let n = self.available.partition_point(|(_, to)| *to <= at);
        self.available.get(n).map(|(from, to)| ((*from).max(at), *to))
    }

    /// The first query at which an instance is available, for a user who queries the price at `first` and then once per `query`.
    /// Returns the query's time, and the time at which the price then exceeds the bid. With a `query` of zero each change is seen
    /// at once.
    pub(super) fn next_queried(&self, first: Time, query: Span) -> Option<(Time, Time)> {
        let mut seek = first;
        loop {
            let (from, until) = self.next_available(seek)?;
            if query == Span::ZERO {
                return Some((from, until));
            }
            let passed = from.since(first).as_micros().div_ceil(query.as_micros());
            let asked = first + query.times(passed);
            if asked < until {
                return Some((asked, until));
            }
            // The instance came and went between two queries.
            seek = until;
        }
    }

    /// The first rise of the price at or after this time; `None`: the record has none.
    pub(super) fn next_rise(&self, at: Time) -> Option<Time> {
        self.rises.get(self.rises.partition_point(|rise| *rise < at)).copied()
    }

    /// True if the price is above the bid at this time.
    pub(super) fn is_above(&self, at: Time) -> bool {
        self.trace.price_at(at).is_none_or(|price| price > self.bid)
    }

    /// Cost of the first `hours` hours of an instance launched at `launched`: each costs the price
    /// at its beginning.
    pub(super) fn cost_of_hours(&self, launched: Time, hours: u64) -> Money {
        let begins = (0..hours).map(|n| launched + HOUR.times(n));
        begins.map(|at| self.trace.price_at(at).unwrap_or_default().for_span(HOUR)).sum()
    }

    /// Fraction of the record during which an instance can be had; 0 for an empty record.
    pub(super) fn available_share(&self) -> f64 {
        let available: Span = self.available.iter().map(|(from, to)| to.since(*from)).sum();
        let whole = self.until.since(Time::ZERO);
        if whole == Span::ZERO { 0.0 } else { available.as_secs_f64() / whole.as_secs_f64() }
    }

    /// Uptimes: durations for which instances could be kept at this bid, ascending.
    #[must_use]
    pub fn uptimes(&self) -> &[Span] {
        &self.uptimes
    }

    /// Uptime of the instance that was still running when the record ended.
    #[must_use]
    pub fn open_for(&self) -> Span {
        let open = self.available.last().filter(|(_, to)| *to == self.until);
        open.map_or(Span::ZERO, |(from, to)| to.since(*from))
    }

    /// Among the uptimes known at a time that exceed `age`, the fraction that ended after `age + from` and by `age +
    /// to`; 0 if no known uptime exceeds `age`.
    ///
    /// Only ended uptimes count, not the uptime of a running instance or of one that the record's end cut off. The
    /// uptime of an instance that was available when the record began counts from there.
    pub(super) fn part_taken(
        &self,
        (knows, at): (AdaptKnowledge, Time),
        age: Span,
        [from, to]: [Span; 2],
    ) -> f64 {
        let all = self.uptimes.len();
        let known = match knows {
            AdaptKnowledge::Past => self.available.partition_point(|(_, end)| *end <= at).min(all),
            AdaptKnowledge::WholeRecord => all,
        };
        let by = |span: Span| match knows {
            AdaptKnowledge::Past => self.ended.up_to(known, span),
            AdaptKnowledge::WholeRecord => self.uptimes.partition_point(|uptime| *uptime <= span),
        };
        let left = known - by(age);
        if left == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "uptimes are few")]
        let part = by(age + to).saturating_sub(by(age + from)) as f64 / left as f64;
        part
    }
}

/// Uptimes in the order in which they ended, for counts among the first n of them.
///
/// Level j has the uptimes in blocks of 2^j, each sorted in ascending order; an incomplete last block is left out. The
/// first n uptimes consist of one block for each power of two in n, so that a count among them is a binary search in
/// each of these blocks.
#[derive(Clone, Debug)]
pub(super) struct OrderedUptimes {
    levels: Vec<Vec<Span>>,
}

impl OrderedUptimes {
    pub(super) fn new(in_order: Vec<Span>) -> Self {
        let (all, mut size) = (in_order.len(), 1);
        let mut levels = vec![in_order];
        while 2 * size <= all {
            size *= 2;
            let mut level = levels.last().cloned().unwrap_or_default();
            level.truncate(all - all % size);
            // Both halves of a block are sorted already, so that sorting only merges them.
            level.chunks_exact_mut(size).for_each(<[Span]>::sort);
            levels.push(level);
        }
        Self { levels }
    }

    /// Number of the first `n` uptimes that are no longer than `longest`.
    pub(super) fn up_to(&self, n: usize, longest: Span) -> usize {
        let (mut from, mut count) = (0, 0);
        for (j, level) in self.levels.iter().enumerate().rev() {
            let size = 1 << j;
            if n & size > 0 {
                let block = &level[from..from + size];
                count += block.partition_point(|uptime| *uptime <= longest);
                from += size;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Counts are the same as with uptimes counted one by one.
        #[test]
        fn counts_are_those_of_a_plain_list(uptimes in prop::collection::vec(0_u64..20, 0..70), longest in 0_u64..20) {
            let all: Vec<Span> = uptimes.iter().map(|s| Span::from_secs(*s)).collect();
            let of = OrderedUptimes::new(all);
            for n in 0..=uptimes.len() {
                let plain = uptimes[..n].iter().filter(|uptime| **uptime <= longest).count();
                prop_assert_eq!(of.up_to(n, Span::from_secs(longest)), plain);
            }
        }
    }
}
