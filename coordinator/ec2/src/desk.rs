//! The desk of EC2's API: the resources of its accounts, and the calls under way.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use dormouse_cloud::{InterruptionAction, InterruptionModel, Market};
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Setup;
use dormouse_units::{Ppm, Price, Span, Time, VmId};
use serde::{Deserialize, Serialize};

use crate::announcements::{AnnouncedChange, InstanceAnnouncement};
use crate::cells::InstanceConsole;
pub(crate) use crate::desk_records::CallScope;
use crate::desk_records::{InstanceFleet, KeptFiles, KeyPair, LaunchTemplate};
use crate::ec2_instance::{Ec2Instance, InstanceStage};
use crate::instance_table::InstanceTable;
use crate::names::resource_id;
use crate::network_records::RegionNetwork;
use crate::pool_market::{CapacityPool, PoolMarket};
use crate::run_secret::RunSecret;
use crate::spot_request::SpotRequest;
use crate::storage_records::RegionStorage;

/// Configuration of the API's accounts and of its clock, from the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeskConfig {
    /// The wall clock at the beginning of the run, microseconds since 1970 (UTC).
    pub begins_unix_us: i64,
    /// The most vCPUs of on-demand instances that an account has at a time; `None`: no bound.
    pub on_demand_vcpus: Option<u32>,
    /// The most vCPUs of spot instances that an account has at a time; `None`: no bound.
    pub spot_vcpus: Option<u32>,
    /// Part of each vCPU that the programs on a burstable instance use, if no tag of the instance declares another.
    #[serde(default, skip_serializing_if = "is_none")]
    pub vcpu_use: Ppm,
    /// True if instances run programs, on the workers of a live run: parameters that would matter to them and aren't played are
    /// refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_programs: bool,
    /// True if the hosts of a live run have an ssh server for instances.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ssh: bool,
    /// The third number of the public addresses 127.80.x.y of a live run's instances; `None`: public addresses are records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_block: Option<u8>,
}

fn is_none(used: &Ppm) -> bool {
    *used == Ppm::ZERO
}

impl Default for DeskConfig {
    /// A clock that begins in 1970, 256 vCPUs in either market, and instances whose programs use nothing. These limits are our choice; AWS gives new accounts
    /// fewer, and more on request.
    fn default() -> Self {
        Self {
            begins_unix_us: 0,
            on_demand_vcpus: Some(256),
            spot_vcpus: Some(256),
            vcpu_use: Ppm::ZERO,
            runs_programs: false,
            has_ssh: false,
            public_block: None,
        }
    }
}

/// An answer that can be completed only once it is known which launches were refused.
#[derive(Debug)]
pub(crate) enum PendingAnswer {
    Ready(WireValue),
    /// The instances of a RunInstances call; at least this number must be launched.
    Reservation {
        instances: Vec<usize>,
        least: usize,
    },
    /// The stopped instances that a StartInstances call starts, with the answer for the case that all of them start.
    Started {
        instances: Vec<usize>,
        answer: WireValue,
    },
    /// A CreateFleet: the id of the fleet.
    Fleet(String),
}

/// The caller's scope, the name of a call, and the client's token for it.
pub(crate) type TokenKey = (CallScope, String, String);

/// A call whose answer is complete only after the engine has carried out its decisions; with the call's token and the
/// digest of its parameters.
pub(crate) type PendingCall = (Result<PendingAnswer, ApiError>, Option<(TokenKey, String)>);

/// Reasons why a pool has no room for more instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolRefusal {
    NotOffered,
    /// The pool's price, which is above the highest price that the caller pays.
    PriceTooLow(Price),
    /// The type's limit on instances is reached.
    TypeLimit,
    /// The account's limit on vCPUs is reached.
    VcpuLimit,
    NoCapacity,
}

