//! Why a task or a parallel job ran where and when it did, and what became of a VM, of a host, and of a
//! request for a VM.

mod bag;
mod explanation;
mod hosts;
mod jobs;
mod requests;

pub use bag::Explainer;
pub use explanation::{Explanation, Line};
pub use hosts::HostStory;
pub use jobs::JobStory;
pub use requests::RequestStory;
