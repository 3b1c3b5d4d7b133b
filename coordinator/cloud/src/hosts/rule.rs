//! Placement rules, as experiment files name them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use dormouse_units::Bytes;

use super::weigh::{ScaledWeigher, Weigher};
use crate::{CostName, HostScheduler, InstanceType, Placer, ResourceVector};

/// The rule that chooses a host for each VM: a rule known by a name, or one composed of a scheduler, filters and weighers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Placement {
    /// A placement rule, by its name.
    Named(PlacerName),
    /// A placement rule composed of a scheduler, filters and weighers.
    Rule(PlacementRule),
}

impl Default for Placement {
    fn default() -> Self {
        Self::Named(PlacerName::default())
    }
}

/// The placement rules that have a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlacerName {
    /// A VM is placed on the host with the most free vCPUs.
    #[default]
    Spread,
    /// A VM is placed on the host with the fewest free vCPUs that has room for it.
    Pack,
    /// VMs are placed as by `spread`, but an on-demand VM that finds no free room gets the room of the fewest possible spot VMs,
    /// once their notice has run out.
    Preempting,
}

/// Rule that chooses the host for a VM: hosts are filtered, then weighed, and one of the best is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct PlacementRule {
    /// The scheduler: whether, and in which pass over the hosts, spot VMs are ended to make room for an on-demand VM.
    pub scheduler: SchedulerName,
    /// Resources of which a host must have enough. Resources that are left out are not counted: hosts may be filled
    /// beyond them. `vcpus` can't be left out.
    #[schemars(length(min = 1))]
    pub filters: Vec<HostFilter>,
    /// The criteria by which the filtered hosts are compared; without any, all filtered hosts are equally good.
    pub weighers: Vec<ScaledWeigher>,
    /// Weighers for the second pass of the scheduler `retry`; without any, the second pass uses `weighers` too.
    pub retry_weighers: Vec<ScaledWeigher>,
    /// How the cost of ending spot VMs is computed. The set of VMs with the least total cost is ended; among sets of equal cost,
    /// the one with the fewest VMs.
    pub cost: CostName,
    /// Which spot VMs are ended if several sets of equally many VMs have the same cost.
    pub victims: VictimTies,
    /// Which host is chosen if several are best.
    pub ties: TieBreak,
    /// Whether the views of hosts are kept or built for each call; `kept` if not given. This affects how long a choice
    /// takes, but not what is chosen.
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

/// Placement scheduler: whether, and in which pass over the hosts, spot VMs are ended to make room for an on-demand VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulerName {
    /// No spot VM is ended for another VM: only free room on the hosts counts.
    Filter,
    /// Spot VMs are ended for an on-demand VM only if no host has free room for it. A second pass over the hosts finds those that
    /// would have room without their spot VMs.
    Retry,
    /// Spot VMs may be ended for an on-demand VM in a single pass over the hosts: a host counts if it would have room without its
    /// spot VMs.
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
    /// A host must have enough free vCPUs.
    Vcpus,
    /// A host must have enough free memory.
    Memory,
    /// A host must have enough free disk.
    Disk,
}

/// Choice among the hosts that are equally good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Ties")]
pub enum TieBreak {
    /// One of the equally good hosts is drawn at random by the seed.
    Random,
    /// The first of the equally good hosts is chosen, in the order of the file or in which the hosts joined.
    First,
}

/// Origin of the views of hosts by which a host is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "States")]
pub enum ViewSource {
    /// The views of hosts are kept between calls, and updated as VMs come and go.
    Kept,
    /// The views of hosts are built for each call and each pass over the hosts, as OpenStack's scheduler does: one view for
    /// `filter`, two for `opie`, and two more for the second pass of `retry`.
    Built,
}

impl ViewSource {
    fn are_kept(&self) -> bool {
        *self == Self::Kept
    }
}

/// Which spot VMs are ended if several sets of equally many VMs have the same cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VictimTies {
    /// The VMs that were launched first are ended.
    Oldest,
    /// The largest VMs are ended, and among equally large VMs those launched last, which have done the least work.
    Largest,
}

impl Placement {
    /// Returns the placement rule, which is looked up if only its name is given.
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
