//! Placement rules, as experiment files name them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use dormouse_units::Bytes;

use super::weigh::{ScaledWeigher, Weigher};
use crate::{CostName, HostScheduler, InstanceType, Placer, ResourceVector};

/// On which host a VM goes: a rule by its name, or one put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Placement {
    /// A placement rule, by its name.
    Named(PlacerName),
    /// A rule put together.
    Rule(PlacementRule),
}

impl Default for Placement {
    fn default() -> Self {
        Self::Named(PlacerName::default())
    }
}

/// The rules that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacerName {
    /// On the host with most free vCPUs.
    #[default]
    Spread,
    /// On the host with fewest free vCPUs that has room.
    Pack,
    /// As `spread`, but an on-demand VM for which there is no room gets that of the fewest spot VMs, once
    /// their notice has run out.
    Preempting,
}

/// Rule that chooses the host for a VM: hosts are filtered, then weighed, and one of the best is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct PlacementRule {
    /// For whom spot VMs have to end.
    pub scheduler: SchedulerName,
    /// Resources of which a host must have enough. Resources that are left out are not counted: hosts may be filled
    /// beyond them. `vcpus` can't be left out.
    #[schemars(length(min = 1))]
    pub filters: Vec<HostFilter>,
    /// By what hosts are better than others; none: all that are left are alike.
    pub weighers: Vec<ScaledWeigher>,
    /// Those of the second pass of `retry`, where they are others.
    pub retry_weighers: Vec<ScaledWeigher>,
    /// How the cost of ending spot VMs is computed. Those VMs end that cost least together; at the same cost the
    /// fewest.
    pub cost: CostName,
    /// Which spot VMs end if several sets of as many cost the same.
    pub victims: VictimTies,
    /// Which host is chosen if several are best.
    pub ties: TieBreak,
    /// Origin of the views of hosts: how long a choice takes depends on it, and not what is chosen.
    #[serde(skip_serializing_if = "ViewSource::are_kept")]
    pub states: ViewSource,
}

impl Default for PlacementRule {
    fn default() -> Self {
        Self {
            scheduler: SchedulerName::Opie,
            filters: vec![HostFilter::Vcpus, HostFilter::Memory, HostFilter::Disk],
            weighers: vec![Weigher::Overcommit.weighed_once(), Weigher::VictimCost.weighed_once()],
            retry_weighers: Vec::new(),
            cost: CostName::Period,
            victims: VictimTies::Oldest,
            ties: TieBreak::Random,
            states: ViewSource::Kept,
        }
    }
}

/// For whom spot VMs have to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// For nobody: only what is free counts.
    Filter,
    /// For an on-demand VM for which no host has room, at a second look at the hosts.
    Retry,
    /// For an on-demand VM, at one look: hosts count that would have room without their spot VMs.
    Opie,
}

impl SchedulerName {
    /// All placement schedulers.
    pub const ALL: [Self; 3] = [Self::Opie, Self::Retry, Self::Filter];

    /// Description of the scheduler, in one line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Filter => "of VMs: a host with room, and nobody has to leave for anybody",
            Self::Retry => {
                "of VMs: as filter, and where there is no room a second look without spot VMs"
            }
            Self::Opie => {
                "of VMs: one look at hosts with and without their spot VMs; the cheapest leave"
            }
        }
    }

    /// The scheduler's name in experiment files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Retry => "retry",
            Self::Opie => "opie",
        }
    }
}

/// A resource of which a host must have enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Filter")]
pub enum HostFilter {
    /// vCPUs.
    Vcpus,
    /// Memory.
    Memory,
    /// Disk.
    Disk,
}

/// Choice among the hosts that are equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ties")]
pub enum TieBreak {
    /// Any, by the seed.
    Random,
    /// The first in the order of the file, or in which they joined.
    First,
}

/// Origin of the views of hosts by which a host is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "States")]
pub enum ViewSource {
    /// They are kept, and change as VMs come and go.
    Kept,
    /// They are built for each call and each look at the hosts, as OpenStack's scheduler does: one view for
    /// `filter`, two for `opie`, and for the second look of `retry` two more.
    Built,
}

impl ViewSource {
    fn are_kept(&self) -> bool {
        *self == Self::Kept
    }
}

/// Which spot VMs end if several sets of as many cost the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VictimTies {
    /// The VMs that were launched first.
    Oldest,
    /// The largest, and of these those launched last, which have done least.
    Largest,
}

impl Placement {
    /// The placement rule, also where it is given by its name.
    #[must_use]
    pub fn placement_rule(&self) -> PlacementRule {
        match self {
            Self::Named(name) => name.placement_rule(),
            Self::Rule(rule) => rule.clone(),
        }
    }

    /// A placer that follows the rule.
    #[must_use]
    pub fn make_placer(&self) -> Box<dyn Placer> {
        Box::new(HostScheduler::new(self.placement_rule()))
    }
}

impl PlacerName {
    /// The placement rule that the name stands for.
    #[must_use]
    pub fn placement_rule(self) -> PlacementRule {
        let spread = PlacementRule {
            scheduler: SchedulerName::Filter,
            weighers: vec![Weigher::FreeVcpus.weighed_once()],
            ties: TieBreak::First,
            ..PlacementRule::default()
        };
        match self {
            Self::Spread => spread,
            Self::Pack => PlacementRule {
                weighers: vec![ScaledWeigher { name: Weigher::FreeVcpus, multiplier: -1 }],
                ..spread
            },
            Self::Preempting => PlacementRule {
                scheduler: SchedulerName::Retry,
                retry_weighers: vec![Weigher::VictimCost.weighed_once()],
                cost: CostName::Number,
                victims: VictimTies::Largest,
                ..spread
            },
        }
    }
}

impl PlacementRule {
    /// Room that a VM takes on its host if its processes really fill `filled` bytes; no vCPUs are
    /// counted if the VM runs in the background of other VMs' processors.
    #[must_use]
    pub fn room_of(
        &self,
        offer: &InstanceType,
        filled: Bytes,
        in_background: bool,
    ) -> ResourceVector {
        let room = ResourceVector { filled, ..offer.room() };
        self.filtered_room(if in_background { ResourceVector { vcpus: 0, ..room } } else { room })
    }

    /// The dimensions of a room that the rule filters by, and filled memory; other dimensions are zero.
    #[must_use]
    fn filtered_room(&self, room: ResourceVector) -> ResourceVector {
        let counts = |filter| self.filters.contains(&filter);
        ResourceVector {
            vcpus: if counts(HostFilter::Vcpus) { room.vcpus } else { 0 },
            memory: if counts(HostFilter::Memory) { room.memory } else { Bytes::ZERO },
            disk: if counts(HostFilter::Disk) { room.disk } else { Bytes::ZERO },
            filled: room.filled,
        }
    }
}
