//! Streams of requests: processes and laws have the moments and distributions that theory gives them, each has a random
//! stream of its own, and the same seed makes the same bytes.

use std::io;
use std::path::Path;

use dormouse_cloud::Market;
use dormouse_model::VmRequest;
use dormouse_units::{Ppm, Span, Time};
use proptest::prelude::*;

use crate::{
    DurationLaw, RequestArrivals, RequestModel, RequestSource, RequestStatistics, RequestStream,
    RequestWriter, RequestsWanted, TypeShare,
};

const HOUR: Span = Span::from_secs(3_600);

fn share(part: f64) -> Ppm {
    Ppm::from_f64(part).expect("a part")
}

fn of_type(kind: &str, weight: f64, preemptible: Option<f64>) -> TypeShare {
    TypeShare { kind: kind.into(), weight: share(weight), preemptible: preemptible.map(share) }
}

fn model(requests: u64) -> RequestModel {
    RequestModel {
        requests: Some(requests),
        lasts: None,
        arrivals: RequestArrivals::Poisson { every: Span::from_secs(30) },
        duration: DurationLaw::Fixed { length: HOUR },
        preemptible_duration: None,
        preemptible: share(0.3),
        mix: vec![of_type("c3.large", 1.0, None)],
    }
}

fn drawn(model: &RequestModel, seed: u64) -> Vec<(Time, VmRequest)> {
    let source = RequestSource::Model { model: model.clone() };
    let open = |_: &Path| Err(io::Error::other("no file is needed"));
    let wanted = RequestsWanted { source: &source, offer: None, seed, open };
    let stream = RequestStream::open(&wanted).expect("a good model");
    stream.collect::<Result<_, _>>().expect("a model fails never")
}

fn statistics(all: &[(Time, VmRequest)]) -> RequestStatistics {
    let mut statistics = RequestStatistics::new(None, None);
    all.iter().for_each(|(at, request)| statistics.add(*at, request));
    statistics
}

/// Checks that the mean of `n` draws lies within five standard errors of the expected one; by chance it does not once
/// in two million times.
fn near(mean: f64, expected: f64, deviation: f64, n: usize, what: &str) {
    let bound = 5.0 * deviation / (n as f64).sqrt();
    assert!((mean - expected).abs() < bound, "{what}: {mean}, not {expected} within {bound}");
}

/// Number of requests in each window of this length, for all windows that are whole.
fn counts(all: &[(Time, VmRequest)], window: Span) -> Vec<f64> {
    let of = |at: Time| usize::try_from(at.as_micros() / window.as_micros()).expect("a place");
    let mut counts = vec![0.0; of(all.last().expect("one").0)];
    for (at, _) in all {
        if let Some(count) = counts.get_mut(of(*at)) {
            *count += 1.0;
        }
    }
    counts
}

fn mean_and_variance(all: &[f64]) -> (f64, f64) {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    (mean, all.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0))
}

#[test]
fn poisson_gaps_have_their_mean_and_as_much_deviation() {
    let all = drawn(&model(50_000), 1);
    let figures = statistics(&all);
    near(figures.gap.mean(), 30.0, 30.0, 50_000, "mean gap");
    // The variance of a sample's coefficient of variation is 1/n of an exponential law.
    near(figures.gap_variation(), 1.0, 1.0, 50_000, "variation of gaps");
    // Counts in windows: their variance is their mean; that of their ratio is 2/n and a little.
    let (mean, variance) = mean_and_variance(&counts(&all, Span::from_secs(600)));
    near(variance / mean, 1.0, 1.5, 2_500, "dispersion of counts");
}

