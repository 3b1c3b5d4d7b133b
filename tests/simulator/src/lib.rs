//! Simulation of whole live runs, each drawn from one seed.
//!
//! The coordinator's actors, its journal and its store, and the session of each worker are the real code, in one
//! thread under one virtual clock. The world around them is simulated: the [`network`], the [`disk`], the machines of
//! the [`worker`]s, and the [`faults`] that hit all of these. A [`plan`] fixes all of this in advance, so that a run
//! can be played again and made smaller.

pub mod campaign;
pub mod cli;
pub mod death;
pub mod disk;
pub mod draw;
pub mod faults;
pub mod invariant;
pub mod log_change;
pub mod network;
pub mod oracle;
pub mod outcome;
pub mod plan;
pub mod reach;
pub mod run;
pub mod shrink;
pub mod stage;
pub mod tally;
pub mod trace;
pub mod witness;
pub mod worker;
pub mod worker_end;
