//! Laws of how long spot VMs live: probabilities over their ages, behind one interface.

pub mod curve;
mod empirical;
mod law;
mod laws;
mod numeric;
#[cfg(test)]
mod tests;

pub use empirical::Empirical;
pub use law::{Lifetime, hours, span_of_hours};
pub use laws::{Bathtub, Exponential, GompertzMakeham, Lifetimes, Uniform, Weibull};
