//! Parameters of the batch service.

use dormouse_cloud::Market;
use dormouse_units::{Span, TypeName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ReusePolicy;

/// Settings that only the batch service has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct ServiceConfig {
    /// Number of VMs that a job runs on together, with one task of the bag on each: this many consecutive tasks of the bag make one
    /// job.
    #[schemars(range(min = 1, max = 100_000))]
    pub vms_per_job: u32,
    /// Greatest number of VMs at a time.
    #[schemars(range(min = 1, max = 100_000))]
    pub vms: u32,
    /// Instance type of the VMs; if it is not given, the cheapest on which every task can run.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// Market in which the VMs are bought.
    pub market: Market,
    /// Rule by which a job takes an idle VM that has run other jobs, or a new VM.
    pub reuse: ReusePolicy,
    /// How long an idle VM is kept.
    pub spare: Span,
    /// Run time that is expected of a job before the first job has ended; if it is not given, existing VMs are reused until
    /// then, whatever their age.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("least" = "1us"), example = "14m")]
    pub first_estimate: Option<Span>,
    /// Number of lost VMs after which a job is given up.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_preemptions: u32,
    /// Law of lifetimes that the scheduler assumes for VMs, written like an [[interruption]] of model "lifetime"; if not given, the
    /// law by which VMs are really preempted.
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
