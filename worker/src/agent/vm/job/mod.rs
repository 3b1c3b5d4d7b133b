//! A parallel job: one tree of processes in its own PID namespace.
//!
//! The job's parent only waits, in a lane of its own beside the vCPUs; each rank runs in a slot of its vCPU.
//! [`dormouse_vm::ideal`] computes from the job's plan how far the job should be, the [`ledger`] records how far it is,
//! and [`pace`] makes the job follow the plan.

mod birth;
mod dump;
mod ledger;
mod meter;
mod moving;
mod pace;
mod ranks;
mod signals;
mod state;

pub(crate) use birth::{place_restored, place_started};
pub(crate) use dump::dump_job;
pub(crate) use meter::charged_ns;
pub use moving::JobDeparture;
pub(crate) use moving::OngoingMove;
pub(crate) use pace::{DueTime, JobPace, OwedTime, PERIOD_US, VcpuQuotas};
pub use ranks::{JobRank, RankTime};
pub(crate) use signals::go_on as resume_ranks;
pub(crate) use state::{JobState, create_groups as create_job_groups};
