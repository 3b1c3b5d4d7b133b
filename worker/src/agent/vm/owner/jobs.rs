//! Parallel jobs, kept at the pace that [`dormouse_vm::ideal`] computes from their plans.

mod checkpoints;
mod life;
mod moves;
mod paying;
