//! Laws of spot VMs' lifetimes: the probability of preemption by age, behind one interface.

pub mod curve;
mod empirical;
mod law;
mod laws;
#[cfg(test)]
mod tests;

pub use empirical::Empirical;
pub use law::{Lifetime, hours, span_of_hours};
pub use laws::{Bathtub, Exponential, GompertzMakeham, Lifetimes, Uniform, Weibull};
