//! The sections `[[interruption]]` of experiment files.

use std::collections::BTreeMap;

use dormouse_cloud::{
    AdvisorClass, Bathtub, GompertzMakeham, InterruptionAction, InterruptionScope, Uniform, Weibull,
};
use dormouse_units::{Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When spot VMs are taken away and given back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "model", rename_all = "kebab-case")]
#[schemars(rename = "Interruption", tag = "model")]
pub(crate) enum InterruptionSection {
    /// Hibernations and resumes, each as a Poisson process.
    Poisson(PoissonSection),
    /// Every spot VM is preempted at the end of a lifetime of its own.
    Lifetime(LifetimeSection),
    /// Spot VMs have the lifetimes of a record, in its order.
    Replay(ReplaySection),
    /// Interruptions happen at the listed times.
    Schedule(ScheduleSection),
}

/// Hibernations and resumes, each as a Poisson process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct PoissonSection {
    /// Hibernations expected by the deadline.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) k_hibernate: Option<f64>,
    /// Mean time between hibernations, instead of `k-hibernate`.
    #[schemars(extend("least" = "1us"))]
    pub(crate) hibernate_every: Option<Span>,
    /// Resumes expected by the deadline.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) k_resume: Option<f64>,
    /// Mean time between resumes, instead of `k-resume`.
    #[schemars(extend("least" = "1us"))]
    pub(crate) resume_every: Option<Span>,
    /// What each process hits at once; `type` if not given.
    pub(crate) scope: Option<InterruptionScope>,
}

/// Lifetimes by one law: exponential around a mean, one with more parameters, or as they were recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct LifetimeSection {
    /// Only VMs of this type.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// Mean of exponentially distributed lifetimes.
    #[schemars(extend("least" = "1us"), example = "6h")]
    pub(crate) mean: Option<Span>,
    /// Lifetimes that were seen, one of which each VM has: a list, or a file of seconds, one a row, or of VMs as `dormouse
    /// fit` reads them, of which those that were not preempted are left out.
    pub(crate) recorded: Option<Recorded>,
    /// The bathtub of Google's preemptible VMs, F(t) = a (1 − e^(−t/tau1) + e^((t−b)/tau2)): many young ones
    /// end, few then, and all that are left soon after `b`.
    pub(crate) bathtub: Option<Bathtub>,
    /// F(t) = 1 − e^(−(t/scale)^shape): a rate that falls or grows by a power of the age.
    pub(crate) weibull: Option<Weibull>,
    /// F(t) = 1 − e^(−t/tau1 − e^((t−b)/tau2) + e^(−b/tau2)): a rate that is always there, and one that grows
    /// exponentially with the age.
    pub(crate) gompertz_makeham: Option<GompertzMakeham>,
    /// From one age to another, each as likely.
    pub(crate) uniform: Option<Uniform>,
    /// As often as the provider's spot advisor says of a type: the middle of its band of interruptions in a month, at any age
    /// alike.
    #[schemars(example = "5-10%")]
    pub(crate) advisor_class: Option<AdvisorClass>,
}

/// Spot VMs live as long as those of a record, one after the other as they can be used; after its last row
/// comes its first again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReplaySection {
    /// VMs of this type only.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// A row a VM: `lifetime_s` and `end_event` (`preempted`, or `stop`: it is never taken away), or whatever else `dormouse
    /// fit` reads; or seconds, one a row.
    #[schemars(example = "lifetimes.csv")]
    pub(crate) file: String,
    /// The column of lifetimes, by its heading or its number, where it isn't told by itself.
    pub(crate) lifetime: Option<String>,
    /// The unit of lifetimes, or of times that are numbers: `s`, `m`, `h` or `d`. The column's name says it otherwise.
    #[schemars(example = &"h")]
    pub(crate) unit: Option<String>,
    /// The column that says how a VM ended, and its value where that was a preemption.
    #[schemars(example = "reason=preempted")]
    pub(crate) end: Option<String>,
    /// Only the file's VMs with this `machine_type`.
    pub(crate) machine_type: Option<String>,
}

/// Lifetimes that were seen.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Recorded {
    /// A file of seconds, one a row, or of VMs.
    File(String),
    /// A file, and how it is read.
    Part(RecordedPart),
    /// The lifetimes themselves.
    List(#[schemars(with = "Vec<Span>")] Vec<String>),
}

/// A file of lifetimes that were seen, and how it is read.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RecordedPart {
    /// The file, relative to the experiment's.
    #[schemars(example = "lifetimes.csv")]
    pub(crate) file: String,
    /// The column of lifetimes, by its heading or its number, where it isn't told by itself.
    pub(crate) lifetime: Option<String>,
    /// The unit of lifetimes, or of times that are numbers: `s`, `m`, `h` or `d`. The column's name says it otherwise.
    #[schemars(example = &"h")]
    pub(crate) unit: Option<String>,
    /// The column that says how a VM ended, and its value where that was a preemption.
    #[schemars(example = "reason=preempted")]
    pub(crate) end: Option<String>,
}

/// What happens when: `acts`, a `file` of them, or both.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct ScheduleSection {
    /// In any order.
    pub(crate) acts: Vec<ActSection>,
    /// A file of acts: under a heading such as `time,action,type` a row each, with a `type`, a `zone`, both, or
    /// a `vm`; without any it is of all spot VMs. Times are seconds, spans such as `15m`, or dates.
    /// Or events of EventBridge or operations of Compute Engine, in JSON.
    #[schemars(example = "acts.csv")]
    pub(crate) file: Option<String>,
    /// The date at which the run begins, from which dates in `file` count; where prices have dates it is theirs.
    #[schemars(example = "2024-01-31 12:00:00")]
    pub(crate) begins: Option<String>,
    /// Headings of the file's columns where they are others, such as `{ time = "when" }`.
    pub(crate) columns: BTreeMap<String, String>,
}

/// An action on one VM, or on all VMs of a type, of a zone, or of the experiment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ActSection {
    /// When, from the beginning.
    #[schemars(example = "10m")]
    pub(crate) at: Span,
    /// What the provider does to the VMs.
    pub(crate) action: InterruptionAction,
    /// To all spot VMs of this type; or give `vm`, `zone` or `all`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// To the VM of this number, counted from 0 in the order of their launches; or give `type`.
    pub(crate) vm: Option<u32>,
    /// To all spot VMs of this zone.
    pub(crate) zone: Option<ZoneName>,
    /// To all spot VMs.
    #[serde(default)]
    pub(crate) all: bool,
}
