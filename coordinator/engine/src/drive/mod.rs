//! Feeds a run in virtual time, in the order that live runs use too.

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
