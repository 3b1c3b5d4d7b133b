//! Faults that an experiment injects: in the network between workers and coordinator, or on a
//! worker's host.

use dormouse_units::{Bytes, Ppm, Span, Time, TypeName, ZoneName, is_like};
use serde::{Deserialize, Serialize};

/// One fault, for one or several hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostFault {
    /// Time at which the fault begins.
    pub at: Time,
    /// Emulated time that the fault lasts; zero for a kill.
    pub lasts: Span,
    /// The hosts that the fault is for.
    pub on: FaultVictims,
    /// Kind of the fault.
    #[serde(flatten)]
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum FaultKind {
    /// The network between worker and coordinator is cut.
    Partition,
    /// All messages between worker and coordinator are delayed, in both directions.
    Delay {
        /// Delay of each message, in real microseconds.
        real_us: u64,
    },
    /// Network segments between worker and coordinator are lost and retransmitted as by TCP.
    Loss {
        /// Fraction of the segments that is lost.
        part: Ppm,
    },
    /// The bandwidth between worker and coordinator is limited, in both directions.
    Rate {
        /// Bandwidth during the fault, in bytes per second of real time.
        bytes_per_second: Bytes,
    },
    /// The worker's process is killed, with all its tasks.
    Kill,
    /// The worker's process and all its tasks are suspended.
    Pause,
    /// The worker's disk has no space for new checkpoints.
    DiskFull,
    /// CRIU takes longer for each dump and each restore.
    SlowCriu {
        /// Additional time of each dump and each restore, in real microseconds.
        real_us: u64,
    },
}

/// Selection of the hosts that a fault is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultVictims {
    /// The fault is for all hosts of the run.
    All,
    /// The fault is for hosts whose worker's name, or number such as `host1`, matches one of these patterns; a `*`
    /// matches any letters.
    Workers(Vec<String>),
    /// The fault is for hosts that have a VM of this instance type; a type without a zone means VMs of the type in
    /// any zone.
    Type(TypeName),
    /// The fault is for hosts that have a VM of this availability zone.
    Zone(ZoneName),
}

/// State of a fault on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "felt", rename_all = "kebab-case")]
pub enum FaultState {
    /// The fault is in effect.
    Begun,
    /// The fault is over.
    Over,
    /// The fault could not be injected.
    Refused {
        /// Description of the failure, as one line for the log.
        why: String,
    },
}

impl FaultKind {
    /// Name of the kind in experiments.
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

impl FaultVictims {
    /// True if a host with this number, worker name and types of VMs is among the selected hosts.
    pub fn includes_host<'a>(
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

impl std::fmt::Display for FaultVictims {
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
        let has = |victims: FaultVictims| victims.includes_host("host0", "w1", kinds.iter());
        assert!(
            has(FaultVictims::Type("c3.large".into()))
                && has(FaultVictims::Zone("us-east-1a".into()))
        );
        assert!(
            !has(FaultVictims::Type("c3.xlarge".into())) && !has(FaultVictims::Zone("us".into()))
        );
        assert!(has(FaultVictims::Workers(vec!["host0".to_owned()])));
    }
}
