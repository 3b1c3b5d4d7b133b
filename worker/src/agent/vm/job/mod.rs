//! A parallel job: one tree of processes in its own PID namespace.
//!
//! Its parent only waits, in a lane of its own beside the vCPUs; each of its ranks runs in a slot
//! of its vCPU. How far it should be is what [`dormouse_vm::ideal`] makes of its plan; how far it
//! is, its [`ledger`]'s business; and [`pace`] makes the one follow the other.

mod birth;
mod dump;
mod ledger;
mod meter;
mod moving;
mod pace;
mod ranks;
mod signals;
mod state;

pub(crate) use birth::launch_job;
pub use birth::{JobBirth, JobOrder};
pub(crate) use dump::{dump_and_leave, dump_job};
pub(crate) use meter::charged_ns;
pub use moving::JobDeparture;
pub(crate) use moving::OngoingMove;
pub(crate) use pace::{DueTime, JobPace, OwedTime, PERIOD_US, VcpuQuotas};
pub use ranks::{JobRank, RankTime};
pub(crate) use signals::go_on as resume_ranks;
pub(crate) use state::{JobState, create_groups as create_job_groups};
