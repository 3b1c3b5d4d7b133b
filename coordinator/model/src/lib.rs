//! Data types of a run, shared by the policies, the engine, the coordinator and readers of its log.
//!
//! A [`Setup`] describes a run's work: a [`Bag`] of tasks, parallel jobs ([`Submission`]), requests for VMs
//! ([`VmRequest`]). Each line of the log is a [`Step`]: an [`Event`], the [`Notice`]s of the event that
//! policies get, the policies' [`Decision`]s, and each [`Effect`]. Machines get [`Command`]s and answer
//! with [`Report`]s.

mod api_call;
mod bag;
mod calendar;
mod checkpoint;
mod checkpoint_store;
mod command;
mod counts;
mod decision;
mod event;
mod fault;
mod job;
mod ledger;
mod metadata;
mod noise;
mod notice;
mod own_end;
mod planned;
mod precedence;
mod report;
mod request;
mod setup;
mod spot_check;
mod step;
mod tenants;

pub use api_call::ApiCall;
pub use bag::{Bag, Task};
pub use calendar::Calendar;
pub use checkpoint::{
    AdaptKnowledge, CheckpointConfig, CheckpointOn, CheckpointScheme, DpMode, LifetimePlans,
    OfType, PeriodUnit,
};
pub use checkpoint_store::{BucketUrl, CheckpointStore, ServerAddress};
pub use command::{Command, ProviderAnnouncement, TaskStart};
pub use counts::{MOST_PROCESSORS, check_count};
pub use decision::{Decision, EndReason, PromotionMethod, StartReason};
pub use event::{BootClock, Event};
pub use fault::{FaultKind, FaultState, FaultVictims, HostFault};
pub use job::{Job, JobCapacity, JobPredecessors, JobRefusal, Submission, UsageInformation};
pub use ledger::LoadReport;
pub use ledger::{AttemptLedger, JobStartAccount, JobStartLedger, ProcessCpuUse};
pub use metadata::{MetadataSettings, MetadataTimes, MetadataTokens};
pub use noise::Noise;
pub use notice::Notice;
pub use own_end::{AttemptEnds, ProgramAttemptEnd};
pub use own_end::{KeptFile, ProgramEnd, ProgramExit};
pub use planned::{PlannedTask, PlannedVm};
pub use precedence::{PrecedenceError, TaskFollowers, check_precedence};
pub use report::{MAX_REPORT_DELAY, Report};
pub use request::VmRequest;
pub use setup::{MACHINE, ParallelJobs, Setup};
pub use spot_check::CheckFinding;
pub use step::{Effect, Step, VmEnd};
pub use tenants::{TenantNumbers, TenantWork, Tenants};
