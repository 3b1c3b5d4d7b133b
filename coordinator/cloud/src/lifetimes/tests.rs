//! Tests of each law: drawn lifetimes have the law's distribution and mean, and the law's functions
//! agree with each other.

use dormouse_units::{Ppm, RandomStream, Span};

use super::*;

fn h(hours: f64) -> Span {
    span_of_hours(hours).expect("a span")
}

/// The bathtub law with the parameters of the HPDC 2020 authors' simulations.
fn bathtub() -> Bathtub {
    Bathtub { a: Ppm::new(413_700), b: h(24.0), tau1: h(0.9), tau2: h(0.76) }
}

/// Laws with a density, of every kind and of extreme shapes.
fn continuous() -> Vec<Lifetimes> {
    let weibull =
        |scale, shape| Lifetimes::Weibull(Weibull { scale: h(scale), shape: Ppm::new(shape) });
    let gompertz = |tau1: Option<f64>, b, tau2| {
        let tau1 = tau1.map(h);
        Lifetimes::GompertzMakeham(GompertzMakeham { tau1, b: h(b), tau2: h(tau2) })
    };
    vec![
        Lifetimes::Bathtub(bathtub()),
        // Almost all VMs are taken at once; almost none before `b`.
        Lifetimes::Bathtub(Bathtub { a: Ppm::ONE, b: h(1.0), tau1: h(0.01), tau2: h(0.001) }),
        Lifetimes::Bathtub(Bathtub { a: Ppm::new(1), b: h(24.0), tau1: h(9.0), tau2: h(0.5) }),
        Lifetimes::Exponential(Exponential { mean: h(6.0) }),
        weibull(12.0, 300_000),
        weibull(12.0, 1_000_000),
        weibull(12.0, 8_000_000),
        gompertz(Some(20.0), 24.0, 0.8),
        gompertz(None, 24.0, 3.0),
        gompertz(Some(2.0), 0.0, 1.0),
        Lifetimes::Uniform(Uniform { from: h(0.0), to: h(24.0) }),
        Lifetimes::Uniform(Uniform { from: h(3.0), to: h(5.0) }),
    ]
}

#[test]
fn draws_have_the_law_and_its_mean() {
    const N: u32 = 20_000;
    for (entity, law) in (0..).zip(continuous()) {
        let mut chance = RandomStream::new(1, "lifetime", entity);
        let draw = |_| hours(law.law().draw_lifetime(&mut chance).expect("it ends"));
        let mut drawn: Vec<f64> = (0..N).map(draw).collect();
        drawn.sort_by(f64::total_cmp);
        let n = f64::from(N);
        let farthest = (1_u32..)
            .zip(&drawn)
            .map(|(i, t)| (law.law().cdf(*t) - f64::from(i) / n).abs())
            .fold(0.0, f64::max);
        // Kolmogorov's distance is beyond this once in a thousand.
        assert!(farthest < 1.95 / n.sqrt(), "{law:?}: {farthest}");
        let mean = drawn.iter().sum::<f64>() / n;
        let variance = drawn.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / n;
        let (ours, error) = (law.law().hours_lived(f64::INFINITY), (variance / n).sqrt());
        assert!((mean - ours).abs() < 4.0 * error, "{law:?}: {mean} ± {error}, {ours}");
    }
}

#[test]
fn a_quantile_is_the_age_by_which_so_many_are_taken() {
    for law in continuous() {
        let mut before = 0.0;
        for p in [0.0, 1e-6, 0.01, 0.3, 0.5, 0.8, 0.999] {
            let age = law.law().quantile(p);
            assert!(age >= before, "{law:?} at {p}");
            before = age;
            assert!((law.law().cdf(age) - p).abs() < 1e-9, "{law:?} at {p}: {age}");
        }
    }
}

/// The expected value is a sum over the midpoints of many small steps of F.
#[test]
fn what_was_lived_by_an_age_is_the_integral() {
    for law in continuous() {
        for age in [0.5, 3.7, 12.0, 24.0, 60.0] {
            let (mut sum, pieces) = (0.0, 20_000);
            for n in 0..pieces {
                let at = |n: i32| age * f64::from(n) / f64::from(pieces);
                let taken = law.law().cdf(at(n + 1)) - law.law().cdf(at(n));
                sum += taken * f64::midpoint(at(n), at(n + 1));
            }
            let ours = law.law().hours_lived(age);
            assert!((ours - sum).abs() < 1e-4 * age, "{law:?} to {age}: {ours}, {sum}");
        }
    }
}

