//! Formulas of the laws over plain numbers: ages and times in hours. Fits vary these numbers;
//! experiments have them as integers, in the types of the module `laws`.
//!
//! All transcendental functions are `libm`'s, so that results are bit-identical on every machine.

use libm::{exp, expm1, log, pow};

/// Fraction of VMs preempted by age `t` under the bathtub law (Kadupitiya, Jadhao, Sharma, HPDC
/// 2020, Eq. 1), which exceeds 1 soon after `b`: A (1 − e^(−t/τ1) + e^((t−b)/τ2)).
#[must_use]
pub fn bathtub_cdf([a, b, tau1, tau2]: [f64; 4], t: f64) -> f64 {
    a * (-expm1(-t / tau1) + exp((t - b) / tau2))
}

/// Density of the bathtub law at age `t`, per hour (HPDC 2020, Eq. 2): the derivative of its fraction.
#[must_use]
pub fn bathtub_density([a, b, tau1, tau2]: [f64; 4], t: f64) -> f64 {
    a * (exp(-t / tau1) / tau1 + exp((t - b) / tau2) / tau2)
}

/// An antiderivative of `t` times the density of the bathtub law (HPDC 2020, Eq. 3 is a difference
/// of two values of it).
#[must_use]
pub fn bathtub_lived([a, b, tau1, tau2]: [f64; 4], t: f64) -> f64 {
    a * ((t - tau2) * exp((t - b) / tau2) - (t + tau1) * exp(-t / tau1))
}

/// Fraction of VMs preempted by age `t` under the exponential law: 1 − e^(−t/mean).
#[must_use]
pub fn exponential_cdf(mean: f64, t: f64) -> f64 {
    -expm1(-t / mean)
}

/// Fraction of VMs preempted by age `t` under Weibull's law: 1 − e^(−(t/scale)^shape); the bathtub
/// paper's λ is 1 / scale.
#[must_use]
pub fn weibull_cdf([scale, shape]: [f64; 2], t: f64) -> f64 {
    -expm1(-pow(t / scale, shape))
}

/// Weibull's hazard per hour: the rate at which remaining VMs of age `t` are preempted.
#[must_use]
pub fn weibull_hazard([scale, shape]: [f64; 2], t: f64) -> f64 {
    shape / scale * pow(t / scale, shape - 1.0)
}

/// Fraction of VMs preempted by age `t` under the law of Gompertz and Makeham: 1 − e^(−H(t)) with
/// H(t) = λt + α/β (e^(βt) − 1), by the rate λ and two times: b, at which the ageing part of H has
/// reached about 1, and τ = 1/β; α = e^(−b/τ)/τ.
#[must_use]
pub fn gompertz_makeham([rate, b, tau]: [f64; 3], t: f64) -> f64 {
    -expm1(-gompertz_makeham_exposure([rate, b, tau], t))
}

/// H(t) of the law of Gompertz and Makeham: the hazard integrated up to age `t`.
#[must_use]
pub fn gompertz_makeham_exposure([rate, b, tau]: [f64; 3], t: f64) -> f64 {
    rate * t + exp((t - b) / tau) - exp(-b / tau)
}

/// The hazard of Gompertz and Makeham per hour: the rate at which remaining VMs of age `t` are preempted.
#[must_use]
pub fn gompertz_makeham_hazard([rate, b, tau]: [f64; 3], t: f64) -> f64 {
    rate + exp((t - b) / tau) / tau
}

/// Age by which the fraction `p` of the VMs is gone, under an exponential law with mean 1.
pub(super) fn unit_exponential(p: f64) -> f64 {
    -libm::log1p(-p)
}

/// An age in hours by which the bathtub law has surely reached the fraction `p`, because its last
/// term alone has reached it.
pub(super) fn bathtub_late([a, b, _, tau2]: [f64; 4], p: f64) -> f64 {
    (b + tau2 * log(p / a)).max(0.0)
}

/// An age in hours by which the integrated hazard H of Gompertz and Makeham has surely reached `h`.
pub(super) fn gompertz_makeham_late([_, b, tau]: [f64; 3], h: f64) -> f64 {
    (b + tau * log(h + exp(-b / tau))).max(0.0)
}