/// The state of everything behind the API.
#[derive(Debug)]
pub struct ApiDesk {
    pub(crate) config: DeskConfig,
    pub(crate) seed: u64,
    pub(crate) market: PoolMarket,
    /// Least time from a hibernation until an instance can be resumed.
    pub(crate) hibernation: Span,
    /// Whether the experiment's interruption models resume the instances that they hibernate.
    pub(crate) laws_resume: bool,
    pub(crate) now: Time,
    pub(crate) next_vm: u32,
    /// Number of the next public address that is allocated (an Elastic IP, kept as a record only).
    pub(crate) next_address: u64,
    counters: BTreeMap<&'static str, u64>,
    pub(crate) instances: InstanceTable,
    pub(crate) by_id: BTreeMap<String, usize>,
    pub(crate) by_vm: BTreeMap<VmId, usize>,
    /// Indices of the instances that users may still see.
    pub(crate) shown: BTreeSet<usize>,
    /// Indices of the instances that have a VM.
    pub(crate) with_vm: BTreeSet<usize>,
    /// Indices of the instances that the provider has stopped, and will start or resume again.
    pub(crate) waiting: BTreeSet<usize>,
    pub(crate) requests: Vec<SpotRequest>,
    pub(crate) request_by_id: BTreeMap<String, usize>,
    /// Indices of the spot requests that are open.
    pub(crate) open_requests: BTreeSet<usize>,
    pub(crate) tokens: BTreeMap<TokenKey, (String, Result<WireValue, ApiError>)>,
    pub(crate) key_pairs: BTreeMap<(CallScope, String), KeyPair>,
    pub(crate) networks: BTreeMap<CallScope, RegionNetwork>,
    pub(crate) storages: BTreeMap<CallScope, RegionStorage>,
    pub(crate) templates: Vec<LaunchTemplate>,
    pub(crate) fleets: Vec<InstanceFleet>,
    /// Announcements about instances, oldest first.
    pub(crate) announcements: Vec<InstanceAnnouncement>,
    /// The last output of instances, by their ids.
    pub(crate) consoles: BTreeMap<String, InstanceConsole>,
    /// Files of instances that were stopped before, by the instances' ids.
    pub(crate) kept_files: BTreeMap<String, KeptFiles>,
    /// The secret of the keys and credentials of a live run; `None`: there are none.
    pub(crate) secret: Option<RunSecret>,
    /// The address on the hosts of a live run at which instances call the API; `None`: they can't.
    pub(crate) inner_api: Option<SocketAddr>,
    pub(crate) pending: Option<PendingCall>,
    pub(crate) answer: Option<Result<WireValue, ApiError>>,
    /// Time of the last requested wake-up; `None`: none is pending.
    pub(crate) armed: Option<Time>,
}

impl ApiDesk {
    /// Makes the desk, which answers the calls of EC2's API to a run with this setup; there was no call yet.
    #[must_use]
    pub fn new(setup: &Setup, config: DeskConfig) -> Self {
        let resumes = |model: &InterruptionModel| match model {
            InterruptionModel::Poisson { resume_every, .. } => resume_every.is_some(),
            InterruptionModel::Schedule { acts } => {
                acts.iter().any(|act| act.action == InterruptionAction::Resume)
            }
            InterruptionModel::Lifetime { .. }
            | InterruptionModel::Replay { .. }
            | InterruptionModel::Weekly { .. } => false,
        };
        Self {
            config,
            seed: setup.seed,
            market: PoolMarket::new(setup),
            hibernation: setup.catalogue.hibernation,
            laws_resume: setup.interruptions.iter().any(resumes),
            now: Time::ZERO,
            next_vm: 0,
            next_address: 0,
            counters: BTreeMap::new(),
            instances: InstanceTable::default(),
            by_id: BTreeMap::new(),
            by_vm: BTreeMap::new(),
            shown: BTreeSet::new(),
            with_vm: BTreeSet::new(),
            waiting: BTreeSet::new(),
            requests: Vec::new(),
            request_by_id: BTreeMap::new(),
            open_requests: BTreeSet::new(),
            tokens: BTreeMap::new(),
            key_pairs: BTreeMap::new(),
            networks: BTreeMap::new(),
            storages: BTreeMap::new(),
            templates: Vec::new(),
            fleets: Vec::new(),
            announcements: Vec::new(),
            consoles: BTreeMap::new(),
            kept_files: BTreeMap::new(),
            secret: None,
            inner_api: None,
            pending: None,
            answer: None,
            armed: None,
        }
    }

