//! A law fitted to a curve, and the intervals of its numbers.

use dormouse_cloud::Lifetimes;
use dormouse_estimate::middle95;

use crate::least_squares::{Lowest, Problem};
use crate::{Curve, Family};

/// Most steps of the curve to which all beginnings are compared, and to which a law is fitted again
/// for a resample: enough to see its shape.
const COARSE: usize = 128;
/// Number of the best beginnings, of all tried, from which a descent is made.
const DESCENTS: usize = 8;

/// A law fitted by least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law that was fitted.
    pub family: Family,
    /// The law's numbers, as [`Family::numbers`] names them.
    pub numbers: Vec<Figure>,
    /// The part of the curve's variance that the law explains, over all VMs taken.
    pub r_squared: f64,
    /// Mean lifetime under the law, in hours.
    pub mean: Figure,
    /// Hours that VMs taken within 24 h lived, per VM of all: the paper's Eq. 3.
    pub eq3: f64,
    /// The law as an experiment has it, in integers.
    pub lifetimes: Lifetimes,
}

/// A number of a fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The number's own value.
    pub value: f64,
    /// Interval that holds 95 of 100 resamples' numbers; `None` where there is none.
    pub ci95: Option<(f64, f64)>,
    /// Whether the number is at an end of the range in which it was searched for.
    pub is_at_end: bool,
}

impl Figure {
    /// A figure without an interval.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { value, ci95: None, is_at_end: false }
    }
}

/// Four decimals, with a star where the number is at an end of its range.
impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.4}{}", self.value, if self.is_at_end { "*" } else { "" })
    }
}

impl Fit {
    /// The best law of `family` for a curve; `None` where its VMs have no more different lifetimes
    /// than the law has numbers.
    #[must_use]
    pub fn to_curve(family: Family, curve: &Curve) -> Option<Self> {
        let (last, ranges) = (curve.last(), family.ranges(curve.last()));
        if curve.steps.len() <= ranges.len() {
            return None;
        }
        let coarse = curve.thinned(COARSE);
        let near = Problem { formula: family.formula(), ranges: &ranges, steps: &coarse.steps };
        let mut starts = family.starts(last);
        starts.sort_by(|a, b| near.squares(a).total_cmp(&near.squares(b)));
        starts.truncate(DESCENTS);
        let lowest = starts
            .iter()
            .map(|start| near.descend(start))
            .min_by(|a, b| a.squares.total_cmp(&b.squares))?;
        let whole = Problem { steps: &curve.steps, ..near };
        Self::new(family, curve, &ranges, &whole.descend(&lowest.numbers))
    }

    /// The same law fitted to another curve, such as that of a resample, by one descent from here: `None`
    /// where the curve has no more different lifetimes than the law has numbers.
    #[must_use]
    pub fn again(&self, curve: &Curve) -> Option<Self> {
        let numbers: Vec<f64> = self.numbers.iter().map(|number| number.value).collect();
        Self::descended(self.family, &numbers, curve)
    }

    /// A law of the same family as a given one, fitted to a curve by one descent from there; `None` where the
    /// curve has no more different lifetimes than the law has numbers, and of recorded lifetimes, which are
    /// no such law.
    #[must_use]
    pub fn near(lifetimes: &Lifetimes, curve: &Curve) -> Option<Self> {
        let (family, numbers) = Family::of_law(lifetimes)?;
        Self::descended(family, &numbers, curve)
    }

    fn descended(family: Family, from: &[f64], curve: &Curve) -> Option<Self> {
        let ranges = family.ranges(curve.last());
        if curve.steps.len() <= ranges.len() {
            return None;
        }
        let coarse = curve.thinned(COARSE);
        let near = Problem { formula: family.formula(), ranges: &ranges, steps: &coarse.steps };
        let lowest = near.descend(from);
        let whole = Problem { steps: &curve.steps, ..near };
        Self::new(family, curve, &ranges, &whole.descend(&lowest.numbers))
    }

    fn new(family: Family, curve: &Curve, ranges: &[(f64, f64)], found: &Lowest) -> Option<Self> {
        let lifetimes = family.law(&found.numbers)?;
        let weight: f64 = curve.steps.iter().map(|step| step.count).sum();
        let mean = curve.steps.iter().map(|s| s.count * s.taken).sum::<f64>() / weight;
        let spread: f64 =
            curve.steps.iter().map(|s| s.count * (s.taken - mean) * (s.taken - mean)).sum();
        let figure = |(value, (least, most)): (&f64, &(f64, f64))| {
            let near = 1e-6 * (most - least);
            let is_at_end = value - least <= near.min(1e-3 * least.abs()) || most - value <= near;
            Figure { value: *value, ci95: None, is_at_end }
        };
        let law = lifetimes.law();
        Some(Self {
            family,
            numbers: found.numbers.iter().zip(ranges).map(figure).collect(),
            r_squared: 1.0 - found.squares / spread,
            mean: Figure::exact(law.lived(f64::INFINITY)),
            eq3: law.lived(24.0),
            lifetimes,
        })
    }

