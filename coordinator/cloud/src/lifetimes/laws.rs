//! Laws in experiments: times and fractions as integers.

use dormouse_units::{Ppm, RandomStream, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::curve;
use super::law::{integrate_lived, invert_rising};
use super::{Empirical, Lifetime, hours};

/// The exponential law: a VM is ended at any time with the same probability, whatever its age.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exponential {
    /// The mean lifetime.
    pub mean: Span,
}

/// F(t) = a (1 − e^(−t/tau1) + e^((t−b)/tau2)): the bathtub law of lifetimes. Many VMs are preempted early, few at middle ages, and
/// all remaining ones soon after age `b` (Kadupitiya and others, HPDC 2020, Eq. 1). No VM outlives the age at which F reaches 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bathtub {
    /// Approximate share of the VMs that are preempted early.
    #[schemars(range(min = 0.000_001, max = 1_000.0), example = 0.4137)]
    pub a: Ppm,
    /// Age around which most of the remaining VMs are preempted.
    #[schemars(example = "24h")]
    pub b: Span,
    /// Time constant of early preemptions: after this time, a share of e^-1 of the VMs that are preempted early is left.
    #[schemars(extend("least" = "1us"), example = "54m")]
    pub tau1: Span,
    /// Time constant of late preemptions: in this time, the preemption rate at the end grows by the factor e.
    #[schemars(extend("least" = "1us"), example = "45.6m")]
    pub tau2: Span,
}

/// Weibull's law of lifetimes: F(t) = 1 − e^(−(t/scale)^shape) of the VMs are preempted by age t.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weibull {
    /// Age by which 63 % of the VMs are preempted.
    #[schemars(extend("least" = "1us"), example = "12h")]
    pub scale: Span,
    /// Exponent of Weibull's law. Below 1, young VMs are preempted more often; above 1, old VMs are; 1 gives the exponential law.
    #[schemars(range(min = 0.01, max = 1_000.0), example = 0.8)]
    pub shape: Ppm,
}

/// F(t) = 1 − e^(−t/tau1 − e^((t−b)/tau2) + e^(−b/tau2)): the law of Gompertz and Makeham. The preemption rate is a constant plus a
/// part that grows exponentially with the VM's age. In the usual letters λ = 1/tau1, β = 1/tau2 and α = e^(−b/tau2)/tau2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GompertzMakeham {
    /// Mean lifetime under the constant part of the preemption rate alone; if not given, the rate has no constant part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("least" = "1us"), example = "20h")]
    pub tau1: Option<Span>,
    /// Age by which the growing part of the preemption rate alone would have preempted about 63 % of the VMs.
    #[schemars(example = "24h")]
    pub b: Span,
    /// Time in which the growing part of the preemption rate grows by the factor e.
    #[schemars(extend("least" = "1us"), example = "1h")]
    pub tau2: Span,
}

/// Law under which lifetimes are uniform between two ages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// Shortest lifetime; 0 if it is not given.
    #[serde(default)]
    #[schemars(example = "0s")]
    pub from: Span,
    /// Longest lifetime.
    #[schemars(extend("least" = "1us"), example = "24h")]
    pub to: Span,
}

/// A law of spot VMs' lifetimes, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lifetimes {
    /// The exponential law.
    Exponential(Exponential),
    /// The empirical law.
    Empirical(Empirical),
    /// The bathtub law.
    Bathtub(Bathtub),
    /// The Weibull law.
    Weibull(Weibull),
    /// The Gompertz-Makeham law.
    GompertzMakeham(GompertzMakeham),
    /// The uniform law.
    Uniform(Uniform),
}

impl Lifetimes {
    /// The law of lifetimes behind the interface that all laws share.
    #[must_use]
    pub fn law(&self) -> &dyn Lifetime {
        match self {
            Self::Exponential(law) => law,
            Self::Empirical(law) => law,
            Self::Bathtub(law) => law,
            Self::Weibull(law) => law,
            Self::GompertzMakeham(law) => law,
            Self::Uniform(law) => law,
        }
    }
}

impl Lifetime for Exponential {
    fn cdf(&self, t: f64) -> f64 {
        curve::exponential_cdf(hours(self.mean), t)
    }

    fn quantile(&self, p: f64) -> f64 {
        hours(self.mean) * curve::unit_exponential(p)
    }

