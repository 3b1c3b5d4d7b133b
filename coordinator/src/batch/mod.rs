//! Live runs of parallel jobs: a batch scheduler over real processors.
//!
//! The machine is one worker: its processors are shares of that host's cores, and a job is one
//! tree of processes there. [`run::BatchRun`] turns what happens into what the scheduler hears
//! and what it decides into commands, and is pure; the conductor feeds it, in one order, and
//! makes every step durable before its commands leave. What the scheduler heard and decided is
//! in the log as in that of a run in virtual time; what the machine reported stands beside it.

mod conductor;
mod facts;
mod live;
mod report;
mod run;

pub use facts::{BatchFacts, MoveFact};
pub use live::{BatchConducted, BatchLive, BoundBatch, phases_of};
pub use report::{JobLedger, MachineReport, ProcessUse};
pub use run::BatchStep;

pub(crate) use report::heard;
