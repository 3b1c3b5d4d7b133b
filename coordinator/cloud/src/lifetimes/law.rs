//! The interface of all laws of lifetimes.

use dormouse_units::{Span, Stream};

/// A law of how long spot VMs live. Inside a law, ages are hours as floats; a VM's age is a span.
pub trait Lifetime: std::fmt::Debug {
    /// F(t): the part of the VMs that is taken by this age. It never falls, and may never come to 1.
    fn cdf(&self, hours: f64) -> f64;

    /// The least age in hours by which the part `p`, from 0 to 1, is taken; infinite where it never is.
    fn quantile(&self, p: f64) -> f64;

    /// f(t) = dF/dt, per hour; `None` where the law has jumps in place of a density.
    fn density(&self, hours: f64) -> Option<f64>;

    /// ∫₀ᵗ x dF(x): the hours that the VMs taken by this age lived, per VM of all (the bathtub
    /// paper's Eq. 3 with L = t). For an infinite age it is the mean lifetime.
    fn lived(&self, hours: f64) -> f64;

    /// The rate per hour at which VMs of this age that are left are taken; `None` where none are
    /// left or the law has no density.
    fn hazard(&self, hours: f64) -> Option<f64> {
        let left = 1.0 - self.cdf(hours);
        if left > 0.0 { Some(self.density(hours)? / left) } else { None }
    }

    /// Draws a VM's lifetime, from when it is usable, by the inverse of F; `None`: as long as its
    /// user wants it.
    fn draw(&self, chance: &mut Stream) -> Option<Span> {
        span_of_hours(self.quantile(chance.unit())).map(|life| life.max(Span::from_micros(1)))
    }
}

/// A span in hours.
#[must_use]
pub fn hours(span: Span) -> f64 {
    span.as_secs_f64() / 3_600.0
}

/// The nearest span to these hours; `None` if negative, not finite or past 285 years.
#[must_use]
pub fn span_of_hours(hours: f64) -> Option<Span> {
    Span::from_secs_f64(hours * 3_600.0)
}
