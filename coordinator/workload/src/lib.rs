//! Jobs and their sources: bags of tasks, logs of rigid parallel jobs in the Standard Workload
//! Format, models that make more of them, and statistics of either.
//!
//! [`bag`] has the bags of the Burst-HADS paper, [`artifact`] reads the files of its authors.
//!
//! A workload of parallel jobs is a stream of [`Submission`](dormouse_model::Submission)s in order of submission.
//! [`Trace`] streams them from an SWF log, packed or not, so that memory does not grow with the log; jobs of other
//! formats ([`JobsFormat`]) are all held in memory. The models make a list. The caller opens the files.
//!
//! A [`Workflow`] is a bag of which some tasks follow others.
//!
//! Requests for VMs are a [`RequestStream`]: written down, from a file or trace, or drawn by a
//! [`RequestModel`].

mod arrivals;
pub mod artifact;
mod bags;
pub mod decimal;
mod described;
mod lines;
mod logs;
mod models;
mod requests;
mod sampling;
mod statistics;
mod stream;
#[cfg(test)]
mod tests;
mod usage;
mod workflow;

pub use arrivals::{
    UnscalableArrival, least_makespan, offered_load, scale_arrivals, scale_logged_arrival,
};
pub use bags::{BAGS, bag};
pub use described::{BatchWorkload, Estimates, JobSource, JobSpec, Shape, UsageKind};
pub use lines::Lines;
pub use logs::{
    BatsimWriter, CsvWriter, ExtraFields, FirstMalformed, FollowUps, Fractions, Header, JobSize,
    JobsFormat, LineProblem, LogForm, LogPriority, LogRules, NoEstimate, OddJobs, OnMalformed,
    PartialExecutions, RanOver, Repeated, Separator, Skipped, SwfError, SwfJob, SwfReader,
    SwfWriter, Trace,
};
pub use models::{EstimatesError, Model, ModelError, ModelTargets, tsafrir_estimates};
pub use requests::{
    DurationLaw, Offer, OfferRefusal, RequestArrivals, RequestError, RequestFile, RequestFileError,
    RequestFlaw, RequestFormat, RequestModel, RequestRules, RequestSource, RequestSpec,
    RequestStatistics, RequestStream, RequestWriter, RequestsRead, RequestsWanted, TypeShare,
    VmSize,
};
pub use statistics::{Histogram, Moments, Statistics};
pub use stream::{COUNTED_AHEAD, Jobs, Listed, Wanted, WorkloadError};
pub use usage::UsageRule;
pub use workflow::{
    NodeRules, Workflow, WorkflowCommand, WorkflowFormat, WorkflowShape, WorkflowTask,
};
