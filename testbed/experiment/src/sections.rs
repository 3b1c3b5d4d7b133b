//! Sections of an experiment file as written: keys, units, defaults.
//!
//! The doc comments here become the JSON schema and the reference. Rules across keys are checked
//! where a section is resolved into a part of an [`Experiment`](super::Experiment). Domain types
//! that are written as they are stored (the parameters of schedulers, `[live]`) are used directly.

mod checkpoint;
mod cloud;
mod fault;
mod interruption;
mod own;
mod workload;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use dormouse_policies::batch::{Algorithm, BatchSchedulerConfig};
use dormouse_policies::program::ProgramConfig;
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName};

use super::Live;

pub(crate) use checkpoint::{CheckpointSection, Policy};
pub(crate) use cloud::{
    AccountVcpus, AvailabilityPart, AvailabilitySection, BurstableSection, CloudSection,
    HostSection, LeadSection, LimitsSection, PricesPart, PricesSection, RebalanceSection,
    StoppedDiskSection, TypePricesSection, TypeSection,
};
pub(crate) use fault::{FaultName, FaultSection};
pub(crate) use interruption::{
    ActSection, InterruptionSection, LifetimeSection, PoissonSection, Recorded, ReplaySection,
    ScheduleSection, WeeklySection,
};
pub(crate) use own::{ReferenceSection, VerifySection};
pub(crate) use workload::{
    BagSection, ModelSection, NoiseSection, Part, RequestsSection, Runtime, SeveralCores,
    SharingSection, TaskSection, WorkloadSection,
};

/// An experiment: the provider's offer and its interruptions, the work, the scheduler of the work, and settings of
/// live runs.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(title = "A Dormouse experiment")]
#[expect(dead_code, reason = "each section is read by itself: this says what a file may hold")]
pub(crate) struct File {
    /// Name of the experiment, which becomes part of the name of its runs' folders: letters, digits, `-`, `_` and `.`.
    #[schemars(example = "my-experiment")]
    name: String,
    /// One sentence that describes the experiment, for people.
    #[serde(default)]
    description: String,
    /// Random seed: a different seed gives a different run.
    #[serde(default = "first_seed")]
    seed: u64,
    /// What the provider offers, and its rules for launches, prices and bills.
    cloud: Option<CloudSection>,
    /// Interruptions of spot VMs, and when they end; the interruptions of several sections add up.
    #[serde(default)]
    interruption: Vec<InterruptionSection>,
    /// Faults of the network and the hosts that are injected into a live run.
    #[serde(default)]
    fault: Vec<FaultSection>,
    /// The work that is to be run.
    workload: Option<WorkloadSection>,
    /// The scheduler, which decides what runs where and when.
    scheduler: Option<SchedulerSection>,
    /// Rule for the checkpoints of tasks or jobs, and their cost.
    checkpoint: Option<CheckpointSection>,
    /// How two VMs of parallel jobs share a processor in a virtual run; keys that are not given have the values of the
    /// MEASY paper.
    sharing: Option<SharingSection>,
    /// How the experiment is run on real processes.
    live: Option<Live>,
    /// Tenants that share the provider. Each has a workload of its own and a scheduler for it: a bag of tasks,
    /// parallel jobs, or requests for VMs, which need no scheduler.
    #[serde(default)]
    tenant: Vec<TenantSection>,
}

const fn first_seed() -> u64 {
    1
}

/// A tenant, who shares the provider with other tenants.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[expect(dead_code, reason = "as above")]
pub(crate) struct TenantSection {
    /// The work of the tenant.
    workload: WorkloadSection,
    /// The scheduler of the tenant's work.
    scheduler: Option<SchedulerSection>,
    /// Rule for the checkpoints of the tenant's tasks or jobs, and their cost.
    checkpoint: Option<CheckpointSection>,
    /// How two VMs of the tenant's parallel jobs share a processor in a virtual run; keys that are not given have the
    /// values of the MEASY paper.
    sharing: Option<SharingSection>,
}

/// The name of a scheduler, with the parameters of that scheduler.
pub(crate) struct SchedulerSection;

impl JsonSchema for SchedulerSection {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scheduler".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut all = Vec::new();
        for name in BagSchedulerName::ALL {
            let mut own = properties(&name.parameters().schema(generator));
            own.insert("preset".to_owned(), preset());
            all.push(one::<BagSchedulerConfig>(generator, name.as_str(), name.about(), own));
        }
        for name in Algorithm::ALL {
            all.push(one::<BatchSchedulerConfig>(generator, name.name(), name.about(), Map::new()));
        }
        all.push(program(generator));
        json_schema!({ "oneOf": all })
    }
}

/// The schema of the table of a scheduler program, which may schedule any work: the program's own keys, and those for
/// jobs.
fn program(generator: &mut SchemaGenerator) -> Value {
    let mut own = properties(&ProgramConfig::json_schema(generator));
    let of_jobs = properties(&BatchSchedulerConfig::json_schema(generator));
    let of_both = ["migration-cost", "usage-information"];
    own.extend(of_jobs.into_iter().filter(|(key, _)| of_both.contains(&key.as_str())));
    let name = serde_json::json!({ "type": "string", "const": BagSchedulerName::Program.as_str() });
    let mut known = Map::from_iter([("name".to_owned(), name)]);
    known.extend(own);
    serde_json::json!({
        "description": BagSchedulerName::Program.about(),
        "type": "object",
        "additionalProperties": false,
        "properties": known,
        "required": ["name"],
    })
}

/// The schema of a scheduler's table: the keys of the parameters `P`, and the scheduler's further keys.
fn one<P: JsonSchema>(
    generator: &mut SchemaGenerator,
    name: &str,
    about: &str,
    own: Map<String, Value>,
) -> Value {
    let mut schema = P::json_schema(generator).to_value();
    if let Some(known) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        known.insert("name".to_owned(), serde_json::json!({ "type": "string", "const": name }));
        known.extend(own);
    }
    schema["description"] = about.into();
    schema["required"] = serde_json::json!(["name"]);
    schema
}

/// Properties of a table with this schema.
pub(crate) fn properties(schema: &Schema) -> Map<String, Value> {
    schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The schema of the key `preset`, which is not a parameter of the scheduler: it names a set of values for parameters
/// that are not given.
fn preset() -> Value {
    serde_json::json!({
        "description": "Where the values of parameters come from that are not given.",
        "default": "paper",
        "oneOf": [
            { "const": "paper", "description": "The text of the Burst-HADS paper, and our choices where it gives no value." },
            { "const": "artifact",
              "description": "As `paper`, but the rules of the authors' published code where they differ from the text." },
        ],
    })
}
