//! Fleets as EC2 writes them.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope};
use crate::desk_records::{FleetKind, InstanceFleet};
use crate::fleet::{fleet_not_found, whole};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::resource_tags::tags_to_wire;

const fn lifecycle(market: Market) -> &'static str {
    match market {
        Market::Spot => "spot",
        Market::OnDemand => "on-demand",
    }
}

impl ApiDesk {
    /// Completes the answer to a CreateFleet call, once it is known which launches were refused.
    pub(crate) fn finish_fleet(&self, id: &str) -> Result<WireValue, ApiError> {
        let fleet = self.fleets.iter().find(|it| it.id == id).ok_or_else(|| fleet_not_found(id))?;
        let answer = WireValue::structure().with("FleetId", id);
        if fleet.kind != FleetKind::Instant {
            return Ok(answer);
        }
        Ok(answer
            .with("Instances", WireValue::List(self.fleet_instances(fleet)))
            .with("Errors", WireValue::List(Self::fleet_errors(fleet))))
    }

    /// The existing instances that a fleet has launched, by pool and market.
    fn fleet_instances(&self, fleet: &InstanceFleet) -> Vec<WireValue> {
        let mut written = Vec::new();
        for (place, of) in fleet.pools.iter().enumerate() {
            for market in [Market::OnDemand, Market::Spot] {
                let own = fleet.instances.iter().filter(|(_, pool)| *pool == place);
                let own = own.filter_map(|(index, _)| self.instances.get(*index));
                let ids: Vec<&str> = own
                    .filter(|it| it.market == market && it.is_alive())
                    .map(|it| it.id.as_str())
                    .collect();
                if !ids.is_empty() {
                    written.push(
                        WireValue::structure()
                            .with("LaunchTemplateAndOverrides", of.origin.clone())
                            .with("Lifecycle", lifecycle(market))
                            .with("InstanceIds", ids)
                            .with("InstanceType", of.pool.name.as_str()),
                    );
                }
            }
        }
        written
    }

    fn fleet_errors(fleet: &InstanceFleet) -> Vec<WireValue> {
        let error = |(pool, market, error): &(usize, Market, ApiError)| {
            let origin = fleet.pools.get(*pool).map(|of| of.origin.clone());
            WireValue::structure()
                .with_some("LaunchTemplateAndOverrides", origin)
                .with("Lifecycle", lifecycle(*market))
                .with("ErrorCode", error.code.as_str())
                .with("ErrorMessage", error.message.as_str())
        };
        fleet.errors.iter().map(error).collect()
    }

