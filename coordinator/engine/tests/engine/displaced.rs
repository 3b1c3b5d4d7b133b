//! Spot VMs that make room for on-demand VMs: what each of them hears, and when.

mod cases;
mod random;
mod world;