/// The number of requests in each hour of weekdays and of weekends is the integral of the rate over the hour.
#[test]
fn diurnal_requests_come_by_the_hour_as_the_rate_says() {
    let (amplitude, weekend, every) = (0.8, 0.25, 20.0);
    let mut model = model(0);
    (model.requests, model.lasts) = (None, Some(HOUR.times(24 * 7 * 12)));
    model.arrivals = RequestArrivals::Diurnal {
        every: Span::from_secs(20),
        amplitude: share(amplitude),
        period: HOUR.times(24),
        peak: Some(HOUR.times(14)),
        weekend: Some(share(weekend)),
    };
    let all = drawn(&model, 3);
    let mut seen = [[0.0_f64; 24]; 2];
    for (at, _) in &all {
        let hour = (at.as_micros() / HOUR.as_micros()) as usize;
        seen[usize::from(hour / 24 % 7 >= 5)][hour % 24] += 1.0;
    }
    let tau = std::f64::consts::TAU;
    for (kind, (days, part)) in [(60.0, 1.0), (24.0, weekend)].into_iter().enumerate() {
        for (hour, &seen) in seen[kind].iter().enumerate() {
            let begins = (hour as f64 - 14.0) / 24.0;
            let wave = (tau * (begins + 1.0 / 24.0)).sin() - (tau * begins).sin();
            let hours = 1.0 + amplitude * 24.0 * wave / tau;
            let expected = days * part * hours * 3_600.0 / every;
            near(seen, expected, expected.sqrt(), 1, &format!("hour {hour} of kind {kind}"));
        }
    }
    let expected = model.arrivals.rate() * 12.0 * 7.0 * 86_400.0;
    let count = all.len() as f64;
    near(count, expected, expected.sqrt(), 1, "all of them");
}

#[test]
fn half_way_is_the_peak_of_a_period_that_does_not_say() {
    let mut model = model(40_000);
    model.arrivals = RequestArrivals::Diurnal {
        every: Span::from_secs(30),
        amplitude: Ppm::ONE,
        period: HOUR,
        peak: None,
        weekend: None,
    };
    // With amplitude 1, the middle half of a period has 1/2 + 1/π of its requests.
    let all = drawn(&model, 5);
    let middle = |at: &Time| (900..2_700).contains(&(at.as_micros() / 1_000_000 % 3_600));
    let count = all.iter().filter(|(at, _)| middle(at)).count();
    let expected = 0.5 + 1.0 / std::f64::consts::PI;
    let part = count as f64 / 40_000.0;
    near(part, expected, (expected * (1.0 - expected)).sqrt(), 40_000, "the middle half");
}

/// Requests in bursts are a Poisson process modulated by a chain of two states: their mean rate and index of dispersion
/// of counts, 1 + A (1 − (1 − e^−rt) / rt), agree with Fischer and Meier-Hellstern 1993.
#[test]
fn bursts_have_the_rate_and_the_dispersion_of_their_process() {
    let mut model = model(400_000);
    model.arrivals = RequestArrivals::Bursts {
        every: Span::from_secs(60),
        burst_every: Span::from_secs(2),
        calm: Span::from_secs(1_800),
        burst: Span::from_secs(200),
    };
    let (calm, burst, out_of_calm, out_of_burst) = (1.0 / 60.0, 0.5, 1.0 / 1_800.0, 1.0 / 200.0);
    let leaves = out_of_calm + out_of_burst;
    let rate = (calm * out_of_burst + burst * out_of_calm) / leaves;
    assert!((model.arrivals.rate() / rate - 1.0).abs() < 1e-9);
    let all = drawn(&model, 7);
    let figures = statistics(&all);
    assert!(figures.gap_variation() > 2.0, "{}", figures.gap_variation());
    let spread = (calm - burst) * (calm - burst) * out_of_calm * out_of_burst;
    let most = 2.0 * spread / (leaves * leaves * leaves * rate);
    // Long after each other, counts are independent: the deviation of the rate over all time.
    let expected = all.len() as f64;
    let seen = rate * all.last().expect("one").0.as_secs_f64();
    near(seen, expected, (expected * (1.0 + most)).sqrt(), 1, "requests by the mean rate");
    for seconds in [20.0, 200.0, 2_000.0] {
        let window = Span::from_secs_f64(seconds).expect("a time");
        let (mean, variance) = mean_and_variance(&counts(&all, window));
        let turns = leaves * seconds;
        let dispersion = 1.0 + most * (1.0 - (1.0 - (-turns).exp()) / turns);
        let ratio = variance / mean / dispersion;
        assert!((0.93..1.07).contains(&ratio), "{seconds} s: {ratio} of {dispersion}");
    }
}

