//! The planned properties of a simulated worker.

use dormouse_units::{Ppm, RandomStream};
use serde::{Deserialize, Serialize};

use super::{chance::Chance, honesty::Honesty};

/// The planned properties of a worker in a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// The worker's name, which stays the same over restarts.
    pub name: String,
    /// The cores that the worker offers, in thousandths of a core.
    pub millicores: u32,
    /// The memory that the worker offers, in bytes.
    pub memory: u64,
    /// Whether the worker lies, and how.
    pub honesty: Honesty,
    /// Rates at which the worker's machines fail.
    pub rates: Rates,
    /// The random seed of the worker.
    pub seed: u64,
}

/// Rates at which the operations of a machine fail, each as a part of all its operations of that kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Rate at which a VM can't be created.
    pub create: Ppm,
    /// Rate at which a VM can't be frozen, or thawed.
    pub freeze: Ppm,
    /// Rate at which a process does not start.
    pub birth: Ppm,
    /// Rate at which a checkpoint can't be restored.
    pub restore: Ppm,
    /// Rate at which a dump fails and its task runs on.
    pub dump: Ppm,
    /// Rate at which a dump fails and damages its task.
    pub damage: Ppm,
    /// Rate at which a process ends without an answer.
    pub exit: Ppm,
    /// Rate at which a process hangs.
    pub hang: Ppm,
    /// Rate at which a checkpoint in the worker's own store is found damaged.
    pub rot: Ppm,
}

impl WorkerPlan {
    /// An honest worker whose machines never fail.
    #[must_use]
    pub fn sound(name: &str, seed: u64) -> Self {
        Self {
            name: name.to_owned(),
            millicores: 2000,
            memory: 8 << 30,
            honesty: Honesty::Honest,
            rates: Rates::default(),
            seed,
        }
    }

    /// The random stream for one purpose, in a process of the worker that is numbered `entity`.
    pub(super) fn chance(&self, purpose: &str, entity: u64) -> Chance {
        let own = RandomStream::named_stream(self.seed, "worker", &self.name).next_bits();
        Chance::new(RandomStream::new(own, purpose, entity))
    }
}
