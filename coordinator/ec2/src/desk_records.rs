//! The resources of callers that the desk keeps between calls.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_units::{HostId, Price, Time, VmId};

use crate::launch_spec::LaunchSpec;
use crate::pool_market::CapacityPool;

/// The account that makes a call, and the region that it is made in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallScope {
    pub(crate) account: String,
    pub(crate) region: String,
}

/// A key pair, whose private half only its creator has seen.
#[derive(Clone, Debug)]
pub(crate) struct KeyPair {
    pub(crate) id: String,
    pub(crate) fingerprint: String,
    pub(crate) kind: &'static str,
    /// The public key as its owner imported it; `None` for a pair that was created here.
    pub(crate) public_key: Option<String>,
    pub(crate) created: Time,
    pub(crate) tags: Vec<(String, String)>,
}

/// A version of a launch template.
#[derive(Clone, Debug)]
pub(crate) struct TemplateVersion {
    pub(crate) description: Option<String>,
    pub(crate) created: Time,
    pub(crate) data: WireValue,
}

/// A launch template.
#[derive(Clone, Debug)]
pub(crate) struct LaunchTemplate {
    pub(crate) id: String,
    pub(crate) scope: CallScope,
    pub(crate) name: String,
    pub(crate) created: Time,
    /// The number of the default version, from 1.
    pub(crate) default: usize,
    /// The versions that were not deleted, by their numbers.
    pub(crate) versions: BTreeMap<usize, TemplateVersion>,
    /// The number of the next version.
    pub(crate) next_version: usize,
    pub(crate) tags: Vec<(String, String)>,
}

/// Kind of a fleet, by how long it keeps its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetKind {
    Instant,
    Request,
    Maintain,
}

/// Capacity in thousandths of a unit, as weights may be fractions.
pub(crate) type Units = u64;

/// A pool in which a fleet may launch instances.
#[derive(Clone, Debug)]
pub(crate) struct FleetPool {
    pub(crate) spec: LaunchSpec,
    pub(crate) pool: CapacityPool,
    pub(crate) bid: Option<Price>,
    pub(crate) weight: Units,
    /// The pool's priority in thousandths: strategies that use priorities try the pool with the lowest number first.
    pub(crate) priority: u64,
    /// The launch template and the override that the pool was made from, in the form of EC2's answers.
    pub(crate) origin: WireValue,
}

/// A fleet: its target capacity and configuration, and the instances that it has launched.
#[derive(Clone, Debug)]
pub(crate) struct InstanceFleet {
    pub(crate) id: String,
    pub(crate) scope: CallScope,
    pub(crate) kind: FleetKind,
    pub(crate) created: Time,
    pub(crate) state: &'static str,
    pub(crate) token: Option<String>,
    pub(crate) configs: WireValue,
    /// The configuration of a spot fleet; `None` if this is an EC2 fleet.
    pub(crate) spot_config: Option<WireValue>,
    pub(crate) pools: Vec<FleetPool>,
    pub(crate) total: i64,
    pub(crate) spot_target: Units,
    pub(crate) on_demand_target: Units,
    pub(crate) default_market: Market,
    pub(crate) strategy: String,
    pub(crate) on_demand_strategy: String,
    pub(crate) ends_excess: bool,
    pub(crate) valid_until: Option<Time>,
    /// When the fleet was deleted or expired; `None` while it is active.
    pub(crate) ended: Option<Time>,
    pub(crate) ends_with_expiration: bool,
    /// The instances that the fleet has launched: index of the pool and index of the instance.
    pub(crate) instances: Vec<(usize, usize)>,
    /// Errors of the fleet's last attempt to launch its capacity: index of the pool, market, and error.
    pub(crate) errors: Vec<(usize, Market, ApiError)>,
    pub(crate) tags: Vec<(String, String)>,
}

/// The files of an instance that was stopped before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptFiles {
    /// The first VM of the instance.
    pub(crate) first: VmId,
    pub(crate) place: FilesPlace,
}

/// Where the files of a stopped instance are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilesPlace {
    On(HostId),
    /// The instance was started on another host than that of its files, which are not used any more.
    LeftBehind,
    /// The host of the files is lost.
    Lost,
}

impl KeptFiles {
    /// Why the files are not where the instance runs, as the end of a sentence about them; empty: they are there.
    pub(crate) const fn absence(&self) -> &'static str {
        match self.place {
            FilesPlace::On(_) => "",
            FilesPlace::LeftBehind => "were left on another worker of this run",
            FilesPlace::Lost => "were on a worker that is gone",
        }
    }

    /// Takes the host of the files away if `leaves` says so, since the files are not used there any more.
    pub(crate) fn take_host(
        &mut self,
        leaves: impl FnOnce(HostId) -> bool,
        then: FilesPlace,
    ) -> Option<HostId> {
        let FilesPlace::On(host) = self.place else { return None };
        leaves(host).then(|| {
            self.place = then;
            host
        })
    }
}
