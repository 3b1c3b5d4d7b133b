//! Burst-HADS: Teylo, Arantes, Sens, Drummond, "Scheduling Bag-of-Tasks in Clouds using Spot and
//! Burstable Virtual Machines", Tables IV and VI and the claims of its section IV; and the plans
//! that its authors stored.

mod plans;

pub use plans::{StoredPlan, StoredPlans, stored_plans};

/// Data file of this paper: its experiments, printed values and claims.
pub(super) const DATA: &str = include_str!("paper.toml");
