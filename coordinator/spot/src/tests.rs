//! Tests of jobs calculated by hand, of costs against the provider's tariff, and of OPT against the other schemes.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod oracle;

use dormouse_cloud::{ChargedInterval, EndedBy, PriceTrace, TariffName};
use dormouse_model::AdaptKnowledge;
use dormouse_units::{Price, Span, Time};
use proptest::prelude::*;

use super::*;

fn at(minutes: u64) -> Time {
    Time::from_secs(60 * minutes)
}

fn minutes(n: u64) -> Span {
    Span::from_secs(60 * n)
}

fn cents(n: u64) -> Price {
    Price::from_nanos_per_hour(n * 10_000_000)
}

fn trace(steps: &[(u64, u64)]) -> PriceTrace {
    PriceTrace::new(steps.iter().map(|(min, price)| (at(*min), cents(*price))).collect())
}

/// Outcome of a job: time taken in minutes, cost in cents, checkpoints, work lost in minutes.
fn by(scheme: SpotScheme, work: u64, trace: &PriceTrace, bid: u64) -> Option<(u64, i64, u32, u64)> {
    let record = SpotRecord::new(trace, cents(bid), at(10_000));
    let outcome = SpotJob::with_work(minutes(work)).run(scheme, &record, Time::ZERO)?;
    let in_minutes = |span: Span| span.as_micros() / 60_000_000;
    let cost = outcome.cost.as_nanos() / 10_000_000;
    Some((in_minutes(outcome.took), cost, outcome.checkpoints, in_minutes(outcome.lost)))
}

#[test]
fn a_job_by_hand() {
    use SpotScheme::{Acc, Adapt, Edge, Hour, None, Opt};
    // The price is 5 cents, from 0:30 on 6, above the bid of 7 from 1:40 to 3:00, then 5 for ever.
    let prices = trace(&[(0, 5), (30, 6), (100, 9), (180, 5)]);
    let of = |scheme| by(scheme, 120, &prices, 7).unwrap();
    // 100 min are lost, one hour paid; 5 min restart and 120 of work: three hours.
    assert_eq!(of(None), (305, 5 + 15, 0, 100));
    // 95 min are kept by 1:40; 30 min more, one hour.
    assert_eq!(of(Opt), (210, 5 + 5, 1, 0));
    // 55 kept at 1:00, 40 lost; 5 + 65 min with a checkpoint: two hours.
    assert_eq!(of(Hour), (180 + 75, 5 + 10, 2, 40));
    // 30 kept at 0:35, 65 lost; 5 + 90 min.
    assert_eq!(of(Edge), (275, 5 + 10, 1, 65));
    // ACC works on at 9 cents until 1:54, checkpoints, and ends the instance at 1:59; two hours at
    // 5 and 6.
    assert_eq!(of(Acc), (180 + 5 + 6, 5 + 6 + 5, 1, 0));
    // No instance is known to have ended by 1:40; then one of 100 min: 85 of work are kept 90 min
    // after the launch.
    assert_eq!(of(Adapt), (310, 5 + 15, 1, 100));
    // ADAPT with the whole record known: 90 min are kept by 1:35, 5 lost; 5 + 30 min, one hour.
    let record = SpotRecord::new(&prices, cents(7), at(10_000));
    let oracle = SpotJob { knows: AdaptKnowledge::WholeRecord, ..SpotJob::with_work(minutes(120)) };
    let outcome = oracle.run(Adapt, &record, Time::ZERO).unwrap();
    assert_eq!((outcome.took, outcome.lost, outcome.checkpoints), (minutes(215), minutes(5), 1));
    // The price passes the bid between ACC's looks at 1:54 and 1:59: all is lost.
    let late = trace(&[(0, 5), (116, 9), (180, 5)]);
    let record = SpotRecord::new(&late, cents(7), at(10_000));
    let outcome = SpotJob::with_work(minutes(150)).run(Acc, &record, Time::ZERO).unwrap();
    assert_eq!((outcome.unkept, outcome.lost), (1, minutes(119)));
}

/// ACC ends its instance at 1:59; the price is below the bid again from 3:00 on, or from 3:00 to 3:20 and from 3:50 on.
#[test]
fn acc_finds_an_instance_at_one_of_its_queries() {
    let once = trace(&[(0, 5), (30, 6), (100, 9), (180, 5)]);
    let twice = trace(&[(0, 5), (30, 6), (100, 9), (180, 5), (200, 9), (230, 5)]);
    for (prices, query, launched) in [
        (&once, 0, 180),
        (&once, 30, 119 + 3 * 30),
        (&once, 60, 119 + 2 * 60),
        // At 3:29 it is too dear again.
        (&twice, 30, 119 + 4 * 30),
        (&twice, 61, 119 + 61),
    ] {
        let record = SpotRecord::new(prices, cents(7), at(10_000));
        let job = SpotJob { query: minutes(query), ..SpotJob::with_work(minutes(120)) };
        let outcome = job.run(SpotScheme::Acc, &record, Time::ZERO).unwrap();
        assert_eq!(outcome.took, minutes(launched + 5 + 6), "{query}");
        // Nobody else asks.
        let opt = job.run(SpotScheme::Opt, &record, Time::ZERO).unwrap();
        let told = SpotJob::with_work(minutes(120)).run(SpotScheme::Opt, &record, Time::ZERO);
        assert_eq!(Some(opt), told);
    }
}

