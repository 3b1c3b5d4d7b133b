//! Interruptions of spot VMs by the provider: what they do, what they hit, and by which models their times are found.
//! [`ComingInterruptions`](crate::ComingInterruptions) draws them.

use std::sync::Arc;

use dormouse_units::{Span, Time, TypeName, VmId, ZoneName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Lifetimes, WeeklyRates};

/// What the provider does to spot VMs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Action")]
pub enum InterruptionAction {
    /// The VM hibernates: it is frozen at once, and its memory is kept.
    Hibernate,
    /// A hibernated VM is thawed and runs again.
    Resume,
    /// The VM is given notice, and killed when the notice has run out.
    Preempt,
    /// The provider recommends to replace the VM, as it is likely to be interrupted; the VM itself is not changed.
    Rebalance,
}

/// The VMs that an action applies to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterruptionTarget {
    /// All spot VMs of the type at once (Burst-HADS: "for each type of spot VM").
    Type(TypeName),
    /// One VM with this id.
    Vm(VmId),
    /// All spot VMs of a zone at once.
    Zone(ZoneName),
    /// All spot VMs at once.
    All,
}

/// An action of the provider on spot VMs at its requested time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Interruption {
    /// Time at which the action is requested.
    pub at: Time,
    /// The VM or VMs that the action applies to.
    pub target: InterruptionTarget,
    /// The action that is done to the target.
    pub action: InterruptionAction,
}

/// Scope of an interruption event: the VMs that one event hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Scope")]
pub enum InterruptionScope {
    /// All spot VMs of a type at once.
    #[default]
    Type,
    /// Each spot VM is hit by events of its own.
    Vm,
    /// All spot VMs of a zone at once, whatever their types.
    Zone,
    /// All spot VMs at once.
    All,
}

/// Model of the times at which spot VMs are interrupted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum InterruptionModel {
    /// Hibernations and resumes are Poisson processes (Burst-HADS, section IV, Table V).
    Poisson {
        /// Mean time between hibernations of one target, D / k_h in the paper; `None`: there are no hibernations.
        hibernate_every: Option<Span>,
        /// Mean time between resumes of one target, D / k_r in the paper; `None`: there are no resumes.
        resume_every: Option<Span>,
        /// Scope of an event: all spot VMs of a type or of a zone, one VM, or all spot VMs.
        scope: InterruptionScope,
    },
    /// Every spot VM is preempted at the end of a lifetime, drawn when it has booted.
    Lifetime {
        /// Instance type that the law applies to; `None`: every type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
        /// Law of the VMs' lifetimes.
        lifetimes: Lifetimes,
    },
    /// Spot VMs get recorded lifetimes in the order in which they become usable; after the last one
    /// the first is used again.
    Replay {
        /// Instance type that the lifetimes apply to; `None`: every type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
        /// Recorded lifetimes until preemption; `None`: the VM was never preempted.
        lives: Vec<Option<Span>>,
    },
    /// Interruptions at random, as often as the hour of the day and the day of the week say.
    Weekly {
        /// Instance type that is interrupted; `None`: every type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<TypeName>,
        /// Action on the interrupted VMs.
        action: InterruptionAction,
        /// Scope of an event: one VM, all spot VMs of a type or of a zone, or all spot VMs.
        scope: InterruptionScope,
        /// Rates of events of one target over the week.
        rates: Arc<WeeklyRates>,
    },
    /// Interruptions at the listed times only.
    Schedule {
        /// The interruptions, in order of time.
        acts: Vec<Interruption>,
    },
}
