//! Data types of a run, shared by the policies, the engine, the coordinator and readers of its log.
//!
//! A [`Setup`] says what a run is made of: a [`Bag`] of tasks, parallel jobs ([`Submission`]),
//! requests for VMs ([`Request`]). Each line of its log is a [`Step`]: an [`Event`], the
//! [`Notice`]s that policies heard of it, their [`Decision`]s, and each [`Effect`]. Machines are
//! told [`Command`]s and answer with [`Report`]s.

mod api_call;
mod attempt_end;
mod bag;
mod calendar;
mod checkpoint;
mod checkpoint_store;
mod command;
mod counts;
mod decision;
mod event;
mod fault;
mod host_load;
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
pub use attempt_end::{AttemptEnd, AttemptEnds};
pub use bag::{Bag, Task};
pub use calendar::Calendar;
pub use checkpoint::{
    CheckpointConfig, CheckpointOn, DpMode, Knows, LifetimePlans, OfType, Period, Scheme,
};
pub use checkpoint_store::{BucketUrl, CheckpointStore, Endpoint};
pub use command::{Announcement, Command, StartTask};
pub use counts::{MOST_PROCESSORS, check_count};
pub use decision::{Decision, EndReason, Promotion, StartReason};
pub use event::{BootClock, Event};
pub use fault::{Fault, FaultKind, Felt, Victims};
pub use host_load::HostLoad;
pub use job::{After, Job, Refusal, Space, Submission, UsageInformation};
pub use ledger::{JobAccount, JobLedger, Ledger, ProcessUse};
pub use metadata::{MetadataSettings, MetadataTimes, MetadataTokens};
pub use noise::Noise;
pub use notice::Notice;
pub use own_end::{KeptFile, OwnEnd, ProgramExit};
pub use planned::{PlannedTask, PlannedVm};
pub use precedence::{Followers, PrecedenceError, check_precedence};
pub use report::{MAX_REPORT_DELAY, Report};
pub use request::Request;
pub use setup::{MACHINE, ParallelJobs, Setup};
pub use spot_check::CheckFinding;
pub use step::{Effect, Step, VmEnd};
pub use tenants::{TenantNumbers, Tenants, Work};
