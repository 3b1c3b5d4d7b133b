//! The sections `[[fault]]` of experiment files.

use dormouse_units::{Bytes, Ppm, Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::Deserialize;

/// A fault that is injected into a live run: on the network between workers and their coordinator, or on a worker's
/// host. Virtual runs have no such network or hosts, and ignore faults.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Fault")]
pub(crate) struct FaultSection {
    /// Time at which the fault begins, counted from the beginning of the run.
    #[schemars(example = "10m")]
    pub(crate) at: Span,
    /// Duration of the fault; not given for a kill.
    #[schemars(extend("least" = "1us"), example = "2m")]
    pub(crate) lasts: Option<Span>,
    /// Kind of the fault.
    pub(crate) kind: FaultName,
    /// For `delay`: additional time of all data in each direction. For `slow-criu`: additional time of each dump and
    /// restore of CRIU. Both are in real time, like `live.lost-after`.
    #[schemars(extend("least" = "1us"), example = "50ms")]
    pub(crate) by: Option<Span>,
    /// For `loss`: share of the network segments that is lost.
    #[schemars(range(min = 0.000_001, max = 0.9))]
    pub(crate) part: Option<Ppm>,
    /// For `rate`: number of bytes that can pass in a second of real time, in each direction.
    #[schemars(example = "1 MiB")]
    pub(crate) per_second: Option<Bytes>,
    /// Workers that the fault hits, by name or by number in the order in which they joined, such as `host1`; a `*`
    /// stands for any letters. Alternatives are `rack`, `type`, `zone` and `all`.
    #[serde(default)]
    #[schemars(example = &["local-1"])]
    pub(crate) workers: Vec<String>,
    /// Rack, one of `live.racks`, whose workers the fault hits.
    pub(crate) rack: Option<String>,
    /// The fault hits the hosts that have a VM of this type when it begins.
    #[serde(rename = "type")]
    pub(crate) kind_of_vm: Option<TypeName>,
    /// The fault hits the hosts that have a VM of this zone when it begins.
    pub(crate) zone: Option<ZoneName>,
    /// True if the fault hits all hosts.
    #[serde(default)]
    pub(crate) all: bool,
}

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultName {
    /// Nothing passes between the worker and the coordinator.
    Partition,
    /// All data between the worker and the coordinator is delayed.
    Delay,
    /// A part of the segments between the worker and the coordinator is lost and sent again.
    Loss,
    /// The rate of data between the worker and the coordinator is limited.
    Rate,
    /// The worker's process is killed with all its tasks; it comes back if its operator or supervisor starts it
    /// again.
    Kill,
    /// The worker's process and all its tasks are stopped.
    Pause,
    /// No room is left for checkpoints on the worker's disk.
    DiskFull,
    /// CRIU takes longer for each dump and restore.
    SlowCriu,
}
