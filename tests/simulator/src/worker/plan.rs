//! A simulated worker as it is drawn in advance.

use dormouse_units::{Ppm, RandomStream};
use serde::{Deserialize, Serialize};

use super::{chance::Chance, honesty::Honesty};

/// A worker of a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerPlan {
    /// The worker's name, which it keeps over its restarts.
    pub name: String,
    /// The cores that it offers, in thousandths.
    pub millicores: u32,
    /// The memory that it offers, in bytes.
    pub memory: u64,
    /// Whether it tells the truth.
    pub honesty: Honesty,
    /// Rates at which its machines fail.
    pub rates: Rates,
    /// The seed of all its chance.
    pub seed: u64,
}

/// Rates at which a machine fails in what it does, each as a part of all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// A VM can't be made.
    pub create: Ppm,
    /// A VM can't be frozen, or thawed.
    pub freeze: Ppm,
    /// A process does not come to life.
    pub birth: Ppm,
    /// A checkpoint can't be restored.
    pub restore: Ppm,
    /// A dump fails, and its task runs on.
    pub dump: Ppm,
    /// A dump fails, and its task is damaged.
    pub damage: Ppm,
    /// A process ends without an answer.
    pub exit: Ppm,
    /// A process hangs.
    pub hang: Ppm,
    /// A checkpoint in the worker's own store turns out damaged.
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

    /// The chance of one purpose, in a process of the worker that begins with this number of draws.
    pub(super) fn chance(&self, purpose: &str, entity: u64) -> Chance {
        let own = RandomStream::named_stream(self.seed, "worker", &self.name).next_bits();
        Chance::new(RandomStream::new(own, purpose, entity))
    }
}
