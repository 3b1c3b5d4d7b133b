//! Time of the next checkpoint on an instance under each scheme (ACC paper, section V).

use dormouse_model::AdaptKnowledge;
use dormouse_units::{Span, Time};

use super::record::HOUR;
use super::{SpotRecord, SpotScheme};

/// Work on an instance since its last checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct UnkeptWork {
    /// Time from which the instance is charged; its hours count from then.
    pub begins: Time,
    /// Time since which the work is unkept: the end of the last checkpoint on the instance, or the
    /// beginning of work.
    pub since: Time,
    /// Earliest time at which a checkpoint may begin.
    pub from: Time,
    /// Time at which all work is done without further delays.
    pub done: Time,
    /// Time that a checkpoint takes (t_c).
    pub cost: Span,
    /// Time between two decisions of ADAPT.
    pub every: Span,
    /// Prices that ADAPT may use.
    pub knows: AdaptKnowledge,
}

impl SpotScheme {
    /// Time at which the next checkpoint begins; `None`: never, or the next look decides (ACC).
    /// There is no checkpoint without work to keep.
    pub fn next(self, record: &SpotRecord<'_>, work: &UnkeptWork) -> Option<Time> {
        let UnkeptWork { begins, since, done, cost, every, knows, .. } = *work;
        let from = work.from.max(since + Span::from_micros(1));
        match self {
            Self::None | Self::Acc => None,
            Self::Opt => {
                let (_, until) = record.next_available(since)?;
                Some(until - cost).filter(|at| *at >= from && done > until)
            }
            Self::Hour => Some(before_hour_ends(begins, cost, from)),
            Self::Edge => record.next_rise(from),
            Self::Adapt => {
                let every = every.max(Span::from_micros(1));
                let first = from.since(begins).as_micros().div_ceil(every.as_micros());
                let times = (first..).map(|n| begins + every.times(n));
                times.take_while(|at| *at < done).find(|at| {
                    let taken =
                        record.part_taken((knows, *at), at.since(begins), [cost, every + cost]);
                    at.since(since).as_secs_f64() * taken > cost.as_secs_f64()
                })
            }
        }
    }
}

/// The first time at or after `from` that is `lead` before the end of an hour; hours count from
/// `begins`.
pub fn before_hour_ends(begins: Time, lead: Span, from: Time) -> Time {
    let hours = (from + lead).since(begins).as_micros().div_ceil(HOUR.as_micros());
    begins + HOUR.times(hours) - lead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_end_where_they_end() {
        let at = Time::from_secs;
        let lead = Span::from_secs(300);
        let points = [10, 3_309, 3_310, 3_311, 3_610].map(|from| {
            before_hour_ends(at(10), lead, at(from)).since(Time::ZERO).as_micros() / 1_000_000
        });
        assert_eq!(points, [3_310, 3_310, 3_310, 6_910, 6_910]);
        // A lead of more than an hour is before the end of a later hour.
        assert_eq!(before_hour_ends(at(10), Span::from_secs(4_000), at(10)), at(3_210));
    }
}
