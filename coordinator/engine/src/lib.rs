//! One run as a pure state machine.
//!
//! [`Run`] owns the provider and the scheduler and is fed one ordered stream of [`Event`]s, each with its time. Every
//! event gives one [`Step`], with the notices to schedulers, their decisions and the effects, and gives [`Command`]s to
//! the machines. Virtual time, live actors and replay differ only in where the events come from.

mod answers;
mod checkpoint_state;
mod counts;
mod digest;
pub mod drive;
mod images;
pub mod jobs;
mod refused_launches;
mod requests;
mod run;
mod seating;
mod supplies;
mod surpluses;
mod tasks;
mod tenants;
mod tenants_view;
mod timers;
mod vm_record;
mod workflow;

pub use counts::RunCounts;
pub use digest::DecisionDigest;
pub use run::{Run, TenantView};
pub use tasks::{TaskRecord, TaskState, TaskTable};
pub use tenants_view::{tenants_part, tenants_view};
pub use vm_record::VmUse;