#[test]
fn bids_below_every_price_and_jobs_longer_than_the_record() {
    let prices = trace(&[(0, 5), (100, 9), (180, 5)]);
    for scheme in SpotScheme::ALL {
        assert_eq!(by(scheme, 10, &prices, 4), None, "{scheme:?}");
        assert_eq!(by(scheme, 20_000, &prices, 9), None, "{scheme:?}");
        let (took, ..) = by(scheme, 120, &trace(&[(0, 0)]), 0).unwrap();
        assert!((120..=130).contains(&took), "free: {took}");
    }
    let record = SpotRecord::new(&prices, cents(7), at(200));
    let job = SpotJob::with_work(minutes(60));
    // One instance is left for 100 min, and one for 20 when the record ends.
    assert_eq!(expected_execution(&record, job.work, job.restart), Some(3_600.0));
    assert_eq!(expected_execution(&record, minutes(101), job.restart), None);
    let record = SpotRecord::new(&prices, cents(7), at(300));
    // 100 min and 5 of restart are lost as often as the job is done.
    assert_eq!(
        expected_execution(&record, minutes(110), job.restart),
        Some(60.0 * (110.0 + 105.0))
    );
}

fn any_trace(levels: u64) -> impl Strategy<Value = PriceTrace> {
    prop::collection::vec((1_u64..400, 0..levels), 5..60).prop_map(|steps| {
        let mut now = 0;
        let steps = steps.into_iter().map(|(wait, level)| {
            now += wait;
            (now - wait, 4 + level)
        });
        trace(&steps.collect::<Vec<_>>())
    })
}

proptest! {
    /// OPT never pays for more hours than a scheme with the same bid, nor takes longer: OPT keeps all work that can be
    /// kept. Where all hours cost the same, OPT is never beaten in cost; where they don't, a slower scheme may find
    /// cheaper hours.
    #[test]
    fn opt_is_the_best_of_those_with_the_same_bid(
        prices in any_trace(6), bid in 4_u64..10, work in 1_u64..900, start in 0_u64..500,
        checkpoint in 0_u64..20, restart in 0_u64..20,
    ) {
        let record = SpotRecord::new(&prices, cents(bid), at(100_000));
        let (checkpoint, restart) = (minutes(checkpoint), minutes(restart));
        let job = SpotJob { checkpoint, restart, ..SpotJob::with_work(minutes(work)) };
        let run = |scheme| job.run(scheme, &record, at(start));
        let Some(opt) = run(SpotScheme::Opt) else {
            prop_assert!(SpotScheme::ALL[..5].iter().all(|scheme| run(*scheme).is_none()));
            return Ok(());
        };
        let flat = |steps: &[(Time, Price)]| {
            PriceTrace::new(steps.iter().map(|(at, price)| (*at, if *price > cents(bid) { *price } else { cents(4) })).collect())
        };
        let flat = flat(prices.steps());
        let flat = SpotRecord::new(&flat, cents(bid), at(100_000));
        let cheapest = job.run(SpotScheme::Opt, &flat, at(start)).unwrap();
        for scheme in SpotScheme::ALL[..5].iter().copied() {
            let Some(other) = run(scheme) else { continue };
            prop_assert!(opt.hours <= other.hours && opt.took <= other.took, "{scheme:?}: {opt:?} {other:?}");
            if let Some(other) = job.run(scheme, &flat, at(start)) {
                prop_assert!(cheapest.cost <= other.cost, "{scheme:?}: {cheapest:?} {other:?}");
            }
        }
    }

    /// ADAPT's decisions do not depend on future prices, unless its parameters allow it to use them.
    #[test]
    fn adapt_knows_no_price_before_its_time(
        prices in any_trace(6), other in any_trace(6), bid in 4_u64..10, work in 1_u64..900, start in 0_u64..500,
    ) {
        let job = SpotJob::with_work(minutes(work));
        let run = |prices: &PriceTrace| {
            job.run(SpotScheme::Adapt, &SpotRecord::new(prices, cents(bid), at(100_000)), at(start))
        };
        let Some(outcome) = run(&prices) else { return Ok(()) };
        let done = at(start) + outcome.took;
        let before = prices.steps().iter().filter(|step| step.0 <= done).copied();
        let after = other.steps().iter().map(|(at, price)| (done + at.since(Time::ZERO) + minutes(1), *price));
        let changed = PriceTrace::new(before.chain(after).collect());
        prop_assert_eq!(run(&changed).map(|it| (it.took, it.checkpoints, it.lost)),
            Some((outcome.took, outcome.checkpoints, outcome.lost)));
    }

    /// The hours of an instance cost what the provider's tariff charges for it.
    #[test]
    fn hours_cost_what_the_tariff_says(prices in any_trace(6), from in 0_u64..300, lasts in 1_u64..700) {
        let record = SpotRecord::new(&prices, cents(20), at(100_000));
        let (from, to) = (at(from), at(from + lasts));
        let edges = prices.steps().iter().map(|step| step.0).filter(|at| *at > from && *at < to);
        let mut edges: Vec<_> = [from].into_iter().chain(edges).chain([to]).collect();
        edges.dedup();
        let charge = |pair: &[Time]| ChargedInterval { from: pair[0], until: pair[1], price: prices.price_at(pair[0]).unwrap() };
        let used: Vec<_> = edges.windows(2).map(charge).collect();
        let hours = (lasts / 60, lasts.div_ceil(60));
        let owed = |by| TariffName::Hour.tariff_rule().money_owed(&used, by);
        prop_assert_eq!(record.cost_of_hours(from, hours.0), owed(EndedBy::Provider));
        prop_assert_eq!(record.cost_of_hours(from, hours.1), owed(EndedBy::User));
    }
}
