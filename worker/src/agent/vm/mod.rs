//! One VM: an [`actor`] and the owner in it, who alone touches its groups and processes. It carries out what
//! [`dormouse_vm::life`] decides, which hears from it what came of that.
//!
//! A [`task`] of one process is held to what the model of its VM makes of it, the processes of a
//! parallel [`job`] to what [`dormouse_vm::ideal`] makes of the plan of their phases. All else is
//! the same for both: how they are started, stopped and frozen, and how they end.

mod account;
mod actor;
mod attempt;
mod birth;
mod clock;
mod effect_queue;
mod job;
mod lane;
mod last_save;
mod liveness;
mod message;
mod metadata;
mod owner;
mod resources;
mod task;

pub(crate) use actor::{VmActor, VmArgs};
pub use clock::CommandStamp;
pub use job::{JobBirth, JobDeparture, JobOrder, JobRank, RankTime};
pub(crate) use job::{create_job_groups, dump_and_leave, dump_job, launch_job, resume_ranks};
pub(crate) use message::OwnerMessage;
pub use message::VmCommand;
pub(crate) use resources::VmResources;
