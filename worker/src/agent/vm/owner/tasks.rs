//! Tasks of one process, kept to what the model of their VM promises them.

mod accounts;
mod own;
mod pacing;
mod reference;