    /// Adds an announcement about an instance.
    pub(crate) fn announce(&mut self, index: usize, change: AnnouncedChange) {
        let Some(it) = self.instances.get(index) else { return };
        self.announcements.push(InstanceAnnouncement {
            at: self.now,
            account: it.scope.account.clone(),
            region: it.scope.region.clone(),
            zone: it.pool.zone.clone(),
            instance: it.id.clone(),
            change,
        });
    }

    /// All announcements from the `from`-th on, oldest first.
    #[must_use]
    pub fn announced(&self, from: usize) -> &[InstanceAnnouncement] {
        self.announcements.get(from..).unwrap_or_default()
    }

    /// A new id of a resource, with the prefix of its kind.
    pub(crate) fn new_id(&mut self, prefix: &'static str) -> String {
        let count = self.counters.entry(prefix).or_default();
        *count += 1;
        resource_id(self.seed, prefix, *count - 1)
    }

    /// Number of ids with this prefix that have been made.
    pub(crate) fn count_of(&self, prefix: &str) -> u64 {
        self.counters.get(prefix).copied().unwrap_or_default()
    }

    /// An instant of the run as a timestamp of the API.
    pub(crate) fn instant(&self, at: Time) -> WireValue {
        let since = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
        WireValue::Instant(self.config.begins_unix_us.saturating_add(since))
    }

    /// Converts a timestamp of the API to an instant of the run; the run's beginning for an earlier one.
    pub(crate) fn time_of(&self, micros: i64) -> Time {
        let since = micros.saturating_sub(self.config.begins_unix_us);
        Time::from_micros(u64::try_from(since).unwrap_or_default())
    }

    /// Takes the answer to the last call that changed something; `None` if it was taken before.
    pub fn take_answer(&mut self) -> Option<Result<WireValue, ApiError>> {
        self.answer.take()
    }

    /// Number of further instances of a pool, at most `wanted`, that an account can have now, and the limit that
    /// applies.
    ///
    /// # Errors
    ///
    /// The pool is not offered in that market, or costs more than the bid.
    pub(crate) fn room_in(
        &self,
        account: &str,
        pool: &CapacityPool,
        (market, bid): (Market, Option<Price>),
        wanted: usize,
    ) -> Result<(usize, PoolRefusal), PoolRefusal> {
        let price =
            self.market.price(&pool.kind, market, self.now).ok_or(PoolRefusal::NotOffered)?;
        let offer = self.market.offer(&pool.kind).ok_or(PoolRefusal::NotOffered)?;
        if bid.is_some_and(|bid| price > bid) {
            return Err(PoolRefusal::PriceTooLow(price));
        }
        let (mut alike, mut held, mut vcpus) = (0_u32, 0_u32, 0_u32);
        for instance in self.with_vm.iter().filter_map(|index| self.instances.get(*index)) {
            if instance.market != market {
                continue;
            }
            let is_up = instance.is_up();
            if instance.pool.kind == pool.kind {
                alike += 1;
                held += u32::from(instance.stage != InstanceStage::Stopped);
            }
            if is_up && instance.scope.account == account {
                vcpus = vcpus.saturating_add(self.market.vcpus(&instance.pool.kind));
            }
        }
        let limit = match market {
            Market::Spot => self.config.spot_vcpus,
            Market::OnDemand => self.config.on_demand_vcpus,
        };
        let left = |most: u32, taken: u32| most.saturating_sub(taken) as usize;
        let mut bounds = vec![(left(offer.vm_limit(market), alike), PoolRefusal::TypeLimit)];
        if let Some(most) = limit {
            let more = most.saturating_sub(vcpus) / offer.vcpus.max(1);
            bounds.push((more as usize, PoolRefusal::VcpuLimit));
        }
        if let Some(most) =
            self.market.available(&pool.kind, self.now).filter(|_| market == Market::Spot)
        {
            bounds.push((left(most, held), PoolRefusal::NoCapacity));
        }
        let (most, by) = bounds
            .into_iter()
            .min_by_key(|(most, _)| *most)
            .unwrap_or((0, PoolRefusal::NoCapacity));
        Ok((most.min(wanted), by))
    }

