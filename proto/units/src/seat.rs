//! Seats: where on a VM a task runs, and how.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cpus, VmId};

/// How a task runs on a burstable VM; elsewhere always `burst`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The task runs on a whole vCPU, which spends CPU credits.
    #[default]
    Burst,
    /// The task runs on the baseline share of a vCPU, so that the VM earns CPU credits.
    Baseline,
}

/// One of a vCPU's two slots (two-tier VMs, MEASY section 2).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// The slot of a vCPU with the highest CPU priority.
    #[default]
    Foreground,
    /// The slot of a vCPU that gets the CPU cycles that the foreground slot leaves.
    Background,
}

impl Tier {
    /// Whether the tier is the foreground.
    #[must_use]
    pub const fn is_foreground(&self) -> bool {
        matches!(self, Self::Foreground)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreground => "foreground",
            Self::Background => "background",
        })
    }
}

/// The seats of a task: one slot of one tier on a vCPU of a VM for each of its processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seats {
    /// The VM that has the seats.
    pub vm: VmId,
    /// The tier of all the seats.
    #[serde(default, skip_serializing_if = "Tier::is_foreground")]
    pub tier: Tier,
    /// vCPUs of the seats. Empty in a decision about a task of one process: the first free vCPU.
    #[serde(default, skip_serializing_if = "is_none_given")]
    pub cpus: Cpus,
}

impl Seats {
    /// A seat for one process on the first free vCPU of a VM, in the foreground.
    #[must_use]
    pub fn first_free(vm: VmId) -> Self {
        Self { vm, tier: Tier::Foreground, cpus: Cpus::default() }
    }
}

fn is_none_given(cpus: &[u32]) -> bool {
    cpus.is_empty()
}
