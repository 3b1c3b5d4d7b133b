//! A run fed in virtual time.

mod arrivals;
mod followers;
mod modelled;
mod play;
mod world;

pub use arrivals::{Requested, in_order};
pub use followers::Followers;
pub use modelled::{Modelled, TwoTierLaw, credit_spec};
pub use play::{BOUNDLESS, PlayError, beginning, play, play_following, play_handing_over};
pub use world::{Reports, World};
