//! Advice on which bid and which instance type to take (ACC paper, Algorithm 1).

use dormouse_units::{Price, Span, Time};

use super::{Outcome, SpotJob, SpotRecord, SpotScheme};

/// The application's bid: the lowest on-demand price (Eq. 7); `None` if there are no prices.
#[must_use]
pub fn lowest_bid(on_demand: impl IntoIterator<Item = Price>) -> Option<Price> {
    on_demand.into_iter().min()
}

/// Expected execution time in seconds of a job without checkpoints, waiting excluded (Eq. 8): (w · P(T ≥ w) + Σ over T < w of (T +
/// r) f(T)) / P(T ≥ w). Here w is the job's work, r the restart, and f(T) the fraction of the instances that lasted for the time T
/// at this bid. `None`: no instance lasted as long as the job.
#[must_use]
pub fn expected_execution(record: &SpotRecord<'_>, work: Span, restart: Span) -> Option<f64> {
    let uptimes = record.uptimes();
    let (short, long) = uptimes.split_at(uptimes.partition_point(|uptime| *uptime < work));
    // The last instance still runs when the record ends: it counts if it has lasted long enough.
    #[expect(clippy::cast_precision_loss, reason = "uptimes are few")]
    let lasted = (long.len() + usize::from(record.open_for() >= work)) as f64;
    let lost: Span = short.iter().map(|uptime| *uptime + restart).sum();
    (lasted > 0.0).then(|| work.as_secs_f64() + lost.as_secs_f64() / lasted)
}

/// Advice on an instance type at a bid, computed from its price record.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeAdvice {
    /// Fraction, from 0 to 1, of the record during which an instance can be had.
    pub available: f64,
    /// Number of times that the provider preempted an instance of the type.
    pub taken: usize,
    /// Result of [`expected_execution`], in seconds; `None`: no instance lasted as long as the job.
    pub expected_s: Option<f64>,
    /// Number of jobs simulated, one beginning each day. Only jobs that end within the record under
    /// every scheme count, apart from schemes under which a job may never end
    /// ([`SpotScheme::may_never_end`]).
    pub jobs: usize,
    /// Results of the simulated jobs under each of [`SpotScheme::ALL`].
    pub schemes: Vec<SchemeAdvice>,
}

/// Results of the simulated jobs under one scheme: means over the jobs that end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchemeAdvice {
    /// Number of jobs that end within the record.
    pub done: usize,
    /// Mean time that the jobs took, in seconds; NaN where none is done.
    pub took_s: f64,
    /// Mean cost of the jobs, in dollars; NaN where none is done.
    pub cost_usd: f64,
}

/// Advice on an instance type for a job, at the bid of its record.
#[must_use]
pub fn type_advice(record: &SpotRecord<'_>, job: &SpotJob) -> TypeAdvice {
    const DAY: u64 = 86_400;
    let until = record.known_until().as_micros() / 1_000_000;
    let starts = (0..until.div_ceil(DAY)).map(|day| Time::from_secs(day * DAY));
    let under_all = |start| -> Option<Vec<Option<Outcome>>> {
        let run = |scheme: SpotScheme| {
            let outcome = job.run(scheme, record, start);
            (outcome.is_some() || scheme.may_never_end()).then_some(outcome)
        };
        SpotScheme::ALL.into_iter().map(run).collect()
    };
    let all: Vec<_> = starts.filter_map(under_all).collect();
    let mean = |scheme: usize| {
        let done: Vec<&Outcome> = all.iter().filter_map(|of| of[scheme].as_ref()).collect();
        #[expect(clippy::cast_precision_loss, reason = "days are few")]
        let count = done.len() as f64;
        SchemeAdvice {
            done: done.len(),
            took_s: done.iter().map(|of| of.took.as_secs_f64()).sum::<f64>() / count,
            cost_usd: done.iter().map(|of| of.cost.as_usd()).sum::<f64>() / count,
        }
    };
    let schemes = SpotScheme::ALL.len();
    TypeAdvice {
        available: record.available_share(),
        taken: record.uptimes().len(),
        expected_s: expected_execution(record, job.work, job.restart),
        jobs: all.len(),
        schemes: (0..schemes).map(mean).collect(),
    }
}

/// Index of the type with the shortest expected execution; among equal types, the type on which jobs without
/// checkpoints cost the least, then the first. `None`: on no type did an instance last as long as the job.
#[must_use]
pub fn best_type(types: &[TypeAdvice]) -> Option<usize> {
    let known = types.iter().enumerate().filter_map(|(n, of)| Some((n, of.expected_s?)));
    let cost = |n: usize| types[n].schemes.first().map_or(f64::INFINITY, |none| none.cost_usd);
    let least = known
        .min_by(|one, other| one.1.total_cmp(&other.1).then(cost(one.0).total_cmp(&cost(other.0))));
    least.map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::PriceTrace;

    use super::*;

    #[test]
    fn the_type_is_taken_on_which_the_job_is_expected_to_end_first() {
        let (hour, until) = (Span::from_secs(3_600), Time::from_secs(10 * 3_600));
        let cents = |n: u64| Price::from_nanos_per_hour(n * 10_000_000);
        let bid = lowest_bid([cents(30), cents(20)]).expect("there are some");
        assert_eq!(bid, cents(20));
        let at = |h: u64| Time::ZERO + hour.times(h);
        // Three records: below the bid for three hours and for five; for one hour at a time;
        // always.
        let long = PriceTrace::new(vec![(at(0), cents(5)), (at(3), cents(30)), (at(5), cents(5))]);
        let short: Vec<_> =
            (0..10).map(|h| (at(h), cents(if h % 2 == 0 { 5 } else { 30 }))).collect();
        let (short, always) = (PriceTrace::new(short), PriceTrace::new(vec![(at(0), cents(19))]));
        let job = SpotJob { restart: Span::ZERO, ..SpotJob::with_work(hour.times(2)) };
        let advice = |trace| type_advice(&SpotRecord::new(trace, bid, until), &job);
        let all = [advice(&short), advice(&long), advice(&always)];
        let expected: Vec<_> = all.iter().map(|of| of.expected_s).collect();
        assert_eq!(expected, [None, Some(7_200.0), Some(7_200.0)]);
        assert_eq!(all.iter().map(|of| of.taken).collect::<Vec<_>>(), [5, 1, 0]);
        assert!((all[1].available - 0.8).abs() < 1e-9, "{}", all[1].available);
        // The job is expected to take equally long on both; five cents an hour are less than
        // nineteen.
        assert_eq!((best_type(&all), best_type(&all[..1])), (Some(1), None));
        let swapped = [all[2].clone(), all[1].clone()];
        assert_eq!(best_type(&swapped), Some(1));
        // Two hours at 19 cents, by each scheme that takes no checkpoint.
        let none = SchemeAdvice { done: 1, took_s: 7_200.0, cost_usd: 0.38 };
        assert_eq!((all[2].jobs, all[2].schemes[0]), (1, none));
        // Where an instance is taken each hour a job of two hours is done by checkpoints only.
        let done: Vec<_> = all[0].schemes.iter().map(|scheme| scheme.done).collect();
        assert_eq!((done[0], done[2], done[5]), (0, all[0].jobs, all[0].jobs));
    }
}
