//! A run fed in virtual time, and the order in which it is fed, live runs among them.

mod arrivals;
mod followers;
mod last_saves;
mod modelled;
mod play;
mod turn;
mod world;

pub use arrivals::{RequestEvents, in_order};
pub use followers::WaitingFollowers;
pub use modelled::{ModelledMachines, TwoTierLaw, credit_spec};
pub use play::{
    BOUNDLESS, PlayError, beginning_events, play_following, play_handing_over, play_run,
};
pub use turn::{AgendaKind, RunAgenda};
pub use world::{MachineWorld, Reports};
