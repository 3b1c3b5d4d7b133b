//! Tasks of one process, kept at the pace that the model of their VM promises.

mod accounts;
mod own;
mod pacing;
mod reference;
