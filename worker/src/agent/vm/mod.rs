//! One VM: an [`actor`] with the VM's owner, which alone touches the VM's groups and processes. The owner carries out
//! the effects that [`dormouse_vm::life`] decides on, and tells it their results.
//!
//! A [`task`] of one process is held to what its VM's model computes; the processes of a parallel [`job`] are held to
//! what [`dormouse_vm::ideal`] computes from the plan of their phases. Everything else is the same for both: how they
//! are started, stopped and frozen, and how they end.

mod account;
mod actor;
mod attempt;
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

pub(crate) use account::CpuAccount;
pub(crate) use actor::{VmActor, VmArgs};
pub use clock::CommandStamp;
pub use job::{JobDeparture, JobRank, RankTime};
pub(crate) use job::{create_job_groups, dump_job, place_restored, place_started, resume_ranks};
pub(crate) use message::OwnerMessage;
pub use message::VmCommand;
pub(crate) use resources::VmResources;
