//! Which bid and which type to take (ACC paper, Algorithm 1).

use dormouse_units::{Price, Span, Time};

use super::{Outcome, SpotJob, SpotRecord, SpotScheme};

/// The bid of the application: the least price on demand (Eq. 7); `None` of nothing.
#[must_use]
pub fn lowest_bid(on_demand: impl IntoIterator<Item = Price>) -> Option<Price> {
    on_demand.into_iter().min()
}

/// How long a job without checkpoints is expected to take, hours of waiting left out (Eq. 8): with f the
/// part of the instances that was left to this bid for so long and r the restart,
/// (w · P(T ≥ w) + Σ over T < w of (T + r) f(T)) / P(T ≥ w). In seconds; `None`: no instance lasted as long
/// as the job.
#[must_use]
pub fn expected_execution(record: &SpotRecord<'_>, work: Span, restart: Span) -> Option<f64> {
    let uptimes = record.uptimes();
    let (short, long) = uptimes.split_at(uptimes.partition_point(|uptime| *uptime < work));
    // The last instance is left when the record ends: it counts if that was long enough.
    #[expect(clippy::cast_precision_loss, reason = "uptimes are few")]
    let lasted = (long.len() + usize::from(record.open_for() >= work)) as f64;
    let lost: Span = short.iter().map(|uptime| *uptime + restart).sum();
    (lasted > 0.0).then(|| work.as_secs_f64() + lost.as_secs_f64() / lasted)
}

/// What a type is at a bid, by its record of prices.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeAdvice {
    /// The part of the record in which an instance can be had.
    pub available: f64,
    /// How often one was taken.
    pub taken: usize,
    /// [`expected_execution`], in seconds.
    pub expected_s: Option<f64>,
    /// How many jobs are simulated: one begins each day, and those are left out that are not done by the end
    /// of the record under every scheme.
    pub jobs: usize,
    /// For each of [`SpotScheme::ALL`] how long these jobs took and what they cost, seconds and dollars, in the
    /// mean; nothing where there are none.
    pub schemes: Vec<(f64, f64)>,
}

/// What a type is for a job at the bid of a record.
#[must_use]
pub fn type_advice(record: &SpotRecord<'_>, job: &SpotJob) -> TypeAdvice {
    const DAY: u64 = 86_400;
    let until = record.until().as_micros() / 1_000_000;
    let starts = (0..until.div_ceil(DAY)).map(|day| Time::from_secs(day * DAY));
    let under_all = |start| -> Option<Vec<Outcome>> {
        SpotScheme::ALL.into_iter().map(|scheme| job.run(scheme, record, start)).collect()
    };
    let done: Vec<Vec<Outcome>> = starts.filter_map(under_all).collect();
    #[expect(clippy::cast_precision_loss, reason = "days are few")]
    let count = done.len() as f64;
    let mean = |scheme: usize| {
        let sum = done.iter().fold((0.0, 0.0), |(s, usd), outcomes| {
            let outcome = &outcomes[scheme];
            (s + outcome.took.as_secs_f64(), usd + outcome.cost.as_usd())
        });
        (sum.0 / count, sum.1 / count)
    };
    let schemes = if done.is_empty() { 0 } else { SpotScheme::ALL.len() };
    TypeAdvice {
        available: record.available_share(),
        taken: record.uptimes().len(),
        expected_s: expected_execution(record, job.work, job.restart),
        jobs: done.len(),
        schemes: (0..schemes).map(mean).collect(),
    }
}

/// The type of the shortest expected execution, by its place; of equals the first. `None`: on none of them an
/// instance was left for as long as the job.
#[must_use]
pub fn best_type(types: &[TypeAdvice]) -> Option<usize> {
    let known = types.iter().enumerate().filter_map(|(n, of)| Some((n, of.expected_s?)));
    known.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(n, _)| n)
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
        // Below the bid for three hours and five; for one hour at a time; always.
        let long = PriceTrace::new(vec![(at(0), cents(5)), (at(3), cents(30)), (at(5), cents(5))]);
        let short: Vec<_> =
            (0..10).map(|h| (at(h), cents(if h % 2 == 0 { 5 } else { 30 }))).collect();
        let (short, always) = (PriceTrace::new(short), PriceTrace::new(vec![(at(0), cents(19))]));
        let job = SpotJob { restart: Span::ZERO, ..SpotJob::of(hour.times(2)) };
        let advice = |trace| type_advice(&SpotRecord::new(trace, bid, until), &job);
        let all = [advice(&short), advice(&long), advice(&always)];
        let expected: Vec<_> = all.iter().map(|of| of.expected_s).collect();
        assert_eq!(expected, [None, Some(7_200.0), Some(7_200.0)]);
        assert_eq!(all.iter().map(|of| of.taken).collect::<Vec<_>>(), [5, 1, 0]);
        assert!((all[1].available - 0.8).abs() < 1e-9, "{}", all[1].available);
        assert_eq!((best_type(&all), best_type(&all[..1])), (Some(1), None));
        // Two hours at 19 cents, by each scheme that takes no checkpoint.
        assert_eq!((all[2].jobs, all[2].schemes[0]), (1, (7_200.0, 0.38)));
    }
}
