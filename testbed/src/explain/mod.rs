//! Why a task or a parallel job ran where and when it did, and what became of a VM.

mod bag;
mod jobs;
mod run;

pub use bag::Explainer;
pub use run::{ask_for, explain};
