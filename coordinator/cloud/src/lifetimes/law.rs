//! The interface of all laws of lifetimes, and numerical inverses and integrals of laws.

use dormouse_units::{RandomStream, Span};

/// Law of spot VMs' lifetimes. Within a law, ages are hours as floats; elsewhere they are spans.
pub trait Lifetime: std::fmt::Debug {
    /// F(t): the fraction of VMs that are preempted by this age t. F never falls, and may never reach 1.
    fn cdf(&self, hours: f64) -> f64;

    /// The least age in hours by which the fraction `p`, from 0 to 1, of VMs is preempted; infinite if it never is.
    fn quantile(&self, p: f64) -> f64;

    /// f(t) = dF/dt, per hour; `None` if the law has steps instead of a density.
    fn density(&self, hours: f64) -> Option<f64>;

    /// ∫₀ᵗ x dF(x): mean number of hours lived by VMs that are preempted by this age, where other
    /// VMs count as zero (the bathtub paper's Eq. 3 with L = t). For an infinite age it is the mean
    /// lifetime.
    fn hours_lived(&self, hours: f64) -> f64;

    /// Rate per hour at which remaining VMs of this age are preempted; `None` if no VMs remain or
    /// the law has no density.
    fn hazard(&self, hours: f64) -> Option<f64> {
        let left = 1.0 - self.cdf(hours);
        if left > 0.0 { Some(self.density(hours)? / left) } else { None }
    }

    /// Draws a VM's lifetime, counted from when the VM is usable, by the inverse of F; `None`: the VM is never
    /// preempted.
    fn draw_lifetime(&self, chance: &mut RandomStream) -> Option<Span> {
        span_of_hours(self.quantile(chance.draw_unit())).map(|life| life.max(Span::from_micros(1)))
    }
}

/// A span in hours.
#[must_use]
pub fn hours(span: Span) -> f64 {
    span.as_secs_f64() / 3_600.0
}

/// The nearest span to this number of hours; `None` if the number is negative, not finite or more than 285 years.
#[must_use]
pub fn span_of_hours(hours: f64) -> Option<Span> {
    Span::from_secs_f64(hours * 3_600.0)
}

/// The least x from 0 to `most` at which the non-decreasing function `rises` is at least `y`, by
/// bisection to neighbouring numbers; `most` if there is no such x.
pub(super) fn invert_rising(rises: impl Fn(f64) -> f64, y: f64, most: f64) -> f64 {
    if rises(0.0) >= y {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, most);
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            return high;
        }
        if rises(middle) >= y { high = middle } else { low = middle }
    }
}

/// Points of Gauss–Legendre quadrature: the distance of each from the middle of an interval, as a
/// fraction of half the interval, and its weight.
const POINTS: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
    (-0.538_469_310_105_683, 0.478_628_670_499_366_47),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_08),
];
const PIECES: u32 = 48;
/// Integrated hazard at which a fraction of about 10^-15 of VMs is left; later ages contribute almost nothing.
const LAST: f64 = 34.0;

/// ∫₀ᵗ x dF(x) = ∫₀ᵗ (1 − F) − t (1 − F(t)) for a continuous law. The integral is split at ages at
/// which certain fractions of VMs are left, so that F is smooth in each part, whatever the law's
/// scale and shape.
pub(super) fn integrate_lived(law: &(impl Lifetime + ?Sized), t: f64) -> f64 {
    let end = t.min(law.quantile(-libm::expm1(-LAST)));
    let (mut sum, mut from) = (0.0, 0.0);
    for piece in 1..=PIECES {
        let part = f64::from(piece) / f64::from(PIECES);
        let to = law.quantile(-libm::expm1(-LAST * part * part * part)).min(end);
        let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
        let at = |(place, weight): (f64, f64)| weight * (1.0 - law.cdf(middle + half * place));
        sum += half * POINTS.map(at).iter().sum::<f64>();
        from = to;
    }
    sum - end * (1.0 - law.cdf(end))
}
