//! Explanations of single things of a run: why a task or parallel job ran where and when it did,
//! and what became of a VM, a host or a request.

mod bag;
mod explanation;
mod hosts;
mod jobs;
mod requests;

pub use bag::BagExplainer;
pub use explanation::{ExplainedEvent, Explanation};
pub use hosts::HostStory;
pub use jobs::JobStory;
pub use requests::RequestStory;
