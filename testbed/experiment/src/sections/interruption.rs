//! The sections `[[interruption]]` of experiment files.

use std::collections::BTreeMap;

use dormouse_cloud::{
    AdvisorClass, Bathtub, GompertzMakeham, InterruptionAction, InterruptionScope, Uniform, Weibull,
};
use dormouse_units::{Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rule for the interruptions of spot VMs, and for their resumes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "model", rename_all = "kebab-case")]
#[schemars(rename = "Interruption", tag = "model")]
pub(crate) enum InterruptionSection {
    /// Hibernations and resumes of spot VMs, each as a Poisson process.
    Poisson(PoissonSection),
    /// Every spot VM is preempted at the end of a lifetime of its own.
    Lifetime(LifetimeSection),
    /// Spot VMs have the lifetimes of a record, in the order of the record.
    Replay(ReplaySection),
    /// Interruptions come at random, at a rate that depends on the hour of the day and the day of the week.
    Weekly(WeeklySection),
    /// Interruptions happen at the listed times.
    Schedule(ScheduleSection),
}

/// Hibernations and resumes of spot VMs, each as a Poisson process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct PoissonSection {
    /// Expected number of hibernations until the deadline; if neither this nor `hibernate-every` is given, no VM
    /// hibernates.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) k_hibernate: Option<f64>,
    /// Mean time between hibernations, instead of `k-hibernate`.
    #[schemars(extend("least" = "1us"))]
    pub(crate) hibernate_every: Option<Span>,
    /// Expected number of resumes until the deadline; if neither this nor `resume-every` is given, no hibernated VM
    /// resumes.
    #[schemars(range(min = 0.0, max = 1e6))]
    pub(crate) k_resume: Option<f64>,
    /// Mean time between resumes, instead of `k-resume`.
    #[schemars(extend("least" = "1us"))]
    pub(crate) resume_every: Option<Span>,
    /// The VMs that one event of a process hits; all spot VMs of a type (`type`) if not given.
    pub(crate) scope: Option<InterruptionScope>,
}

/// A Poisson process of interruptions whose rate changes with the hour of the day and the day of the week. The dates are those
/// of the run: of its prices, or from `begins` on.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct WeeklySection {
    /// Instance type of the VMs that are interrupted; all types if not given.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// Expected number of interruptions in each hour of a day, from 0:00 on: 24 numbers, each from 0 to 1,000.
    #[schemars(example = serde_json::json!([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1]))]
    pub(crate) hours: Vec<f64>,
    /// Factors of the numbers in `hours` on each day of the week: 7 numbers from Monday on, or 2, for working days and for
    /// weekends; 1 if not given.
    #[schemars(example = serde_json::json!([1.0, 0.4]))]
    pub(crate) days: Vec<f64>,
    /// Hours by which the clock of `hours` and `days` is ahead of UTC, such as -5 or 5.5.
    #[schemars(range(min = -14.0, max = 14.0))]
    pub(crate) utc_offset: f64,
    /// What happens to the VMs: `preempt`, which is the default, or `hibernate`.
    pub(crate) action: Option<InterruptionAction>,
    /// The VMs that one event hits; `vm` if not given, so that the rates are those of each VM by itself.
    pub(crate) scope: Option<InterruptionScope>,
    /// Date at which the run begins, in UTC unless it names another time zone; if prices have dates, the run begins at
    /// theirs.
    #[schemars(example = "2024-01-31 12:00:00")]
    pub(crate) begins: Option<String>,
}

/// Lifetimes of spot VMs, drawn from one law: exponential with a given mean, a law with more parameters, or recorded
/// lifetimes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct LifetimeSection {
    /// Instance type of the VMs that the law applies to; all types if not given.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// Mean of exponentially distributed lifetimes.
    #[schemars(extend("least" = "1us"), example = "6h")]
    pub(crate) mean: Option<Span>,
    /// Recorded lifetimes, of which each VM draws one: a list, a file with one number of seconds per row, or a file
    /// of VMs as `dormouse fit` reads it. VMs in the file that were not preempted are left out.
    pub(crate) recorded: Option<Recorded>,
    /// The bathtub law of Google's preemptible VMs, F(t) = a (1 − e^(−t/tau1) + e^((t−b)/tau2)): many VMs end young,
    /// few at middle age, and all others soon after `b`.
    pub(crate) bathtub: Option<Bathtub>,
    /// Weibull's law, F(t) = 1 − e^(−(t/scale)^shape): the rate of ends falls or rises as a power of a VM's age.
    pub(crate) weibull: Option<Weibull>,
    /// The law of Gompertz and Makeham, F(t) = 1 − e^(−t/tau1 − e^((t−b)/tau2) + e^(−b/tau2)): a constant rate of
    /// ends, plus one that rises exponentially with a VM's age.
    pub(crate) gompertz_makeham: Option<GompertzMakeham>,
    /// Lifetimes uniformly distributed between two ages.
    pub(crate) uniform: Option<Uniform>,
    /// Frequency of interruptions by the provider's spot advisor: the middle of the type's band for a month, at a
    /// rate that does not depend on a VM's age.
    #[schemars(example = "5-10%")]
    pub(crate) advisor_class: Option<AdvisorClass>,
}