/// Checks the mean of draws from a law, and their largest distance from a distribution function (Kolmogorov): with
/// 20,000 draws it exceeds 0.02 less than once in a million times.
fn fits(law: &DurationLaw, mean: f64, distribution: impl Fn(f64) -> f64) {
    let n = 20_000;
    let all = drawn(&RequestModel { duration: law.clone(), ..model(n) }, 11);
    let mut drawn: Vec<_> = all.iter().map(|(_, r)| r.duration.as_secs_f64()).collect();
    drawn.sort_by(f64::total_cmp);
    let (least, most) = law.bounds();
    assert!(drawn[0] >= least.as_secs_f64() && drawn[drawn.len() - 1] <= most.as_secs_f64());
    let step = 1.0 / 20_000.0;
    let mut below = 0.0;
    for x in &drawn {
        let of = distribution(*x);
        assert!((below - of).abs() < 0.02 && (below + step - of).abs() < 0.02, "{law:?} at {x}");
        below += step;
    }
    let (seen, variance) = mean_and_variance(&drawn);
    near(seen, mean, variance.sqrt().max(1e-9), drawn.len(), &format!("{law:?}"));
}

#[test]
fn durations_follow_their_laws_within_their_bounds() {
    let minutes = |n: u64| Span::from_secs(60 * n);
    fits(&DurationLaw::Uniform { least: minutes(10), most: minutes(300) }, 9_300.0, |x| {
        (x - 600.0) / 17_400.0
    });
    let free = DurationLaw::Exponential { mean: minutes(120), least: None, most: None };
    fits(&free, 7_200.0, |x| 1.0 - (-x / 7_200.0).exp());
    assert!((free.probability_within() - 1.0).abs() < 1e-9);
    // OPIE's ages: exponential between 10 and 300 minutes.
    let bound = |least, most| DurationLaw::Exponential {
        mean: minutes(120),
        least: Some(minutes(least)),
        most: Some(minutes(most)),
    };
    let (low, high, mean) = (600.0, 18_000.0, 7_200.0);
    let above = |x: f64| (-x / mean).exp();
    let within = above(low) - above(high);
    let of_mean = mean + (low * above(low) - high * above(high)) / within;
    fits(&bound(10, 300), of_mean, |x| (above(low) - above(x)) / within);
    assert!((bound(10, 300).probability_within() - within).abs() < 1e-12);
    let variation = 1.5_f64;
    let sigma = (1.0 + variation * variation).ln().sqrt();
    let lognormal = |least, most| DurationLaw::Lognormal {
        mean: minutes(120),
        variation: share(variation),
        least,
        most,
    };
    let normal = |x: f64| libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0;
    let score = |x: f64| ((x / mean).ln() + sigma * sigma / 2.0) / sigma;
    fits(&lognormal(None, None), mean, |x| normal(score(x)));
    let cut = lognormal(Some(minutes(10)), Some(minutes(300)));
    let (below, until) = (normal(score(low)), normal(score(high)));
    // The partial expectation of a log-normal law.
    let part = normal(score(high) - sigma) - normal(score(low) - sigma);
    fits(&cut, mean * part / (until - below), |x| (normal(score(x)) - below) / (until - below));
    assert!((cut.probability_within() - (until - below)).abs() < 1e-9);
}

#[test]
fn types_and_markets_come_by_their_weights_and_shares() {
    let mut model = model(60_000);
    model.mix = vec![
        of_type("c3.large", 3.0, None),
        of_type("c3.xlarge", 0.5, Some(1.0)),
        of_type("m3.medium", 1.5, Some(0.0)),
    ];
    let figures = statistics(&drawn(&model, 2));
    let part = |market, kind: &str| {
        let of = figures.counts.get(&market).and_then(|of| of.get(kind));
        of.copied().unwrap_or_default() as f64 / 60_000.0
    };
    for (market, kind, expected) in [
        (Market::Spot, "c3.large", 0.6 * 0.3),
        (Market::OnDemand, "c3.large", 0.6 * 0.7),
        (Market::Spot, "c3.xlarge", 0.1),
        (Market::OnDemand, "m3.medium", 0.3),
    ] {
        let deviation = f64::sqrt(expected * (1.0 - expected));
        near(part(market, kind), expected, deviation, 60_000, kind);
    }
    assert!(part(Market::OnDemand, "c3.xlarge") + part(Market::Spot, "m3.medium") == 0.0);
}