    pub(crate) fn fleet_state(&self, fleet: &InstanceFleet) -> &'static str {
        let is_empty = fleet
            .instances
            .iter()
            .all(|(index, _)| self.instances.get(*index).is_none_or(|it| !it.is_alive()));
        if fleet.state.starts_with("deleted") && is_empty { "deleted" } else { fleet.state }
    }

    pub(crate) fn describe_fleets(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others(
            "DescribeFleets",
            input,
            &["DryRun", "MaxResults", "NextToken", "FleetIds", "Filters"],
        )?;
        let mut found = Vec::new();
        for id in input.texts("FleetIds") {
            let place = self.fleet_of(scope, id).ok_or_else(|| fleet_not_found(id))?;
            found.extend(self.fleets.get(place));
        }
        if input.list("FleetIds").is_empty() {
            // Instant fleets are described by their ids alone.
            let own = self.fleets.iter().filter(|it| it.scope == *scope);
            found
                .extend(own.filter(|it| it.kind != FleetKind::Instant && it.spot_config.is_none()));
        }
        let known =
            ["fleet-state", "type", "activity-status", "excess-capacity-termination-policy"];
        let values = |it: &&InstanceFleet, name: &str| {
            Some(vec![match name {
                "fleet-state" => self.fleet_state(it).to_owned(),
                "type" => kind_name(it.kind).to_owned(),
                "activity-status" => self.activity(it).to_owned(),
                "excess-capacity-termination-policy" => policy_name(it).to_owned(),
                _ => return None,
            }])
        };
        let found = filter_by(found, input, values, &known)?;
        let (page, next) = take_page(found, input, (1, 1_000))?;
        let written = page.into_iter().map(|fleet| self.fleet_to_wire(fleet));
        Ok(WireValue::structure()
            .with("Fleets", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    pub(crate) fn activity(&self, fleet: &InstanceFleet) -> &'static str {
        let spot = self.fulfilled(fleet, Market::Spot) >= fleet.spot_target;
        let on_demand = self.fulfilled(fleet, Market::OnDemand) >= fleet.on_demand_target;
        match (self.fleet_state(fleet), spot && on_demand) {
            ("deleted_terminating", _) => "pending_termination",
            (_, true) => "fulfilled",
            _ if !fleet.errors.is_empty() => "error",
            _ => "pending_fulfillment",
        }
    }

    fn fleet_to_wire(&self, fleet: &InstanceFleet) -> WireValue {
        let of_markets =
            [Market::OnDemand, Market::Spot].map(|market| self.fulfilled(fleet, market));
        let [on_demand, spot] = of_markets;
        let units = |of: u64| i64::try_from(of / 1_000).unwrap_or(i64::MAX);
        let target = WireValue::structure()
            .with("TotalTargetCapacity", fleet.total)
            .with("OnDemandTargetCapacity", units(fleet.on_demand_target))
            .with("SpotTargetCapacity", units(fleet.spot_target))
            .with("DefaultTargetCapacityType", lifecycle(fleet.default_market));
        let options = WireValue::structure()
            .with("AllocationStrategy", fleet.strategy.as_str())
            .with("InstanceInterruptionBehavior", "terminate");
        let on_demand_options =
            WireValue::structure().with("AllocationStrategy", fleet.on_demand_strategy.as_str());
        let mut wire = WireValue::structure()
            .with("FleetId", fleet.id.as_str())
            .with("FleetState", self.fleet_state(fleet))
            .with("ActivityStatus", self.activity(fleet))
            .with("CreateTime", self.instant(fleet.created))
            .with("Type", kind_name(fleet.kind))
            .with("ExcessCapacityTerminationPolicy", policy_name(fleet))
            .with("FulfilledCapacity", whole(on_demand + spot))
            .with("FulfilledOnDemandCapacity", whole(on_demand))
            .with("LaunchTemplateConfigs", fleet.configs.clone())
            .with("TargetCapacitySpecification", target)
            .with("TerminateInstancesWithExpiration", fleet.ends_with_expiration)
            .with("ReplaceUnhealthyInstances", false)
            .with("SpotOptions", options)
            .with("OnDemandOptions", on_demand_options)
            .with("Tags", tags_to_wire(&fleet.tags))
            .with_some("ClientToken", fleet.token.as_deref())
            .with_some("ValidUntil", fleet.valid_until.map(|until| self.instant(until)));
        if fleet.kind == FleetKind::Instant {
            wire.set("Instances", WireValue::List(self.fleet_instances(fleet)));
            wire.set("Errors", WireValue::List(Self::fleet_errors(fleet)));
        }
        wire
    }

    pub(crate) fn describe_fleet_instances(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["DryRun", "MaxResults", "NextToken", "FleetId", "Filters"];
        refuse_others("DescribeFleetInstances", input, &played)?;
        let id = input.text("FleetId").unwrap_or_default();
        let place = self.fleet_of(scope, id).ok_or_else(|| fleet_not_found(id))?;
        let own =
            self.fleets.get(place).map(|fleet| fleet.instances.as_slice()).unwrap_or_default();
        let own = own
            .iter()
            .filter_map(|(index, _)| self.instances.get(*index))
            .filter(|it| it.is_alive());
        let values = |it: &&crate::ec2_instance::Ec2Instance, name: &str| match name {
            "instance-type" => Some(vec![it.pool.name.clone()]),
            _ => None,
        };
        let own = filter_by(own.collect(), input, values, &["instance-type"])?;
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
            .with("FleetId", id)
            .with_some("NextToken", next))
    }
}

const fn kind_name(kind: FleetKind) -> &'static str {
    match kind {
        FleetKind::Instant => "instant",
        FleetKind::Request => "request",
        FleetKind::Maintain => "maintain",
    }
}

const fn policy_name(fleet: &InstanceFleet) -> &'static str {
    if fleet.ends_excess { "termination" } else { "no-termination" }
}
