//! Parameters of the batch service.

use dormouse_cloud::Market;
use dormouse_units::{Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ReusePolicy;

/// What can be set about the batch service, and nothing else has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct ServiceConfig {
    /// VMs that a job runs on together: so many tasks of the bag in a row are one job, each what it does on
    /// one VM.
    #[schemars(range(min = 1, max = 100_000))]
    pub vms_per_job: u32,
    /// Most VMs at a time.
    #[schemars(range(min = 1, max = 100_000))]
    pub vms: u32,
    /// Their type; where it is not given, the cheapest on which every task can run.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// How they are bought.
    pub market: Market,
    /// When a job goes to a VM that has run others.
    pub reuse: ReusePolicy,
    /// How long a VM that is idle is kept.
    pub spare: Span,
    /// How long a job is expected to take before one has ended; where it is not given, VMs that are there
    /// are reused until then, whatever their age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("least" = "1us"), example = "14m")]
    pub first_estimate: Option<Span>,
    /// How often a job may lose a VM before it is given up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_preemptions: u32,
    /// Law of lifetimes that the scheduler assumes for VMs, written like an [[interruption]] of model "lifetime"; if
    /// not given, the law by which they really live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<Map<String, Value>>,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            vms_per_job: 1,
            vms: 32,
            kind: None,
            market: Market::Spot,
            reuse: ReusePolicy::default(),
            spare: Span::from_secs(3_600),
            first_estimate: None,
            max_preemptions: 50,
            lifetimes: None,
        }
    }
}
