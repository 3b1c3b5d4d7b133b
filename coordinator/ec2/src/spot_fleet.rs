//! Spot fleets: fleets of EC2's older API.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::desk_records::{FleetKind, FleetPool, InstanceFleet};
use crate::ec2_instance::InterruptionBehavior;
use crate::fleet::{read_capacity, read_weight, whole};
use crate::launch_spec::{self, LaunchSpec};
use crate::listing::{refuse_others, take_page};
use crate::names::check_id;
use crate::resource_tags::{tags_for, tags_to_wire};
use crate::run_instances::read_price;

fn not_found(id: &str) -> ApiError {
    let text = format!("The spot fleet request ID '{id}' does not exist");
    ApiError::new("InvalidSpotFleetRequestId.NotFound", text)
}

/// Converts the name of a spot fleet's allocation strategy to the name that EC2 fleets have for it.
fn strategy_of(name: Option<&str>) -> &'static str {
    match name {
        Some("diversified") => "diversified",
        Some("capacityOptimized") => "capacity-optimized",
        Some("capacityOptimizedPrioritized") => "capacity-optimized-prioritized",
        Some("priceCapacityOptimized") => "price-capacity-optimized",
        _ => "lowest-price",
    }
}

/// Converts the state of an EC2 fleet to the name that spot fleets have for it.
fn state_of(state: &str) -> &'static str {
    match state {
        "active" => "active",
        "deleted_running" => "cancelled_running",
        "deleted_terminating" => "cancelled_terminating",
        _ => "cancelled",
    }
}

impl ApiDesk {
    pub(crate) fn request_spot_fleet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("RequestSpotFleet", input, &["DryRun", "SpotFleetRequestConfig"])?;
        let none = WireValue::structure();
        let config = input.member("SpotFleetRequestConfig").unwrap_or(&none);
        let played = [
            "AllocationStrategy",
            "OnDemandAllocationStrategy",
            "ClientToken",
            "ExcessCapacityTerminationPolicy",
            "IamFleetRole",
            "LaunchSpecifications",
            "LaunchTemplateConfigs",
            "SpotPrice",
            "TargetCapacity",
            "OnDemandTargetCapacity",
            "TerminateInstancesWithExpiration",
            "Type",
            "ValidUntil",
            "InstanceInterruptionBehavior",
            "TagSpecifications",
        ];
        refuse_others("SpotFleetRequestConfig", config, &played)?;
        let behavior = InterruptionBehavior::from_name(config.text("InstanceInterruptionBehavior"));
        if behavior != InterruptionBehavior::Terminate {
            let text = "InstanceInterruptionBehavior: fleets play terminate alone; take a persistent spot request";
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        let mut pools = self.fleet_pools(scope, config.list("LaunchTemplateConfigs"))?;
        for launch in config.list("LaunchSpecifications") {
            pools.extend(self.pools_of_specification(scope, launch)?);
        }
        if pools.is_empty() {
            let text = "Give LaunchSpecifications or LaunchTemplateConfigs";
            return Err(ApiError::new("MissingParameter", text));
        }
        let price = config.text("SpotPrice").filter(|price| !price.is_empty());
        if let Some(price) = price.map(read_price).transpose()? {
            pools.iter_mut().for_each(|pool| pool.bid = pool.bid.or(Some(price)));
        }
        let total = read_capacity(config, "TargetCapacity")?.unwrap_or(0);
        let on_demand = read_capacity(config, "OnDemandTargetCapacity")?.unwrap_or(0).min(total);
        let fleet = InstanceFleet {
            id: self.new_id("sfr"),
            scope: scope.clone(),
            kind: match config.text("Type") {
                Some("request") => FleetKind::Request,
                _ => FleetKind::Maintain,
            },
            created: self.now,
            state: "active",
            token: config.text("ClientToken").map(str::to_owned),
            configs: WireValue::List(Vec::new()),
            spot_config: Some(config.clone()),
            pools,
            total: i64::try_from(total).unwrap_or(0),
            spot_target: (total - on_demand) * 1_000,
            on_demand_target: on_demand * 1_000,
            default_market: Market::Spot,
            strategy: strategy_of(config.text("AllocationStrategy")).to_owned(),
            on_demand_strategy: config
                .text("OnDemandAllocationStrategy")
                .unwrap_or("lowest-price")
                .to_owned(),
            ends_excess: config.text("ExcessCapacityTerminationPolicy") != Some("noTermination"),
            valid_until: config.instant("ValidUntil").map(|until| self.time_of(until)),
            ends_with_expiration: config.flag("TerminateInstancesWithExpiration") == Some(true),
            ended: None,
            instances: Vec::new(),
            errors: Vec::new(),
            tags: tags_for(config, "spot-fleet-request"),
        };
        let id = fleet.id.clone();
        self.fleets.push(fleet);
        self.fill_fleet(self.fleets.len() - 1, out);
        Ok(PendingAnswer::Ready(WireValue::structure().with("SpotFleetRequestId", id)))
    }

