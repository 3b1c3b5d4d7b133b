//! The interface of all laws of lifetimes.

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
