//! Account of a run of whatever kind from its steps: what became of every VM and task ([`Record`]) of
//! parallel jobs ([`jobs`]) and of VMs that are requested ([`requests`]), why ([`explain`]), whether what
//! happened keeps the rules ([`Checker`], [`JobsChecker`]), its figures ([`Sample`]), how true a live run was
//! ([`facts`](LiveFacts), [`fidelity`]), and where its twin in virtual time differs ([`twin`]). Pure: a live
//! run, one in virtual time and one read from its log are the same here.

mod batch_service;
mod check;
mod deferred;
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
pub use check::{CapacityChecker, Checker, JobsChecker, RequestsChecker, Violation, check_bag};
pub use evidence::{EarlyEnd, Evidence, ShortOfCheckpoints};
pub use facts::{
    CheckpointCost, HostEvidence, JobFacts, Latency, LiveFacts, MoveFact, Outage, SpotCheck,
};
pub use metric::{BetterSide, METRICS, Metric};
pub use mode::Mode;
pub use outcome::{OutcomeTally, ProgramFailure, WorkOutcome};
pub use record::{
    AttemptEnd, AttemptHistory, Change, CheckpointMark, Closed, Displaced, FallBack, FaultCost,
    FaultHistory, FaultOnHost, Hibernation, HostHistory, Interrupted, JobHistory, Leaving, Record,
    RequestHistory, Spell, SpellEnd, TaskHistory, VmHistory, carried_out, cut_short,
};
pub use refused::Refused;
pub use sample::{RESAMPLED, Sample, Tally, request_figures, series};
pub use taken::{Ending, LeftBehind, Party, Taken, Toll, taken, tolls};