    fn pools_of_specification(
        &self,
        scope: &CallScope,
        launch: &WireValue,
    ) -> Result<Vec<FleetPool>, ApiError> {
        let mut played = launch_spec::PLAYED.to_vec();
        played.extend(["SpotPrice", "WeightedCapacity"]);
        refuse_others("LaunchSpecifications", launch, &played)?;
        // Here groups are structures with an id.
        let mut launch = launch.clone();
        let groups: Vec<&str> = launch
            .list("SecurityGroups")
            .iter()
            .filter_map(|group| group.text("GroupId"))
            .collect();
        let groups = WireValue::list_of(groups);
        launch.set("SecurityGroupIds", groups);
        launch.set("SecurityGroups", WireValue::List(Vec::new()));
        let spec = LaunchSpec::default().overridden(&launch)?;
        spec.check()?;
        self.check_runs(&spec)?;
        self.check_names(scope, &spec)?;
        let price = launch.text("SpotPrice").filter(|price| !price.is_empty());
        let bid = price.map(read_price).transpose()?;
        let weight = read_weight(&launch)?;
        let found = self.pools_for(scope, &spec, Market::Spot)?.into_iter();
        let pool = |pool| FleetPool {
            spec: spec.clone(),
            pool,
            bid,
            weight,
            priority: u64::MAX,
            origin: WireValue::structure(),
        };
        Ok(found.map(pool).collect())
    }

    pub(crate) fn spot_fleet_of(&self, scope: &CallScope, id: &str) -> Result<usize, ApiError> {
        check_id("InvalidSpotFleetRequestId.Malformed", id, "sfr-")?;
        let is_it =
            |it: &InstanceFleet| it.id == id && it.scope == *scope && it.spot_config.is_some();
        self.fleets.iter().position(is_it).ok_or_else(|| not_found(id))
    }

