//! Account of a run from its steps: what became of every VM and task ([`RunRecord`]), of parallel jobs
//! ([`jobs`]) and of requested VMs ([`requests`]), why ([`explain`]), broken rules ([`Checker`],
//! [`JobsChecker`]), its figures ([`RunSample`]), the measurements ([`facts`](LiveFacts)) and the
//! [`fidelity`] of a live run, and the differences to its [`twin`] in virtual time. Everything here
//! is pure: a live run, a virtual one and one read from its log are treated the same.

mod batch_service;
mod check;
mod evidence;
pub mod explain;
mod facts;
pub mod fidelity;
pub mod happening;
mod in_seconds;
pub mod jobs;
mod metric;
mod mode;
pub mod outcome;
mod record;
mod refused;
pub mod requests;
mod sample;
mod taken;
pub mod twin;
mod words;

pub use batch_service::ServiceTally;
pub use check::{CapacityChecker, Checker, JobsChecker, RequestsChecker, RuleViolation, check_bag};
pub use evidence::{CheckpointShortfall, EarlyEnd, Evidence};
pub use facts::{
    CheckpointCost, CommandLatency, CoordinatorOutage, HostEvidence, JobFacts, JobMove, LiveFacts,
    SpotCheck,
};
pub use metric::{BetterSide, METRICS, RunFigure};
pub use mode::RunMode;
pub use outcome::{OutcomeTally, ProgramFailure, WorkOutcome};
pub use record::{
    AttemptEnd, AttemptHistory, CheckpointMark, ClosedHistories, FaultCost, FaultHistory,
    FaultOnHost, HostHistory, JobHistory, JobSpell, LeaveReason, ProviderAct, RecordChange,
    RequestHistory, RestoreFallback, RunRecord, SpellEnd, TaskHistory, VmDisplacement,
    VmHibernation, VmHistory, carried_out, cut_short,
};
pub use refused::TableError;
pub use sample::{RESAMPLED, RunSample, RunTally, request_figures, series};
pub use taken::{DisplacedTask, DisplacementEnd, TakenVm, TenantToll, VmTenant, taken, tolls};
