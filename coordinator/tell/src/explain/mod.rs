//! Why a task or a parallel job ran where and when it did, and what became of a VM.

mod bag;
mod explanation;
mod jobs;

pub use bag::Explainer;
pub use explanation::{Explanation, Line};
pub use jobs::JobStory;
