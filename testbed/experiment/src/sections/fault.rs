//! The sections `[[fault]]` of experiment files.

use dormouse_units::{Bytes, Ppm, Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::Deserialize;

/// Something that goes wrong in a live run: between workers and their coordinator, or on their hosts. In
/// virtual time there is neither, and nothing of it happens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "Fault")]
pub(crate) struct FaultSection {
    /// When the fault begins, from the beginning.
    #[schemars(example = "10m")]
    pub(crate) at: Span,
    /// How long the fault lasts; of a kill nothing.
    #[schemars(extend("least" = "1us"), example = "2m")]
    pub(crate) lasts: Option<Span>,
    /// What goes wrong.
    pub(crate) kind: FaultName,
    /// How much later all is with `delay`, in either direction, and how much longer CRIU takes for each dump and
    /// restore with `slow-criu`: real time, as `live.lost-after` is.
    #[schemars(extend("least" = "1us"), example = "50ms")]
    pub(crate) by: Option<Span>,
    /// The part of the segments that is lost with `loss`.
    #[schemars(range(min = 0.000_001, max = 0.9))]
    pub(crate) part: Option<Ppm>,
    /// How many bytes pass in a second of real time with `rate`, in either direction.
    #[schemars(example = "1 MiB")]
    pub(crate) per_second: Option<Bytes>,
    /// Workers that have it, by name or by number in the order in which they joined, such as `host1`; a `*` stands for any letters. Or
    /// give `rack`, `type`, `zone` or `all`.
    #[serde(default)]
    #[schemars(example = &["local-1"])]
    pub(crate) workers: Vec<String>,
    /// The rack whose workers have it, one of `live.racks`.
    pub(crate) rack: Option<String>,
    /// Hosts have the fault that have a VM of this type then.
    #[serde(rename = "type")]
    pub(crate) kind_of_vm: Option<TypeName>,
    /// Hosts have the fault that have a VM of this zone then.
    pub(crate) zone: Option<ZoneName>,
    /// All hosts have the fault.
    #[serde(default)]
    pub(crate) all: bool,
}

/// The name of what goes wrong.
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
    /// The worker's process is killed with all its tasks; whoever started it starts it again.
    Kill,
    /// The worker's process and all its tasks are stopped.
    Pause,
    /// No room is left for checkpoints on the worker's disk.
    DiskFull,
    /// CRIU takes longer.
    SlowCriu,
}
