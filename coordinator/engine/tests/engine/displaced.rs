//! Spot VMs that make room for on-demand VMs: the notices that each VM's owner gets, and when.

mod cases;
mod random;
mod world;
