//! The laws of lifetimes that the figures are of.

use dormouse_cloud::lifetimes::span_of_hours;
use dormouse_cloud::{Bathtub, Lifetimes, Uniform};
use dormouse_units::{Ppm, Span};

/// The longest that Google's preemptible VMs live, in hours.
pub(super) const LONGEST: usize = 24;

/// A bathtub by A in millionths, and b, τ1 and τ2 in hours.
fn bathtub(a: u32, [b, tau1, tau2]: [f64; 3]) -> Option<Lifetimes> {
    let [b, tau1, tau2] = [b, tau1, tau2].map(span_of_hours);
    Some(Lifetimes::Bathtub(Bathtub { a: Ppm::new(a), b: b?, tau1: tau1?, tau2: tau2? }))
}

/// A law by its name in cases.
pub(super) fn named(name: &str) -> Option<Lifetimes> {
    match name {
        // Fits to all the preempted VMs that the authors recorded.
        "n1-highcpu-16" => bathtub(422_700, [24.453, 1.060, 0.784]),
        "all" => bathtub(413_700, [24.453, 0.9498, 0.7675]),
        // What the authors' own simulations take.
        "authors" => bathtub(413_700, [24.0, 0.9, 0.76]),
        "uniform" => {
            let to = Span::from_secs(LONGEST as u64 * 3_600);
            Some(Lifetimes::Uniform(Uniform { from: Span::ZERO, to }))
        }
        _ => None,
    }
}
