//! A run fed in virtual time.

mod arrivals;
mod modelled;
mod play;
mod world;

pub use arrivals::{Requested, in_order};
pub use modelled::{Modelled, TwoTierLaw, credit_spec};
pub use play::{BOUNDLESS, PlayError, beginning, play};
pub use world::{Reports, World};
