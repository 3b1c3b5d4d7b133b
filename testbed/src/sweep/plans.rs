//! Plans already made: cells that differ only in what happens later share them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Plan, PlanError};

use crate::experiment::Experiment;

type Made = Arc<OnceLock<Result<Plan, PlanError>>>;

/// Every plan made so far. A thread that wants one that is being made waits for it.
#[derive(Debug, Default)]
pub struct Plans {
    made: Mutex<HashMap<blake3::Hash, Made>>,
}

impl Plans {
    /// The plan of an experiment; `None` where its scheduler makes none.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn of(&self, experiment: &Experiment) -> Result<Option<Plan>, PlanError> {
        let Some(config) = &experiment.scheduler else { return Ok(None) };
        if let Some(given) = &config.plan {
            return Ok(Some(given.clone()));
        }
        if config.name == BagSchedulerName::Fifo {
            return Ok(None);
        }
        let made = {
            let mut all = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(key(config, experiment)).or_default().clone()
        };
        let setup = &experiment.setup;
        made.get_or_init(|| {
            dormouse_policies::plan(
                config,
                &setup.catalogue,
                &setup.bag,
                &setup.checkpoint,
                setup.seed,
            )
        })
        .clone()
        .map(Some)
    }
}

/// A digest of all that a plan depends on.
fn key(config: &BagSchedulerConfig, experiment: &Experiment) -> blake3::Hash {
    let setup = &experiment.setup;
    // What only matters once the run is under way.
    let standard = BagSchedulerConfig::default();
    let scheduler = BagSchedulerConfig {
        allocation_cycle: standard.allocation_cycle,
        steal: standard.steal,
        burst_on: standard.burst_on,
        migrate: standard.migrate,
        ..config.clone()
    };
    let parts =
        serde_json::json!([scheduler, setup.catalogue, setup.bag, setup.checkpoint, setup.seed]);
    blake3::hash(parts.to_string().as_bytes())
}