    /// Age in hours at which the last VMs end under a fitted bathtub, if that is far beyond the
    /// longest lifetime of the curve, `last`: nobody has seen VMs end there. `None` under other
    /// laws, and where the end has been seen.
    #[must_use]
    pub fn unseen_end(&self, last: f64) -> Option<f64> {
        let end = self.lifetimes.law().quantile(1.0);
        (self.family == Family::Bathtub && end > 1.1 * last).then_some(end)
    }

    /// F from 0 to an age in hours, for a drawing: ages and parts.
    #[must_use]
    pub fn taken(&self, last: f64) -> Vec<(f64, f64)> {
        ages(last).map(|age| (age, self.lifetimes.law().cdf(age))).collect()
    }

    /// Rates per hour at which VMs that are left are taken, from age 0 to `last` hours, for a
    /// drawing: ages and rates, without rates of 10 or more.
    #[must_use]
    pub fn rates(&self, last: f64) -> Vec<(f64, f64)> {
        let rate = |age| Some((age, self.lifetimes.law().hazard(age)?));
        ages(last).filter_map(rate).filter(|(_, rate)| *rate < 10.0).collect()
    }

    /// This fit with intervals, from curves made of resampled VMs, each fitted from here. There are
    /// none where more than one resample in twenty has too few different lifetimes to fit: the
    /// others would be a biased choice.
    #[must_use]
    pub fn with_intervals(mut self, resampled: &[Curve]) -> Self {
        let numbers: Vec<f64> = self.numbers.iter().map(|number| number.value).collect();
        let again = |curve: &Curve| {
            let (coarse, ranges) = (curve.thinned(COARSE), self.family.ranges(curve.last()));
            if curve.steps.len() <= ranges.len() {
                return None;
            }
            let formula = self.family.formula();
            let problem = Problem { formula, ranges: &ranges, steps: &coarse.steps };
            let found = problem.descend(&numbers).numbers;
            let mean = self.family.law(&found)?.law().lived(f64::INFINITY);
            Some((found, mean))
        };
        let (found, means): (Vec<Vec<f64>>, Vec<f64>) = resampled.iter().filter_map(again).unzip();
        if found.len() * 20 < resampled.len() * 19 {
            return self;
        }
        for (n, number) in self.numbers.iter_mut().enumerate() {
            number.ci95 = middle95(&found.iter().map(|numbers| numbers[n]).collect::<Vec<_>>());
        }
        self.mean.ci95 = middle95(&means);
        self
    }
}

