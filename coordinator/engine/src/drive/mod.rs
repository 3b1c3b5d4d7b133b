//! A run fed in virtual time, and the order in which it is fed, live runs among them.

mod arrivals;
mod followers;
mod last_saves;
mod modelled;
mod play;
mod turn;
mod world;

pub use arrivals::{Requested, in_order};
pub use followers::Followers;
pub use modelled::{Modelled, TwoTierLaw, credit_spec};
pub use play::{BOUNDLESS, PlayError, beginning, play, play_following, play_handing_over};
pub use turn::{Agenda, Turn};
pub use world::{Reports, World};