    pub(crate) fn modify_spot_fleet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "SpotFleetRequestId",
            "TargetCapacity",
            "OnDemandTargetCapacity",
            "ExcessCapacityTerminationPolicy",
        ];
        refuse_others("ModifySpotFleetRequest", input, &played)?;
        let id = input.text("SpotFleetRequestId").unwrap_or_default();
        let place = self.spot_fleet_of(scope, id)?;
        let Some(fleet) = self.fleets.get_mut(place) else { return Err(not_found(id)) };
        if fleet.state != "active" {
            let text = format!("The spot fleet request '{id}' is not active");
            return Err(ApiError::new("SpotFleetRequestNotInModifiableState", text));
        }
        let on_demand = read_capacity(input, "OnDemandTargetCapacity")?;
        let on_demand = on_demand.unwrap_or(fleet.on_demand_target / 1_000);
        let all = read_capacity(input, "TargetCapacity")?;
        let all = all.unwrap_or((fleet.spot_target + fleet.on_demand_target) / 1_000);
        let on_demand = on_demand.min(all);
        fleet.total = i64::try_from(all).unwrap_or(0);
        (fleet.spot_target, fleet.on_demand_target) =
            ((all - on_demand) * 1_000, on_demand * 1_000);
        if let Some(policy) = input.text("ExcessCapacityTerminationPolicy") {
            fleet.ends_excess = policy != "noTermination";
        }
        if let Some(config) = &mut fleet.spot_config {
            config.set("TargetCapacity", i64::try_from(all).unwrap_or(0));
        }
        self.end_excess(place, out);
        if self.fleets.get(place).is_some_and(|fleet| fleet.kind == FleetKind::Request) {
            self.fill_fleet(place, out);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    pub(crate) fn cancel_spot_fleets(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["DryRun", "SpotFleetRequestIds", "TerminateInstances"];
        refuse_others("CancelSpotFleetRequests", input, &played)?;
        let ends = input.flag("TerminateInstances") == Some(true);
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for id in input.texts("SpotFleetRequestIds") {
            let answer = WireValue::structure().with("SpotFleetRequestId", id);
            let (code, why) = match self.spot_fleet_of(scope, id) {
                Err(error) if error.code == "InvalidSpotFleetRequestId.Malformed" => {
                    ("fleetRequestIdMalformed", "is malformed")
                }
                Err(_) => ("fleetRequestIdDoesNotExist", "does not exist"),
                Ok(place) if self.fleets.get(place).is_some_and(|it| it.state != "active") => {
                    ("fleetRequestNotInCancellableState", "can't be cancelled in its state")
                }
                Ok(_) => ("", ""),
            };
            if !code.is_empty() {
                let text = format!("The spot fleet request ID '{id}' {why}");
                let error = WireValue::structure().with("Code", code).with("Message", text);
                failed.push(answer.with("Error", error));
                continue;
            }
            let place = self.spot_fleet_of(scope, id)?;
            let Some(fleet) = self.fleets.get_mut(place) else { continue };
            let before = state_of(fleet.state);
            fleet.state = if ends { "deleted_terminating" } else { "deleted_running" };
            fleet.ended.get_or_insert(self.now);
            let now = state_of(fleet.state);
            done.push(
                answer
                    .with("PreviousSpotFleetRequestState", before)
                    .with("CurrentSpotFleetRequestState", now),
            );
            if ends {
                self.end_fleet_instances(place, out);
            }
        }
        Ok(PendingAnswer::Ready(
            WireValue::structure()
                .with("SuccessfulFleetRequests", done)
                .with("UnsuccessfulFleetRequests", failed),
        ))
    }

    pub(crate) fn describe_spot_fleets(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["DryRun", "SpotFleetRequestIds", "NextToken", "MaxResults"];
        refuse_others("DescribeSpotFleetRequests", input, &played)?;
        let mut found = Vec::new();
        for id in input.texts("SpotFleetRequestIds") {
            found.extend(self.fleets.get(self.spot_fleet_of(scope, id)?));
        }
        if input.list("SpotFleetRequestIds").is_empty() {
            let own = |it: &&InstanceFleet| it.scope == *scope && it.spot_config.is_some();
            found.extend(self.fleets.iter().filter(own));
        }
        let (page, next) = take_page(found, input, (1, 1_000))?;
        let written = page.into_iter().map(|fleet| {
            let of = |market| self.fulfilled(fleet, market);
            let (spot, on_demand) = (of(Market::Spot), of(Market::OnDemand));
            let config = fleet.spot_config.clone().unwrap_or_else(WireValue::structure);
            let config = config
                .with("FulfilledCapacity", whole(spot + on_demand))
                .with("OnDemandFulfilledCapacity", whole(on_demand));
            WireValue::structure()
                .with("SpotFleetRequestId", fleet.id.as_str())
                .with("SpotFleetRequestState", state_of(self.fleet_state(fleet)))
                .with("ActivityStatus", self.activity(fleet))
                .with("CreateTime", self.instant(fleet.created))
                .with("SpotFleetRequestConfig", config)
                .with("Tags", tags_to_wire(&fleet.tags))
        });
        Ok(WireValue::structure()
            .with("SpotFleetRequestConfigs", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn describe_spot_fleet_instances(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["DryRun", "SpotFleetRequestId", "NextToken", "MaxResults"];
        refuse_others("DescribeSpotFleetInstances", input, &played)?;
        let id = input.text("SpotFleetRequestId").unwrap_or_default();
        let fleet = self.fleets.get(self.spot_fleet_of(scope, id)?);
        let own = fleet.map(|fleet| fleet.instances.as_slice()).unwrap_or_default().iter();
        let own = own.filter_map(|(index, _)| self.instances.get(*index));
        let own: Vec<_> = own.filter(|it| it.is_alive()).collect();
        let (page, next) = take_page(own, input, (1, 1_000))?;
        let written = page.into_iter().map(|it| {
            WireValue::structure()
                .with("InstanceId", it.id.as_str())
                .with("InstanceType", it.pool.name.as_str())
                .with("InstanceHealth", "healthy")
                .with_some("SpotInstanceRequestId", it.spot_request.as_deref())
        });
        Ok(WireValue::structure()
            .with("ActiveInstances", WireValue::list_of(written))
            .with("SpotFleetRequestId", id)
            .with_some("NextToken", next))
    }
}
