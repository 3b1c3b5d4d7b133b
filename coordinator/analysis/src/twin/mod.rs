//! Comparison of a run with its twin: the same run in virtual time, with the interruptions of the
//! compared run. Every difference is caused by the emulation.

mod bag;
mod divergence;
mod exact;
mod given;
mod jobs;
mod measured;
mod spread;
mod value;

pub use bag::twin_of_bag;
pub use divergence::{DecisionMoment, DivergentDecision, TwinDivergence};
pub use exact::TwoTier;
pub use given::{TwinInputs, decided_again};
pub use jobs::{has_begun, twin_of_jobs};
pub use measured::{MeasuredMoves, Moves};
pub use spread::DurationSpread;
pub use value::{
    ComparedRun, EventCount, LiveAndTwin, TaskFate, TaskStanding, TwinComparison, TwinTask, TwinVm,
    VmFate,
};
