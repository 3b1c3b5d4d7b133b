//! Scheduling of rigid parallel jobs on two-tier VMs.
//!
//! The paper is "Scheduling Parallel Jobs Using Migration and Consolidation in the Cloud" (MEASY):
//! every processor holds a foreground VM with the highest CPU priority and a
//! background VM that gets the cycles the foreground leaves. [`BatchScheduler`] is the policy. It
//! leases one VM with all processors of the machine as its vCPUs, each with a seat in both tiers.
//!
//! # Which EASY
//!
//! Programs called EASY disagree by 40 % in the mean wait on one trace, so this is
//! exactly what [`Algorithm::Easy`] does here:
//!
//! - One queue in order of submission (equal times: order of the trace). One *pass*
//!   after all events of an instant; ends of jobs count before submissions.
//! - A pass starts jobs from the head of the queue while they fit. The first that does
//!   not fit is the *head*; it alone has a reservation, made anew in every pass.
//! - *Shadow time*: the earliest expected end of a running job by which enough
//!   processors are free for the head, and not before now. A running job's expected end
//!   is its start plus its estimate; a job that outlives its estimate is not killed and
//!   is expected to end now.
//! - *Extra nodes*: the processors free at the shadow time beyond what the head needs,
//!   counting every job expected to end by then (so that ties have no order).
//! - *Backfill*: the rest of the queue in order, each started if it fits the processors
//!   free now and either its estimate ends at or before the shadow time, or it needs at
//!   most the extra nodes, which it then uses up if it is expected to run past the
//!   shadow time.
//! - Estimates are what the user gave, never the run time, unless the trace has none.
//! - Processors are taken in order of their number.
//!
//! # The two-tier algorithms
//!
//! [`Algorithm::Keasy`] and [`Algorithm::Measy`] make the same passes over waiting *and*
//! background jobs together, in order of submission, and then put waiting jobs into the
//! background, shortest estimate first, all that fit. Where the paper leaves a choice:
//!
//! - A background job's estimate is the whole one, not less its progress (Figure 1: J8
//!   "cannot be backfilled as its original execution time is 4"), and the whole one again once it is
//!   in the foreground ([`ExpectedEnd`] has other readings).
//! - [`Algorithm::Reasy`]: a background job at the head of the queue whose processors are
//!   not all idle stops the first step and gets the reservation of Algorithm 3. Jobs that
//!   may run past its shadow time are placed only on processors that it does not sit on.
//! - A processor with both VMs idle has utilisation 0, so it is the first choice of a
//!   background job; alone on its processor any process runs at full speed.

mod config;
mod explain;
mod parameters;
mod processors;
mod queue;
mod reservation;
mod scheduler;
mod schedulers;

pub use config::{BackgroundFill, Config, ExpectedEnd};
pub use explain::{Note, Noted};
pub use parameters::{BatchSchedulerConfig, UsageKnowledge};
pub use scheduler::{BatchScheduler, MOST_STARTS};
pub use schedulers::{Algorithm, BatchPolicy, OnPromotion};