    /// The error of a call that needs an instance of a pool which has no room.
    pub(crate) fn refusal_error(
        refusal: PoolRefusal,
        pool: &CapacityPool,
        (market, bid): (Market, Option<Price>),
    ) -> ApiError {
        let CapacityPool { name, zone, .. } = pool;
        match refusal {
            PoolRefusal::NotOffered => ApiError::new(
                "Unsupported",
                format!(
                    "Your requested instance type ({name}) is not offered as {market} in {zone}."
                ),
            ),
            PoolRefusal::PriceTooLow(price) => {
                let bid = bid.map(crate::pool_market::price_text).unwrap_or_default();
                let price = crate::pool_market::price_text(price);
                ApiError::new(
                    "SpotMaxPriceTooLow",
                    format!(
                        "Your Spot request price of {bid} is lower than the minimum required Spot request \
                         fulfillment price of {price}."
                    ),
                )
            }
            PoolRefusal::TypeLimit if market == Market::Spot => ApiError::new(
                "MaxSpotInstanceCountExceeded",
                format!("The limit of spot instances of type {name} at a time is reached."),
            ),
            PoolRefusal::TypeLimit => ApiError::new(
                "InstanceLimitExceeded",
                format!("The limit of on-demand instances of type {name} at a time is reached."),
            ),
            PoolRefusal::VcpuLimit if market == Market::Spot => ApiError::new(
                "MaxSpotInstanceCountExceeded",
                "You have requested more vCPU capacity than your spot vCPU limit allows.",
            ),
            PoolRefusal::VcpuLimit => ApiError::new(
                "VcpuLimitExceeded",
                "You have requested more vCPU capacity than your current vCPU limit allows.",
            ),
            PoolRefusal::NoCapacity => ApiError::new(
                "InsufficientInstanceCapacity",
                format!(
                    "We currently do not have sufficient {name} capacity in the Availability Zone you requested ({zone})."
                ),
            ),
        }
    }

    /// The instance of a caller by its id.
    ///
    /// # Errors
    ///
    /// `InvalidInstanceID.Malformed`, or `InvalidInstanceID.NotFound` if the caller has no instance with this id in the
    /// region, or the instance was terminated more than an hour ago.
    pub(crate) fn instance_of(&self, scope: &CallScope, id: &str) -> Result<usize, ApiError> {
        let hex = id.strip_prefix("i-").unwrap_or_default();
        if !matches!(hex.len(), 8 | 17) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ApiError::new(
                "InvalidInstanceID.Malformed",
                format!("Invalid id: \"{id}\""),
            ));
        }
        let found = self.by_id.get(id).filter(|index| {
            let instance = self.instances.get(**index);
            instance.is_some_and(|it| it.scope == *scope && it.is_visible(self.now))
        });
        let none = || {
            let text = format!("The instance ID '{id}' does not exist");
            ApiError::new("InvalidInstanceID.NotFound", text)
        };
        found.copied().ok_or_else(none)
    }

    /// The instances of a caller by their ids.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::instance_of`], with all ids that are not found.
    pub(crate) fn all_instances(
        &self,
        scope: &CallScope,
        ids: &[&str],
    ) -> Result<Vec<usize>, ApiError> {
        let (mut found, mut missing, mut error) = (Vec::new(), Vec::new(), None);
        for id in ids {
            match self.instance_of(scope, id) {
                Ok(index) => found.push(index),
                Err(wrong) if wrong.code != "InvalidInstanceID.NotFound" => return Err(wrong),
                Err(wrong) => {
                    missing.push(*id);
                    error = Some(wrong);
                }
            }
        }
        match error {
            None => Ok(found),
            Some(one) if missing.len() == 1 => Err(one),
            Some(one) => {
                let text = format!("The instance IDs '{}' do not exist", missing.join(", "));
                Err(ApiError { message: text, ..one })
            }
        }
    }

    /// The visible instances of a caller, in the order of their launch.
    pub(crate) fn instances_of<'a>(
        &'a self,
        scope: &'a CallScope,
    ) -> impl Iterator<Item = &'a Ec2Instance> {
        self.shown
            .iter()
            .filter_map(|index| self.instances.get(*index))
            .filter(|it| it.scope == *scope && it.is_visible(self.now))
    }
}