/// Ages for a drawing, in hours: 121 from 0 to `last`.
fn ages(last: f64) -> impl Iterator<Item = f64> {
    (0..=120).map(move |n| last * f64::from(n) / 120.0)
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::lifetimes::{hours, span_of_hours};
    use dormouse_cloud::{Bathtub, GompertzMakeham, Weibull};
    use dormouse_units::{Ppm, Span, Stream};

    use super::*;
    use crate::Step;

    /// A curve of lifetimes that were drawn from a law.
    fn drawn(law: &Lifetimes, n: u32) -> Curve {
        let mut chance = Stream::new(3, "lifetime", 0);
        let mut ages: Vec<f64> =
            (0..n).filter_map(|_| law.law().draw(&mut chance)).map(hours).collect();
        ages.sort_by(f64::total_cmp);
        let step = |(i, age)| Step { age, taken: f64::from(i) / f64::from(n), count: 1.0 };
        Curve { steps: (1_u32..).zip(ages).map(step).collect() }
    }

    fn h(hours: f64) -> Span {
        span_of_hours(hours).expect("a span")
    }

    #[test]
    fn the_law_that_lifetimes_were_drawn_from_is_found_again() {
        let bathtub = Bathtub { a: Ppm::new(413_700), b: h(24.0), tau1: h(0.9), tau2: h(0.76) };
        let weibull = Weibull { scale: h(7.0), shape: Ppm::new(600_000) };
        let gompertz = GompertzMakeham { tau1: Some(h(30.0)), b: h(20.0), tau2: h(1.5) };
        for (family, law, numbers) in [
            (Family::Bathtub, Lifetimes::Bathtub(bathtub), &[0.4137, 24.0, 0.9, 0.76][..]),
            (Family::Weibull, Lifetimes::Weibull(weibull), &[7.0, 0.6]),
            (
                Family::GompertzMakeham,
                Lifetimes::GompertzMakeham(gompertz),
                &[1.0 / 30.0, 20.0, 1.5],
            ),
        ] {
            let curve = drawn(&law, 4_000);
            let fit = Fit::to_curve(family, &curve).expect("a fit");
            for (ours, real) in fit.numbers.iter().zip(numbers) {
                assert!((ours.value / real - 1.0).abs() < 0.08, "{fit:?}");
                assert!(!ours.is_at_end, "{fit:?}");
            }
            assert!(fit.r_squared > 0.999, "{fit:?}");
            let others = Family::ALL.map(|other| Fit::to_curve(other, &curve).expect("a fit"));
            assert!(others.iter().all(|other| other.r_squared <= fit.r_squared), "{others:?}");
            assert!((fit.mean.value / curve.mean() - 1.0).abs() < 0.03, "{fit:?}");
        }
    }

    #[test]
    fn a_fit_again_is_that_of_the_other_curve() {
        let law = |scale| Lifetimes::Weibull(Weibull { scale: h(scale), shape: Ppm::new(600_000) });
        let (here, there) = (drawn(&law(7.0), 500), drawn(&law(9.0), 500));
        let fit = Fit::to_curve(Family::Weibull, &here).expect("a fit");
        let anew = Fit::to_curve(Family::Weibull, &there).expect("a fit");
        for again in [fit.again(&there), Fit::near(&law(7.0), &there)] {
            let again = again.expect("a fit");
            for (ours, real) in again.numbers.iter().zip(&anew.numbers) {
                assert!((ours.value / real.value - 1.0).abs() < 1e-4, "{again:?} {anew:?}");
            }
            assert!((again.r_squared - anew.r_squared).abs() < 1e-9, "{again:?} {anew:?}");
        }
        let few = Curve { steps: here.steps[..2].to_vec() };
        assert_eq!((fit.again(&few), Fit::near(&law(7.0), &few)), (None, None));
    }

    #[test]
    fn a_line_is_uniform_and_a_number_at_the_end_of_its_range_is_told() {
        let step = |n: u32| Step { age: f64::from(n), taken: f64::from(n) / 50.0, count: 1.0 };
        let curve = Curve { steps: (1..=20).map(step).collect() };
        let fit = Fit::to_curve(Family::Uniform, &curve).expect("a fit");
        assert!(
            (fit.numbers[0].value - 50.0).abs() < 1e-4 && fit.r_squared > 1.0 - 1e-9,
            "{fit:?}"
        );
        assert!((fit.eq3 - 24.0 * 12.0 / 50.0).abs() < 1e-3, "{fit:?}");
        let gone = Curve { steps: (1..=9).map(|n| Step { taken: 1.0, ..step(n) }).collect() };
        // All VMs are taken from the first step on: the mean is as small as its range allows.
        assert!(Fit::to_curve(Family::Exponential, &gone).expect("a fit").numbers[0].is_at_end);
    }

    #[test]
    fn an_end_that_nobody_has_seen_is_told() {
        let of = |a: u32, [b, tau1, tau2]: [f64; 3]| Fit {
            family: Family::Bathtub,
            numbers: Vec::new(),
            r_squared: 1.0,
            mean: Figure::exact(0.0),
            eq3: 0.0,
            lifetimes: Lifetimes::Bathtub(Bathtub {
                a: Ppm::new(a),
                b: h(b),
                tau1: h(tau1),
                tau2: h(tau2),
            }),
        };
        assert_eq!(of(413_700, [24.0, 0.9, 0.76]).unseen_end(24.3), None);
        let far = of(584_600, [32.85, 0.74, 14.79]);
        assert!(far.unseen_end(24.7).is_some_and(|end| (27.0..28.5).contains(&end)), "{far:?}");
        assert_eq!(Fit { family: Family::Weibull, ..far }.unseen_end(24.7), None);
    }

    #[test]
    fn few_lifetimes_have_no_fit_and_no_interval() {
        let step = |n: u32| Step { age: f64::from(n), taken: f64::from(n) / 5.0, count: 1.0 };
        let curve = Curve { steps: (1..=4).map(step).collect() };
        assert_eq!(Fit::to_curve(Family::Bathtub, &curve), None);
        assert_eq!(Fit::to_curve(Family::Exponential, &Curve::default()), None);
        let fit = Fit::to_curve(Family::GompertzMakeham, &curve).expect("a fit");
        assert_eq!(fit.clone().with_intervals(&[]), fit);
        // Where too many resamples are too poor, there is no interval.
        let poor = Curve { steps: curve.steps[..2].to_vec() };
        let some = |poor_ones: usize| {
            let good = std::iter::repeat_n(&curve, 100 - poor_ones);
            let all: Vec<_> = good.chain(std::iter::repeat_n(&poor, poor_ones)).cloned().collect();
            fit.clone().with_intervals(&all).mean.ci95.is_some()
        };
        assert_eq!([some(0), some(5), some(6), some(100)], [true, true, false, false]);
    }
}