/// Spot VMs have the lifetimes of a record, in its order: each VM gets the next lifetime that applies to it. After
/// the last row, the record starts again from the first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReplaySection {
    /// Instance type of the VMs that the record applies to; all types if not given.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// Path of the record. Each row is a VM with `lifetime_s` and `end_event` (`preempted`, or `stop` for a VM that
    /// is never interrupted), another format that `dormouse fit` reads, or a number of seconds.
    #[schemars(example = "lifetimes.csv")]
    pub(crate) file: String,
    /// Column of lifetimes, by its heading or number, where it is not recognised automatically.
    pub(crate) lifetime: Option<String>,
    /// Unit of lifetimes, or of times that are numbers: `s`, `m`, `h` or `d`. If not given, the column's name
    /// decides.
    #[schemars(example = &"h")]
    pub(crate) unit: Option<String>,
    /// Column for the kind of a VM's end, and its value for a preemption.
    #[schemars(example = "reason=preempted")]
    pub(crate) end: Option<String>,
    /// Only VMs of the file with this `machine_type` are used.
    pub(crate) machine_type: Option<String>,
}

/// Recorded lifetimes of spot VMs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Recorded {
    /// Path of a file with one number of seconds per row, or with VMs.
    File(String),
    /// A file of recorded lifetimes, with settings for reading it.
    Part(RecordedPart),
    /// The recorded lifetimes themselves.
    List(#[schemars(with = "Vec<Span>")] Vec<String>),
}

/// A file of recorded lifetimes, with settings for reading it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RecordedPart {
    /// Path of the file, relative to the experiment file.
    #[schemars(example = "lifetimes.csv")]
    pub(crate) file: String,
    /// Column of lifetimes, by its heading or number, where it is not recognised automatically.
    pub(crate) lifetime: Option<String>,
    /// Unit of lifetimes, or of times that are numbers: `s`, `m`, `h` or `d`. If not given, the column's name
    /// decides.
    #[schemars(example = &"h")]
    pub(crate) unit: Option<String>,
    /// Column for the kind of a VM's end, and its value for a preemption.
    #[schemars(example = "reason=preempted")]
    pub(crate) end: Option<String>,
}

/// Interruptions at given times: a list `acts`, a `file`, or both.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct ScheduleSection {
    /// The provider's acts, in any order.
    pub(crate) acts: Vec<ActSection>,
    /// Path of a file of acts. Each row is an act under a heading such as `time,action,type`, with a `type`, a
    /// `zone`, both, or a `vm`; without these it hits all spot VMs. Times are seconds, spans such as `15m`, or dates.
    /// JSON of EventBridge's events or Compute Engine's operations is read as well.
    #[schemars(example = "acts.csv")]
    pub(crate) file: Option<String>,
    /// Date at which the run begins, from which dates in `file` are counted; if prices have dates, the run begins at
    /// theirs.
    #[schemars(example = "2024-01-31 12:00:00")]
    pub(crate) begins: Option<String>,
    /// Headings of the file's columns where they differ from the usual names, such as `{ time = "when" }`.
    pub(crate) columns: BTreeMap<String, String>,
}

/// An action on one VM, or on all VMs of a type, of a zone, or of the experiment.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ActSection {
    /// Time of the act, counted from the beginning of the run.
    #[schemars(example = "10m")]
    pub(crate) at: Span,
    /// The act of the provider.
    pub(crate) action: InterruptionAction,
    /// The act hits all spot VMs of this type. Alternatives are `vm`, `zone` and `all`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TypeName>,
    /// The act hits the VM with this number, counted from 0 in the order of launches. The alternative is `type`.
    pub(crate) vm: Option<u32>,
    /// The act hits all spot VMs of this zone.
    pub(crate) zone: Option<ZoneName>,
    /// True if the act hits all spot VMs.
    #[serde(default)]
    pub(crate) all: bool,
}
