//! The time at which each scheme next takes a checkpoint on an instance (ACC paper, section V).

use dormouse_model::Knows;
use dormouse_units::{Span, Time};

use super::record::HOUR;
use super::{SpotRecord, SpotScheme};

/// Work on an instance that no checkpoint keeps.
#[derive(Clone, Copy, Debug)]
pub struct Unkept {
    /// Time since when the instance is charged for: its hours count from then.
    pub begins: Time,
    /// Time since when the unkept work is done: the last checkpoint on the instance was kept then,
    /// or work began.
    pub since: Time,
    /// Earliest time at which a checkpoint may begin.
    pub from: Time,
    /// Time at which all work is done if nothing holds it up.
    pub done: Time,
    /// Time that a checkpoint takes (t_c).
    pub cost: Span,
    /// Period of ADAPT's decisions.
    pub every: Span,
    /// Prices that ADAPT knows when it decides.
    pub knows: Knows,
}

impl SpotScheme {
    /// Time at which the next checkpoint begins; `None`: never, or it is decided at a look (ACC).
    /// There is no checkpoint as long as there is no work to keep.
    pub fn next(self, record: &SpotRecord<'_>, work: &Unkept) -> Option<Time> {
        let Unkept { begins, since, done, cost, every, knows, .. } = *work;
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
                    let taken = record.taken((knows, *at), at.since(begins), [cost, every + cost]);
                    at.since(since).as_secs_f64() * taken > cost.as_secs_f64()
                })
            }
        }
    }
}

/// The first time at or after `from` that is `lead` before the end of an hour of an instance that
/// is charged for since `begins`.
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