    fn density(&self, t: f64) -> Option<f64> {
        let mean = hours(self.mean);
        Some(libm::exp(-t / mean) / mean)
    }

    fn hours_lived(&self, t: f64) -> f64 {
        let mean = hours(self.mean);
        if t.is_finite() { mean - (t + mean) * libm::exp(-t / mean) } else { mean }
    }

    /// Draws a lifetime with the random stream's own exponential draw, so that old runs stay reproducible.
    fn draw_lifetime(&self, chance: &mut RandomStream) -> Option<Span> {
        Some(chance.draw_exponential(self.mean))
    }
}

impl Bathtub {
    fn numbers(&self) -> [f64; 4] {
        [self.a.as_f64(), hours(self.b), hours(self.tau1), hours(self.tau2)]
    }
}

impl Lifetime for Bathtub {
    fn cdf(&self, t: f64) -> f64 {
        curve::bathtub_cdf(self.numbers(), t).min(1.0)
    }

    fn quantile(&self, p: f64) -> f64 {
        let numbers = self.numbers();
        invert_rising(|t| curve::bathtub_cdf(numbers, t), p, curve::bathtub_late(numbers, p))
    }

    fn density(&self, t: f64) -> Option<f64> {
        let numbers = self.numbers();
        let is_over = curve::bathtub_cdf(numbers, t) >= 1.0;
        Some(if is_over { 0.0 } else { curve::bathtub_density(numbers, t) })
    }

    fn hours_lived(&self, t: f64) -> f64 {
        let to = t.min(self.quantile(1.0));
        let [from, to] = [0.0, to].map(|t| curve::bathtub_lived(self.numbers(), t));
        to - from
    }
}

impl Weibull {
    fn numbers(&self) -> [f64; 2] {
        [hours(self.scale), self.shape.as_f64()]
    }
}

impl Lifetime for Weibull {
    fn cdf(&self, t: f64) -> f64 {
        curve::weibull_cdf(self.numbers(), t)
    }

    fn quantile(&self, p: f64) -> f64 {
        let [scale, shape] = self.numbers();
        scale * libm::pow(curve::unit_exponential(p), 1.0 / shape)
    }

    fn density(&self, t: f64) -> Option<f64> {
        Some(curve::weibull_hazard(self.numbers(), t) * (1.0 - self.cdf(t)))
    }

    fn hours_lived(&self, t: f64) -> f64 {
        integrate_lived(self, t)
    }
}

impl GompertzMakeham {
    fn numbers(&self) -> [f64; 3] {
        [self.tau1.map_or(0.0, |tau1| 1.0 / hours(tau1)), hours(self.b), hours(self.tau2)]
    }
}

impl Lifetime for GompertzMakeham {
    fn cdf(&self, t: f64) -> f64 {
        curve::gompertz_makeham(self.numbers(), t)
    }

    fn quantile(&self, p: f64) -> f64 {
        let (numbers, exposure) = (self.numbers(), curve::unit_exponential(p));
        let late = curve::gompertz_makeham_late(numbers, exposure);
        invert_rising(|t| curve::gompertz_makeham_exposure(numbers, t), exposure, late)
    }

    fn density(&self, t: f64) -> Option<f64> {
        Some(curve::gompertz_makeham_hazard(self.numbers(), t) * (1.0 - self.cdf(t)))
    }

    fn hours_lived(&self, t: f64) -> f64 {
        integrate_lived(self, t)
    }
}

impl Lifetime for Uniform {
    fn cdf(&self, t: f64) -> f64 {
        let [from, to] = [self.from, self.to].map(hours);
        if t >= to { 1.0 } else { ((t - from) / (to - from)).max(0.0) }
    }

    fn quantile(&self, p: f64) -> f64 {
        let [from, to] = [self.from, self.to].map(hours);
        from + p * (to - from)
    }

    fn density(&self, t: f64) -> Option<f64> {
        let [from, to] = [self.from, self.to].map(hours);
        let is_inside = (from..to).contains(&t);
        (to > from).then_some(if is_inside { 1.0 / (to - from) } else { 0.0 })
    }

    fn hours_lived(&self, t: f64) -> f64 {
        let [from, to] = [self.from, self.to].map(hours);
        if t < from { 0.0 } else { self.cdf(t) * f64::midpoint(from, t.min(to)) }
    }
}
