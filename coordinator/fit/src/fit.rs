//! Fits of a law to a curve, with confidence intervals of the numbers.

use dormouse_cloud::Lifetimes;
use dormouse_estimate::middle95;

use crate::least_squares::{FitProblem, LowestPoint};
use crate::{Curve, Family};

/// Greatest number of steps of the reduced curve that start points are compared on, and that
/// resamples are fitted on.
const COARSE: usize = 128;
/// Number of start points, the best of all, from which a descent is made.
const DESCENTS: usize = 8;

/// A law fitted by least squares.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The law that was fitted.
    pub family: Family,
    /// The fitted parameters of the law, in the order of [`Family::numbers`].
    pub numbers: Vec<FittedNumber>,
    /// Fraction of the curve's variance that the law explains (R²), weighted by the number of preempted VMs at each step.
    pub r_squared: f64,
    /// Mean lifetime under the law, in hours.
    pub mean: FittedNumber,
    /// The bathtub paper's Eq. 3: mean number of hours lived by VMs that are preempted within 24 h, where other VMs count as zero.
    pub eq3: f64,
    /// The law with integer parameters, which experiments use.
    pub lifetimes: Lifetimes,
}

/// A figure of a fitted law (a parameter or a mean), with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedNumber {
    /// The fitted figure itself, in the figure's own unit, such as hours.
    pub value: f64,
    /// 95 % interval of the figure over fits to resampled VMs; `None` if it was not computed.
    pub ci95: Option<(f64, f64)>,
    /// True if the number is at an end of its search range.
    pub is_at_end: bool,
}

impl FittedNumber {
    /// A figure of a fitted law without an interval.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { value, ci95: None, is_at_end: false }
    }
}

/// Prints the figure with four decimals, and a star if it is at an end of its search range.
impl std::fmt::Display for FittedNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.4}{}", self.value, if self.is_at_end { "*" } else { "" })
    }
}

impl Fit {
    /// Fits the best law of `family` to a curve; `None` if the curve doesn't have more distinct
    /// lifetimes than the law has numbers.
    #[must_use]
    pub fn to_curve(family: Family, curve: &Curve) -> Option<Self> {
        let (last, ranges) = (curve.last(), family.search_ranges(curve.last()));
        if curve.steps.len() <= ranges.len() {
            return None;
        }
        let coarse = curve.thin_to(COARSE);
        let near =
            FitProblem { formula: family.law_formula(), ranges: &ranges, steps: &coarse.steps };
        let mut starts = family.start_points(last);
        starts.sort_by(|a, b| near.sum_of_squares(a).total_cmp(&near.sum_of_squares(b)));
        starts.truncate(DESCENTS);
        let lowest = starts
            .iter()
            .map(|start| near.descend(start))
            .min_by(|a, b| a.squares.total_cmp(&b.squares))?;
        let whole = FitProblem { steps: &curve.steps, ..near };
        Self::new(family, curve, &ranges, &whole.descend(&lowest.numbers))
    }

    /// Fits the same family to another curve, such as a resample's, by one descent from this fit.
    /// `None` if the curve doesn't have more distinct lifetimes than the law has numbers.
    #[must_use]
    pub fn again(&self, curve: &Curve) -> Option<Self> {
        let numbers: Vec<f64> = self.numbers.iter().map(|number| number.value).collect();
        Self::fit_from(self.family, &numbers, curve)
    }

    /// Fits the family of a given law to a curve by one descent from that law. `None` if the curve
    /// doesn't have more distinct lifetimes than the law has numbers, or for recorded lifetimes,
    /// which have no family.
    #[must_use]
    pub fn near(lifetimes: &Lifetimes, curve: &Curve) -> Option<Self> {
        let (family, numbers) = Family::of_law(lifetimes)?;
        Self::fit_from(family, &numbers, curve)
    }

    fn fit_from(family: Family, from: &[f64], curve: &Curve) -> Option<Self> {
        let ranges = family.search_ranges(curve.last());
        if curve.steps.len() <= ranges.len() {
            return None;
        }
        let coarse = curve.thin_to(COARSE);
        let near =
            FitProblem { formula: family.law_formula(), ranges: &ranges, steps: &coarse.steps };
        let lowest = near.descend(from);
        let whole = FitProblem { steps: &curve.steps, ..near };
        Self::new(family, curve, &ranges, &whole.descend(&lowest.numbers))
    }

    fn new(
        family: Family,
        curve: &Curve,
        ranges: &[(f64, f64)],
        found: &LowestPoint,
    ) -> Option<Self> {
        let lifetimes = family.law(&found.numbers)?;
        let weight: f64 = curve.steps.iter().map(|step| step.count).sum();
        let mean = curve.steps.iter().map(|s| s.count * s.taken).sum::<f64>() / weight;
        let spread: f64 =
            curve.steps.iter().map(|s| s.count * (s.taken - mean) * (s.taken - mean)).sum();
        let figure = |(value, (least, most)): (&f64, &(f64, f64))| {
            let near = 1e-6 * (most - least);
            let is_at_end = value - least <= near.min(1e-3 * least.abs()) || most - value <= near;
            FittedNumber { value: *value, ci95: None, is_at_end }
        };
        let law = lifetimes.law();
        Some(Self {
            family,
            numbers: found.numbers.iter().zip(ranges).map(figure).collect(),
            r_squared: 1.0 - found.squares / spread,
            mean: FittedNumber::exact(law.hours_lived(f64::INFINITY)),
            eq3: law.hours_lived(24.0),
            lifetimes,
        })
    }

