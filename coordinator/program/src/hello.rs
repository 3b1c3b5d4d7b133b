//! The first line that a scheduler is given.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig};
use dormouse_units::{Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The protocol versions that this program speaks.
pub const PROTOCOL: ProtocolVersions = ProtocolVersions { least: 1, most: 1 };

/// A range of versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Versions")]
pub struct ProtocolVersions {
    /// The oldest version.
    pub least: u32,
    /// The newest version.
    pub most: u32,
}

/// All that a scheduler knows before the run begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// The versions of the protocol that can be spoken; the program chooses one.
    pub protocol: ProtocolVersions,
    /// The version of this program.
    pub dormouse: String,
    /// The name of the experiment.
    pub experiment: String,
    /// `virtual` or `live`. A live run is played in virtual time once before, with another process
    /// of the program.
    #[schemars(extend("enum" = ["virtual", "live"]))]
    pub mode: String,
    /// The seed of all chance in the run.
    pub seed: u64,
    /// The work to be scheduled: `bag` or `jobs`.
    #[schemars(extend("enum" = ["bag", "jobs"]))]
    pub work: String,
    /// The instance types that the provider sells, and how long VMs take to boot and to hibernate,
    /// in microseconds of emulated time.
    pub catalogue: Catalogue,
    /// The bag of tasks, where that is the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bag: Option<Bag>,
    /// The machine for parallel jobs, where these are the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// When tasks are checkpointed without being told to, and what a checkpoint costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// How long before a preemption the scheduler hears of it, in microseconds of emulated time.
    pub preemption_notice: Span,
    /// The experiment's `[scheduler.parameters]` as they stand there.
    pub parameters: Map<String, Value>,
}

/// The machine for parallel jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The instance type to launch, on demand and once.
    pub kind: TypeName,
    /// Number of its processors, which are the VM's vCPUs.
    pub processors: u32,
}