#[test]
fn the_density_is_the_slope_and_the_hazard_is_of_those_left() {
    for law in continuous() {
        for age in [0.31, 3.5, 12.0, 23.0] {
            let [before, after] = [age - 1e-5, age + 1e-5].map(|t| law.law().cdf(t));
            let (slope, ours) = ((after - before) / 2e-5, law.law().density(age).expect("one"));
            assert!((slope - ours).abs() <= 1e-5 * ours.max(1.0), "{law:?} at {age}: {ours}");
            let left = 1.0 - law.law().cdf(age);
            let hazard = law.law().hazard(age).map(|rate| rate * left);
            assert!(hazard.map_or(left <= 0.0, |f| (f - ours).abs() < 1e-12), "{law:?} at {age}");
        }
    }
}

/// F reaches 1 near the age b + τ2 ln(1/A − 1) (PAPERS, section 4).
#[test]
fn the_authors_bathtub_is_full_a_little_after_a_day() {
    let law = bathtub();
    assert!((law.cdf(24.0) - 0.8274).abs() < 1e-9);
    let end = law.quantile(1.0);
    assert!((end - (24.0 + 0.76 * (1.0_f64 / 0.4137 - 1.0).ln())).abs() < 1e-9, "{end}");
    assert_eq!((law.cdf(end + 1.0), law.hazard(end + 1.0)), (1.0, None));
    assert!((law.hours_lived(end) - law.hours_lived(1e9)).abs() < 1e-12);
    // Eq. 3 by hand, with L = 10 h.
    let eq3 =
        |t: f64| 0.4137 * ((t - 0.76) * ((t - 24.0) / 0.76).exp() - (t + 0.9) * (-t / 0.9).exp());
    assert!((law.hours_lived(10.0) - (eq3(10.0) - eq3(0.0))).abs() < 1e-9);
}

#[test]
fn laws_that_never_end_or_always_do_at_once_are_drawn_from_all_the_same() {
    let mut chance = RandomStream::new(1, "lifetime", 0);
    // A scale of 200 years, and half of the VMs live longer than times are counted.
    let scale = Span::from_secs(200 * 365 * 86_400);
    let never = Weibull { scale, shape: Ppm::new(200_000) };
    let drawn: Vec<_> = (0..100).map(|_| never.draw_lifetime(&mut chance)).collect();
    assert!(drawn.iter().any(Option::is_none) && drawn.iter().any(Option::is_some));
    assert_eq!(Empirical { recorded: Vec::new() }.draw_lifetime(&mut chance), None);
    assert_eq!(Empirical { recorded: Vec::new() }.quantile(0.5), f64::INFINITY);
    let us = Span::from_micros(1);
    let at_once = Bathtub { a: Ppm::new(1_000_000_000), b: Span::ZERO, tau1: us, tau2: us };
    assert_eq!((at_once.draw_lifetime(&mut chance), at_once.cdf(0.0)), (Some(us), 1.0));
    assert_eq!((at_once.hours_lived(24.0), at_once.hazard(0.0)), (0.0, None));
    let fixed = Uniform { from: h(2.0), to: h(2.0) };
    assert_eq!(fixed.draw_lifetime(&mut chance), Some(h(2.0)));
    assert_eq!([1.9, 2.0].map(|t| fixed.cdf(t)), [0.0, 1.0]);
    assert_eq!((fixed.hours_lived(24.0), fixed.density(2.0)), (2.0, None));
}

#[test]
fn lifetimes_are_drawn_as_they_were_recorded_or_around_their_mean() {
    let s = Span::from_secs;
    let mut chance = RandomStream::new(1, "lifetime", 0);
    let law = Empirical { recorded: vec![s(70), s(20), s(10), s(20)] };
    let mut seen = [0_u32; 3];
    for _ in 0..4_000 {
        let life = law.draw_lifetime(&mut chance);
        seen[[10, 20, 70].map(s).iter().position(|l| Some(*l) == life).expect("recorded")] += 1;
    }
    let is_near = seen.iter().zip([1_000, 2_000, 1_000]).all(|(n, of)| n.abs_diff(of) < 150);
    assert!(is_near, "{seen:?}");
    assert_eq!([9, 10, 20, 69, 70].map(|t| law.cdf(hours(s(t)))), [0.0, 0.25, 0.75, 0.75, 1.0]);
    assert_eq!(
        [0.0, 0.25, 0.3, 0.75, 1.0].map(|p| law.quantile(p)),
        [10, 10, 20, 20, 70].map(|t| hours(s(t)))
    );
    assert!((law.hours_lived(f64::INFINITY) * 3_600.0 - 30.0).abs() < 1e-9);
    let law = Lifetimes::Exponential(Exponential { mean: s(100) });
    let sum: Span = (0..4_000).filter_map(|_| law.law().draw_lifetime(&mut chance)).sum();
    assert!((380_000..420_000).contains(&(sum.as_micros() / 1_000_000)), "{sum}");
}
