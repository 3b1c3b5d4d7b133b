//! Burst-HADS: Teylo, Arantes, Sens, Drummond, "Scheduling Bag-of-Tasks in Clouds using Spot and
//! Burstable Virtual Machines", Tables IV and VI and the claims of its section IV.

mod causes;
mod claims;
mod compare;
mod factors;
mod live;
mod make_live;
mod page;
mod paper;
mod plans;
mod plots;
mod readings;
mod run;
mod targets;
mod text;

pub use causes::{Cause, Move, Overall, Verdict};
pub use claims::Claim;
pub use compare::Row;
pub use live::LiveRun;
pub use make_live::MakeLive;
pub use plans::{StoredPlan, StoredPlans, stored_plans};
pub use readings::Reading;
pub use run::{Finished, Request};
pub use targets::{Results, Target};
