//! Lines of the protocol in both directions; the first is the hello.

use dormouse_cloud::Catalogue;
use dormouse_model::{Bag, CheckpointConfig, Decision, Notice};
use dormouse_units::{Span, Time, TypeName};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The first line that a scheduler reads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HelloLine<'a> {
    /// All that the scheduler is told before the run begins.
    pub hello: &'a Hello,
}

/// A line that a scheduler reads after the first: the events, and the question what is to be done.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ask")]
pub struct ProgramQuestion<'a> {
    /// Present time on the run's clock, in emulated microseconds.
    pub now: Time,
    /// The notices of events since the last line.
    pub notices: &'a [&'a Notice],
    /// Set only while a resumed run repeats its steps: the program's recorded decisions on these notices, which hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<&'a [Decision]>,
}

/// The first line that a scheduler writes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloAnswer {
    /// The program's wishes for the notices that it gets, and the protocol that it speaks.
    pub hello: ProgramGreeting,
}

/// Properties that a scheduler program states at its start.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Wants")]
pub struct ProgramGreeting {
    /// The version of the protocol that the program speaks.
    pub protocol: u32,
    /// The kinds of notices that the program wants to receive; left out: all.
    #[serde(default)]
    pub hears: Option<Vec<String>>,
}

/// A line that a scheduler writes after the first: its answer to the line that it has read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Answer")]
pub struct ProgramAnswer {
    /// The decisions to be carried out, in this order.
    pub decisions: Vec<Decision>,
}

/// Parses a line of a scheduler, which has to be an object: the parser alone would also accept a
/// list of values.
///
/// # Errors
///
/// Why the line is invalid.
pub fn read_line<A: DeserializeOwned>(line: &[u8]) -> Result<A, String> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("it is not a JSON object".to_owned());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// The protocol versions that this program speaks.
pub const PROTOCOL: ProtocolVersions = ProtocolVersions { least: 1, most: 1 };

/// A range of versions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Versions")]
pub struct ProtocolVersions {
    /// The oldest version of the protocol that is spoken.
    pub least: u32,
    /// The newest version of the protocol that is spoken.
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
    /// The bag of tasks; left out where the work is parallel jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bag: Option<Bag>,
    /// The machine for parallel jobs; left out where the work is a bag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// When tasks are checkpointed without a decision of the scheduler, and what a checkpoint costs; left out: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointConfig>,
    /// How long before a preemption the scheduler hears of it, in microseconds of emulated time.
    pub preemption_notice: Span,
    /// The experiment's `[scheduler.parameters]`, as they are written there.
    pub parameters: Map<String, Value>,
}

/// The machine for parallel jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The instance type to launch, on demand and once.
    pub kind: TypeName,
    /// Number of the machine's processors, which are the VM's vCPUs.
    pub processors: u32,
}