/// Changing one law of a model (arrivals, types, markets or durations) leaves the draws of all others unchanged.
#[test]
fn each_thing_has_a_chance_of_its_own() {
    let mut model = model(2_000);
    model.mix.push(of_type("c3.xlarge", 1.0, None));
    let before = drawn(&model, 9);
    let same = |other: &RequestModel, what: fn(&(Time, VmRequest)) -> String, is_same: bool| {
        let now = drawn(other, 9);
        let words = |all: &[(Time, VmRequest)]| all.iter().map(what).collect::<Vec<_>>();
        assert_eq!(words(&before) == words(&now), is_same);
    };
    let duration = DurationLaw::Exponential { mean: HOUR, least: Some(HOUR), most: None };
    let other = RequestModel { duration: duration.clone(), ..model.clone() };
    same(&other, |(at, r)| format!("{at} {} {}", r.kind, r.market), true);
    same(&other, |(_, r)| r.duration.to_string(), false);
    // Preemptible ones have a law of their own; the others keep their durations.
    let mixed = RequestModel { preemptible_duration: Some(duration), ..model.clone() };
    let of_normal = |(_, r): &(Time, VmRequest)| match r.market {
        Market::OnDemand => r.duration.to_string(),
        Market::Spot => String::new(),
    };
    same(&mixed, of_normal, true);
    same(&mixed, |(_, r)| r.duration.to_string(), false);
    let arrivals = RequestArrivals::Bursts {
        every: HOUR,
        burst_every: Span::from_secs(1),
        calm: HOUR,
        burst: HOUR,
    };
    let other = RequestModel { arrivals, ..model.clone() };
    same(&other, |(_, r)| format!("{} {} {}", r.kind, r.market, r.duration), true);
    same(&other, |(at, _)| at.to_string(), false);
    let other = RequestModel { preemptible: share(0.8), ..model.clone() };
    same(&other, |(at, r)| format!("{at} {} {}", r.kind, r.duration), true);
    same(&other, |(_, r)| r.market.to_string(), false);
    let mut other = model.clone();
    other.mix[1].weight = share(5.0);
    same(&other, |(at, r)| format!("{at} {} {}", r.market, r.duration), true);
    same(&other, |(_, r)| r.kind.to_string(), false);
}

fn csv(all: &[(Time, VmRequest)]) -> String {
    let mut bytes = Vec::new();
    let mut writer = RequestWriter::new(&mut bytes).expect("to memory");
    for (at, request) in all {
        writer.write(*at, request).expect("to memory");
    }
    writer.finish().expect("to memory");
    String::from_utf8(bytes).expect("text")
}

/// The requests drawn with a fixed seed may never change, since results are compared across versions.
#[test]
fn the_same_seed_makes_the_same_bytes() {
    let mut model = model(3);
    model.duration = DurationLaw::Lognormal {
        mean: HOUR,
        variation: Ppm::ONE,
        least: Some(Span::from_secs(60)),
        most: None,
    };
    assert_eq!(csv(&drawn(&model, 42)), csv(&drawn(&model, 42)));
    assert_ne!(csv(&drawn(&model, 42)), csv(&drawn(&model, 43)));
    let pinned = "at,type,market,duration\n23.220633,c3.large,on-demand,1776.950637\n\
                  101.155271,c3.large,spot,5765.590082\n\
                  124.051656,c3.large,on-demand,1164.015597\n";
    assert_eq!(csv(&drawn(&model, 42)), pinned);
}

