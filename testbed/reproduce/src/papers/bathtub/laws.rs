//! Published laws of lifetimes, for figures without a record, and their uncertainty.

use dormouse_cloud::lifetimes::{hours, span_of_hours};
use dormouse_cloud::{Bathtub, Lifetimes, Uniform};
use dormouse_fit::{Curve, CurveStep, Fit};
use dormouse_units::{Ppm, RandomStream, Span};

use super::draw::RecordDraw;
use super::number;

/// Longest lifetime of Google's preemptible VMs, in hours.
pub(super) const LONGEST: usize = 24;

/// A law that was fitted to a record and published.
pub(super) struct PublishedLaw {
    /// The fitted law of the VMs' lifetimes.
    pub(super) lifetimes: Lifetimes,
    /// Number of preempted VMs that the law was fitted to; 0 if the law is not a fit, so that it has no uncertainty.
    vms: usize,
}

/// A bathtub with A in millionths, and b, τ1 and τ2 in hours, fitted to `vms` VMs; `None` if a time is not a valid span.
fn bathtub_law(a: u32, [b, tau1, tau2]: [f64; 3], vms: usize) -> Option<PublishedLaw> {
    let [b, tau1, tau2] = [b, tau1, tau2].map(span_of_hours);
    let law = Bathtub { a: Ppm::new(a), b: b?, tau1: tau1?, tau2: tau2? };
    Some(PublishedLaw { lifetimes: Lifetimes::Bathtub(law), vms })
}

/// A published law by its name in cases; `None` if no published law has that name.
pub(super) fn published(name: &str) -> Option<PublishedLaw> {
    /// Number of all preempted VMs in the authors' record; `HIGHCPU_16` is the number of those of type n1-highcpu-16.
    const ALL: usize = 717;
    const HIGHCPU_16: usize = 132;
    match name {
        // Fits to the preempted VMs that the authors recorded.
        "n1-highcpu-16" => bathtub_law(422_700, [24.453, 1.060, 0.784], HIGHCPU_16),
        "all" => bathtub_law(413_700, [24.453, 0.9498, 0.7675], ALL),
        // Law of the authors' own simulations.
        "authors" => bathtub_law(413_700, [24.0, 0.9, 0.76], ALL),
        // Lowest of the fit values that section 3.2.2 calls typical.
        "text" => bathtub_law(400_000, [24.0, 0.5, 0.8], HIGHCPU_16),
        "uniform" => {
            let to = Span::from_secs(LONGEST as u64 * 3_600);
            Some(PublishedLaw {
                lifetimes: Lifetimes::Uniform(Uniform { from: Span::ZERO, to }),
                vms: 0,
            })
        }
        _ => None,
    }
}

impl PublishedLaw {
    /// The published law, or a law fitted to a resample. A resample does not need the record (parametric bootstrap): as
    /// many lifetimes as the law was fitted to are drawn from the law, and a new law is fitted to the draws.
    pub(super) fn drawn(self, name: &str, draw: RecordDraw) -> Option<Lifetimes> {
        let RecordDraw::Resample(seed) = draw else { return Some(self.lifetimes) };
        if self.vms == 0 {
            return Some(self.lifetimes);
        }
        let mut chance = RandomStream::named_stream(seed, "law", name);
        let lived = (0..self.vms).filter_map(|_| self.lifetimes.law().draw_lifetime(&mut chance));
        let mut ages: Vec<f64> = lived.map(hours).collect();
        ages.sort_by(f64::total_cmp);
        let n = number(ages.len());
        let step = |(i, age)| CurveStep { age, taken: number(i + 1) / n, count: 1.0 };
        let curve = Curve { steps: ages.into_iter().enumerate().map(step).collect() };
        Fit::near(&self.lifetimes, &curve).map(|fit| fit.lifetimes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_law_is_as_well_known_as_its_vms_are_many() {
        let scale = |name: &str, seed| match published(name)
            .and_then(|law| law.drawn(name, RecordDraw::Resample(seed)))
        {
            Some(Lifetimes::Bathtub(law)) => law.a.as_f64(),
            other => panic!("{name}: {other:?}"),
        };
        let spread = |name: &str| {
            let all: Vec<f64> = (1..=60).map(|seed| scale(name, seed)).collect();
            let mean = all.iter().sum::<f64>() / 60.0;
            (mean, (all.iter().map(|a| (a - mean).powi(2)).sum::<f64>() / 59.0).sqrt())
        };
        // A is about the part that is taken early, a binomial share: sqrt(.41 · .59 / n).
        for (name, a, n) in [("authors", 0.4137, 717.0_f64), ("n1-highcpu-16", 0.4227, 132.0)] {
            let (mean, deviation) = spread(name);
            let binomial = (a * (1.0 - a) / n).sqrt();
            assert!((mean - a).abs() < binomial, "{name}: {mean}");
            assert!((0.6..1.6).contains(&(deviation / binomial)), "{name}: {deviation} {binomial}");
        }
        assert!((scale("authors", 7) - scale("authors", 7)).abs() < 1e-12);
        let uniform = |draw| published("uniform").and_then(|law| law.drawn("uniform", draw));
        assert_eq!(uniform(RecordDraw::Resample(1)), uniform(RecordDraw::Whole));
    }
}
