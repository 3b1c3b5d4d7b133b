//! Parallel jobs, kept to what [`dormouse_vm::ideal`] makes of their plans.

mod checkpoints;
mod life;
mod moves;
mod paying;
