//! One simulated worker, driven without a coordinator.

mod coordinator;
mod lies;
mod tasks;
