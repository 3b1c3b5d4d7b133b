//! Faults that an experiment asks for: what goes wrong between a worker and its coordinator, or on a
//! worker's host.

use dormouse_units::{Bytes, Ppm, Span, Time, TypeName, ZoneName, is_like};
use serde::{Deserialize, Serialize};

/// One fault, of one host or of several at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fault {
    /// When it is asked for.
    pub at: Time,
    /// Emulated time that the fault lasts; zero for a kill.
    pub lasts: Span,
    /// The hosts that it is meant for.
    pub on: Victims,
    /// What goes wrong.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// What goes wrong at a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FaultKind {
    /// Nothing passes between the worker and the coordinator.
    Partition,
    /// All that passes between them is this much later, in either direction.
    Delay {
        /// How much later, real microseconds.
        real_us: u64,
    },
    /// Segments that pass between them are lost, and sent again as TCP does.
    Loss {
        /// The part of the segments that is lost.
        part: Ppm,
    },
    /// Not more than this passes between them, in either direction.
    Rate {
        /// Bytes in a second of real time.
        bytes_per_second: Bytes,
    },
    /// The worker's process is killed, with all its tasks.
    Kill,
    /// The worker's process and all its tasks stand still.
    Pause,
    /// There is no room for new checkpoints on the worker's disk.
    DiskFull,
    /// CRIU takes this much longer for each dump and each restore.
    SlowCriu {
        /// How much longer, real microseconds.
        real_us: u64,
    },
}

/// The hosts that a fault is meant for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victims {
    /// All that there are.
    All,
    /// Those whose worker's name, or number such as `host1`, is one of these; a `*` in one stands for
    /// any letters.
    Workers(Vec<String>),
    /// Those that have a VM of this type, of whatever zone where it names none.
    Type(TypeName),
    /// Those that have a VM of this zone.
    Zone(ZoneName),
}

/// How a fault stands with a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "felt", rename_all = "kebab-case")]
pub enum Felt {
    /// It is in effect.
    Begun,
    /// It has passed.
    Over,
    /// It could not be carried out.
    Refused {
        /// What went wrong, as one line for the log.
        why: String,
    },
}

impl FaultKind {
    /// The name of the kind, as experiments have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Delay { .. } => "delay",
            Self::Loss { .. } => "loss",
            Self::Rate { .. } => "rate",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::DiskFull => "disk-full",
            Self::SlowCriu { .. } => "slow-criu",
        }
    }
}

impl Victims {
    /// Whether a host of this number, whose worker has this name, and which has VMs of these types, is
    /// one of them.
    pub fn has<'a>(
        &self,
        host: &str,
        worker: &str,
        mut kinds: impl Iterator<Item = &'a TypeName>,
    ) -> bool {
        let is = |kind: &TypeName, wanted: &TypeName| {
            kind == wanted || kind.as_str().split('@').next() == Some(wanted.as_str())
        };
        match self {
            Self::All => true,
            Self::Workers(names) => {
                names.iter().any(|name| is_like(name, worker) || is_like(name, host))
            }
            Self::Type(wanted) => kinds.any(|kind| is(kind, wanted)),
            Self::Zone(zone) => kinds.any(|kind| {
                kind.as_str().split_once('@').is_some_and(|(_, of)| of == zone.as_str())
            }),
        }
    }
}

impl std::fmt::Display for Victims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::All => f.write_str("all hosts"),
            Self::Workers(names) => f.write_str(&names.join(", ")),
            Self::Type(kind) => write!(f, "hosts with a {kind}"),
            Self::Zone(zone) => write!(f, "hosts with a VM of {zone}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_had_in_any_zone() {
        let kinds = [TypeName::from("c3.large@us-east-1a")];
        let has = |victims: Victims| victims.has("host0", "w1", kinds.iter());
        assert!(has(Victims::Type("c3.large".into())) && has(Victims::Zone("us-east-1a".into())));
        assert!(!has(Victims::Type("c3.xlarge".into())) && !has(Victims::Zone("us".into())));
        assert!(has(Victims::Workers(vec!["host0".to_owned()])));
    }
}