#[test]
fn a_stream_ends_after_its_requests_or_its_time() {
    let mut model = model(10);
    assert_eq!(drawn(&model, 1).len(), 10);
    let fifth = drawn(&model, 1)[4].0.since(Time::ZERO);
    // No request comes at its end or later.
    model.lasts = Some(fifth);
    assert_eq!(drawn(&model, 1).len(), 4);
    model.lasts = Some(fifth + Span::from_micros(1));
    assert_eq!(drawn(&model, 1).len(), 5);
    (model.requests, model.lasts) = (None, Some(HOUR.times(10_000)));
    let all = drawn(&model, 1);
    near(all.len() as f64, 1_200_000.0, 1_200_000_f64.sqrt(), 1, "requests in 10,000 hours");
    assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

#[test]
fn figures_are_of_what_was_counted() {
    let types = dormouse_cloud::built_in("ec2-2020").expect("a catalogue");
    let mut figures = RequestStatistics::new(Some(&types), Some(16));
    let request = |kind: &str, market, seconds| VmRequest {
        kind: kind.into(),
        market,
        duration: Span::from_secs(seconds),
    };
    // c3.large has 2 vCPUs, c3.xlarge 4.
    figures.add(Time::from_secs(0), &request("c3.large", Market::Spot, 3_600));
    figures.add(Time::from_secs(3_600), &request("c3.xlarge", Market::OnDemand, 7_200));
    figures.add(Time::from_secs(10_800), &request("c3.large", Market::OnDemand, 1_800));
    assert_eq!(figures.requests(), 3);
    assert_eq!((figures.count(Market::Spot), figures.count(Market::OnDemand)), (1, 2));
    assert_eq!((figures.hours[0], figures.hours[1], figures.hours[3]), (1, 1, 1));
    assert!((figures.gap.mean() - 5_400.0).abs() < 1e-9);
    let close = |got: Option<f64>, expected: f64| got.is_some_and(|x| (x - expected).abs() < 1e-9);
    assert!(close(figures.vcpus_wanted(Market::Spot), 7_200.0 / 10_800.0));
    assert!(close(figures.vcpus_wanted(Market::OnDemand), 32_400.0 / 10_800.0));
    assert!(close(figures.offered_load(), 39_600.0 / 10_800.0 / 16.0));
    let text = figures.to_string();
    assert!(text.contains("offered load          0.2292 of 16 vCPUs"), "{text}");
}

/// Random times of at most a week, with a lower bound so that no model makes billions of requests.
fn times() -> impl Strategy<Value = Span> {
    (1_000_000_u64..604_800_000_000).prop_map(Span::from_micros)
}

fn processes() -> impl Strategy<Value = RequestArrivals> {
    let diurnal = (times(), 0_u32..=1_000_000, times(), 0_u32..=1_000_000);
    prop_oneof![
        times().prop_map(|every| RequestArrivals::Poisson { every }),
        diurnal.prop_map(|(every, amplitude, period, weekend)| RequestArrivals::Diurnal {
            every,
            amplitude: Ppm::new(amplitude),
            period,
            peak: None,
            weekend: Some(Ppm::new(weekend)),
        }),
        (times(), times(), times(), times()).prop_map(|(every, burst_every, calm, burst)| {
            RequestArrivals::Bursts { every, burst_every, calm, burst }
        }),
    ]
}

fn laws() -> impl Strategy<Value = DurationLaw> {
    let bounds = || (proptest::option::of(times()), proptest::option::of(times()));
    prop_oneof![
        times().prop_map(|length| DurationLaw::Fixed { length }),
        (times(), times()).prop_map(|(least, most)| DurationLaw::Uniform { least, most }),
        (times(), bounds()).prop_map(|(mean, (least, most))| DurationLaw::Exponential {
            mean,
            least,
            most
        }),
        (times(), 0_u32..5_000_000, bounds()).prop_map(|(mean, variation, (least, most))| {
            DurationLaw::Lognormal { mean, variation: Ppm::new(variation), least, most }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A random model without flaws makes requests in order of time, with durations within their bounds, and none after
    /// its end.
    #[test]
    fn a_model_without_flaw_keeps_to_what_it_says(
        (arrivals, duration, preemptible) in (processes(), laws(), laws()),
        (requests, lasts) in (1_u64..300, proptest::option::of(times())),
        seed in any::<u64>(),
    ) {
        let model = RequestModel {
            lasts,
            arrivals,
            duration,
            preemptible_duration: Some(preemptible),
            ..model(requests)
        };
        let source = RequestSource::Model { model: model.clone() };
        prop_assume!(source.flaws(None).is_empty());
        let all = drawn(&model, seed);
        prop_assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let is_full = all.len() as u64 == requests;
        prop_assert!(is_full || (lasts.is_some() && (all.len() as u64) < requests));
        for (at, request) in &all {
            prop_assert!(lasts.is_none_or(|lasts| *at < Time::ZERO + lasts));
            let (least, most) = model.duration_in(request.market).bounds();
            prop_assert!((least..=most).contains(&request.duration));
        }
    }
}