    /// Age in hours at which the last VMs end under a fitted bathtub, if it is far beyond the
    /// curve's longest lifetime `last`, where no end was observed. `None` under other laws, and if
    /// the end was observed.
    #[must_use]
    pub fn unseen_end(&self, last: f64) -> Option<f64> {
        let end = self.lifetimes.law().quantile(1.0);
        (self.family == Family::Bathtub && end > 1.1 * last).then_some(end)
    }

    /// The law's curve for a drawing: pairs of an age in hours and the fraction of VMs preempted by then, from 0 to the
    /// age `last`.
    #[must_use]
    pub fn taken(&self, last: f64) -> Vec<(f64, f64)> {
        drawing_ages(last).map(|age| (age, self.lifetimes.law().cdf(age))).collect()
    }

    /// Hazard rates for a drawing: pairs of age in hours and rate per hour, from 0 to `last` hours,
    /// without rates of 10 or more.
    #[must_use]
    pub fn rates(&self, last: f64) -> Vec<(f64, f64)> {
        let rate = |age| Some((age, self.lifetimes.law().hazard(age)?));
        drawing_ages(last).filter_map(rate).filter(|(_, rate)| *rate < 10.0).collect()
    }

    /// Adds intervals to this fit, from curves of resampled VMs, to each of which the law is fitted again from this
    /// fit. There are no intervals if more than one resample in twenty has too few distinct lifetimes: the others would
    /// be a biased choice.
    #[must_use]
    pub fn with_intervals(mut self, resampled: &[Curve]) -> Self {
        let numbers: Vec<f64> = self.numbers.iter().map(|number| number.value).collect();
        let again = |curve: &Curve| {
            let (coarse, ranges) = (curve.thin_to(COARSE), self.family.search_ranges(curve.last()));
            if curve.steps.len() <= ranges.len() {
                return None;
            }
            let formula = self.family.law_formula();
            let problem = FitProblem { formula, ranges: &ranges, steps: &coarse.steps };
            let found = problem.descend(&numbers).numbers;
            let mean = self.family.law(&found)?.law().hours_lived(f64::INFINITY);
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

/// 121 evenly spaced ages from 0 to `last`, in hours.
fn drawing_ages(last: f64) -> impl Iterator<Item = f64> {
    (0..=120).map(move |n| last * f64::from(n) / 120.0)
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::lifetimes::{hours, span_of_hours};
    use dormouse_cloud::{Bathtub, GompertzMakeham, Weibull};
    use dormouse_units::{Ppm, RandomStream, Span};

    use super::*;
    use crate::CurveStep;

    /// A curve of `n` lifetimes that were drawn from a law.
    fn drawn(law: &Lifetimes, n: u32) -> Curve {
        let mut chance = RandomStream::new(3, "lifetime", 0);
        let mut ages: Vec<f64> =
            (0..n).filter_map(|_| law.law().draw_lifetime(&mut chance)).map(hours).collect();
        ages.sort_by(f64::total_cmp);
        let step = |(i, age)| CurveStep { age, taken: f64::from(i) / f64::from(n), count: 1.0 };
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
        let step = |n: u32| CurveStep { age: f64::from(n), taken: f64::from(n) / 50.0, count: 1.0 };
        let curve = Curve { steps: (1..=20).map(step).collect() };
        let fit = Fit::to_curve(Family::Uniform, &curve).expect("a fit");
        assert!(
            (fit.numbers[0].value - 50.0).abs() < 1e-4 && fit.r_squared > 1.0 - 1e-9,
            "{fit:?}"
        );
        assert!((fit.eq3 - 24.0 * 12.0 / 50.0).abs() < 1e-3, "{fit:?}");
        let gone = Curve { steps: (1..=9).map(|n| CurveStep { taken: 1.0, ..step(n) }).collect() };
        // All VMs are taken from the first step on: the mean is as small as its range allows.
        assert!(Fit::to_curve(Family::Exponential, &gone).expect("a fit").numbers[0].is_at_end);
    }

    #[test]
    fn an_end_that_nobody_has_seen_is_told() {
        let of = |a: u32, [b, tau1, tau2]: [f64; 3]| Fit {
            family: Family::Bathtub,
            numbers: Vec::new(),
            r_squared: 1.0,
            mean: FittedNumber::exact(0.0),
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
        let step = |n: u32| CurveStep { age: f64::from(n), taken: f64::from(n) / 5.0, count: 1.0 };
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
