//! Why a task or a parallel job ran where and when it did, and what became of a VM, and of a request for
//! one.

mod bag;
mod explanation;
mod jobs;
mod requests;

pub use bag::Explainer;
pub use explanation::{Explanation, Line};
pub use jobs::JobStory;
pub use requests::RequestStory;
