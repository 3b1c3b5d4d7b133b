//! EC2 fleets: instant fleets, requests, and maintained fleets. AWS doesn't say how it chooses a fleet's pool; here the
//! choice follows the availability in the experiment, and then the price.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;
use dormouse_units::Time;

use crate::desk::{ApiDesk, CallScope, PendingAnswer, PoolRefusal};
use crate::desk_records::{FleetKind, FleetPool, InstanceFleet, Units};
use crate::ec2_instance::InterruptionBehavior;
use crate::listing::refuse_others;
use crate::resource_tags::{set_tags, tags_for};
use crate::run_instances::{LaunchOrder, SpotWish, read_price};
use crate::spot_request::SpotState;

pub(crate) fn units(of: f64) -> Units {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by the same expression"
    )]
    let thousandths = (of * 1_000.0).round().clamp(0.0, 1e15) as u64;
    thousandths
}

#[expect(clippy::cast_precision_loss, reason = "capacities are far below 2^53")]
pub(crate) fn whole(units: Units) -> f64 {
    units as f64 / 1_000.0
}

impl ApiDesk {
    pub(crate) fn create_fleet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "DryRun",
            "ClientToken",
            "SpotOptions",
            "OnDemandOptions",
            "ExcessCapacityTerminationPolicy",
            "LaunchTemplateConfigs",
            "TargetCapacitySpecification",
            "TerminateInstancesWithExpiration",
            "Type",
            "ValidFrom",
            "ValidUntil",
            "TagSpecifications",
        ];
        refuse_others("CreateFleet", input, &played)?;
        if input.instant("ValidFrom").is_some_and(|from| self.time_of(from) > self.now) {
            let text = "CreateFleet does not play a ValidFrom in the future here; leave it out";
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        let none = WireValue::structure();
        let spot = input.member("SpotOptions").unwrap_or(&none);
        refuse_others(
            "SpotOptions",
            spot,
            &["AllocationStrategy", "InstanceInterruptionBehavior"],
        )?;
        let behavior = InterruptionBehavior::from_name(spot.text("InstanceInterruptionBehavior"));
        if behavior != InterruptionBehavior::Terminate {
            let text = "SpotOptions.InstanceInterruptionBehavior: fleets play terminate alone; take a persistent spot request";
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        let on_demand = input.member("OnDemandOptions").unwrap_or(&none);
        refuse_others("OnDemandOptions", on_demand, &["AllocationStrategy"])?;
        let kind = match input.text("Type") {
            Some("instant") => FleetKind::Instant,
            Some("request") => FleetKind::Request,
            _ => FleetKind::Maintain,
        };
        let target = input.member("TargetCapacitySpecification").unwrap_or(&none);
        let targets = [
            "TotalTargetCapacity",
            "OnDemandTargetCapacity",
            "SpotTargetCapacity",
            "DefaultTargetCapacityType",
        ];
        refuse_others("TargetCapacitySpecification", target, &targets)?;
        let mut pools = self.fleet_pools(scope, input.list("LaunchTemplateConfigs"))?;
        // Other fleets tag what they launch by their templates.
        for pool in pools.iter_mut().filter(|_| kind == FleetKind::Instant) {
            pool.spec.add_tags(input);
            pool.spec.check()?;
        }
        if pools.is_empty() {
            let text = "The request must contain the parameter LaunchTemplateConfigs";
            return Err(ApiError::new("MissingParameter", text));
        }
        let default_market = match target.text("DefaultTargetCapacityType") {
            Some("spot") => Market::Spot,
            _ => Market::OnDemand,
        };
        let (spot_target, on_demand_target) = split_target(target, default_market)?;
        let total = target.integer("TotalTargetCapacity").unwrap_or(0);
        let fleet = InstanceFleet {
            id: self.new_id("fleet"),
            scope: scope.clone(),
            kind,
            created: self.now,
            state: "active",
            token: input.text("ClientToken").map(str::to_owned),
            configs: input
                .member("LaunchTemplateConfigs")
                .cloned()
                .unwrap_or(WireValue::List(Vec::new())),
            spot_config: None,
            pools,
            total,
            spot_target,
            on_demand_target,
            default_market,
            strategy: spot.text("AllocationStrategy").unwrap_or("lowest-price").to_owned(),
            on_demand_strategy: on_demand
                .text("AllocationStrategy")
                .unwrap_or("lowest-price")
                .to_owned(),
            ends_excess: input.text("ExcessCapacityTerminationPolicy") != Some("no-termination"),
            valid_until: input.instant("ValidUntil").map(|until| self.time_of(until)),
            ends_with_expiration: input.flag("TerminateInstancesWithExpiration") == Some(true),
            ended: None,
            instances: Vec::new(),
            errors: Vec::new(),
            tags: tags_for(input, "fleet"),
        };
        let id = fleet.id.clone();
        self.fleets.push(fleet);
        self.fill_fleet(self.fleets.len() - 1, out);
        Ok(PendingAnswer::Fleet(id))
    }

    pub(crate) fn fleet_pools(
        &self,
        scope: &CallScope,
        configs: &[WireValue],
    ) -> Result<Vec<FleetPool>, ApiError> {
        let mut pools = Vec::new();
        for config in configs {
            let template = config.member("LaunchTemplateSpecification");
            if template.is_some_and(|it| it.text("Version").unwrap_or_default().is_empty()) {
                let text =
                    "The request must contain the parameter LaunchTemplateSpecification.Version";
                return Err(ApiError::new("MissingParameter", text));
            }
            let (spec, _) = self.template_of(scope, template)?;
            let resolved = match template {
                Some(template) => Some(self.resolved_template(scope, template)?),
                None => None,
            };
            let mut overrides = config.list("Overrides").to_vec();
            if overrides.is_empty() {
                overrides.push(WireValue::structure());
            }
            for of in overrides {
                let played = [
                    "InstanceType",
                    "MaxPrice",
                    "SpotPrice",
                    "SubnetId",
                    "AvailabilityZone",
                    "WeightedCapacity",
                    "Priority",
                    "ImageId",
                ];
                refuse_others("Overrides", &of, &played)?;
                let mut spec = spec.clone().overridden(&of)?;
                let zone = of.text("AvailabilityZone").filter(|zone| !zone.is_empty());
                spec.zone = zone.map(str::to_owned).or(spec.zone);
                spec.check()?;
                self.check_runs(&spec)?;
                self.check_names(scope, &spec)?;
                let bid = of
                    .text("MaxPrice")
                    .or(of.text("SpotPrice"))
                    .filter(|it| !it.is_empty())
                    .map(read_price)
                    .transpose()?;
                let weight = read_weight(&of)?;
                let priority = of.float("Priority").map_or(u64::MAX, units);
                let origin = WireValue::structure()
                    .with_some("LaunchTemplateSpecification", resolved.clone())
                    .with("Overrides", of);
                let found = self.pools_for(scope, &spec, Market::OnDemand)?;
                pools.extend(found.into_iter().map(|pool| FleetPool {
                    spec: spec.clone(),
                    pool,
                    bid,
                    weight,
                    priority,
                    origin: origin.clone(),
                }));
            }
        }
        Ok(pools)
    }

    /// The capacity that a fleet has in a market.
    pub(crate) fn fulfilled(&self, fleet: &InstanceFleet, market: Market) -> Units {
        let up = fleet.instances.iter().filter(|(index, _)| {
            self.instances.get(*index).is_some_and(|it| it.market == market && it.is_up())
        });
        up.filter_map(|(_, pool)| fleet.pools.get(*pool)).map(|pool| pool.weight).sum()
    }

    /// Launches the capacity that a fleet lacks, as far as pools have room.
    pub(crate) fn fill_fleet(&mut self, place: usize, out: &mut Vec<Decision>) {
        for market in [Market::OnDemand, Market::Spot] {
            let Some(fleet) = self.fleets.get_mut(place) else { return };
            fleet.errors.retain(|(_, of, _)| *of != market);
            loop {
                let Some(fleet) = self.fleets.get(place) else { return };
                let target =
                    if market == Market::Spot { fleet.spot_target } else { fleet.on_demand_target };
                let missing = target.saturating_sub(self.fulfilled(fleet, market));
                if missing == 0 {
                    break;
                }
                match self.choose_pool(fleet, market, missing) {
                    Ok(pool) => self.launch_of_fleet(place, pool, market, out),
                    Err(errors) => {
                        if let Some(fleet) = self.fleets.get_mut(place) {
                            fleet.errors.extend(errors);
                        }
                        break;
                    }
                }
            }
        }
    }

    /// The pool in which a fleet launches next, by its strategy.
    fn choose_pool(
        &self,
        fleet: &InstanceFleet,
        market: Market,
        missing: Units,
    ) -> Result<usize, Vec<(usize, Market, ApiError)>> {
        let (mut best, mut errors) = (None, Vec::new());
        let strategy =
            if market == Market::Spot { &fleet.strategy } else { &fleet.on_demand_strategy };
        for (place, of) in fleet.pools.iter().enumerate() {
            let bid = self.bid_in(&of.pool, of.bid, market);
            let wanted = usize::try_from(missing.div_ceil(of.weight)).unwrap_or(usize::MAX);
            let terms = (market, bid);
            let refusal = match self.room_in(&fleet.scope.account, &of.pool, terms, wanted) {
                Ok((0, refusal)) | Err(refusal) => refusal,
                Ok(_) if self.addresses_left(&fleet.scope, &of.spec, &of.pool.zone) == 0 => {
                    let error = self.no_address(&fleet.scope, &of.spec, &of.pool.zone);
                    errors.push((place, market, error));
                    continue;
                }
                Ok((room, _)) => {
                    let price =
                        self.market.price(&of.pool.kind, market, self.now).unwrap_or_default();
                    // Per unit, rounded up to a nano-dollar.
                    let price = (u128::from(price.as_nanos_per_hour()) * 1_000)
                        .div_ceil(u128::from(of.weight));
                    let lacks = wanted - room;
                    let own = fleet.instances.iter().filter(|(index, pool)| {
                        *pool == place && self.instances.get(*index).is_some_and(|it| it.is_up())
                    });
                    let key = match strategy.as_str() {
                        "diversified" => (own.count(), 0, price),
                        "price-capacity-optimized"
                        | "priceCapacityOptimized"
                        | "capacity-optimized"
                        | "capacityOptimized" => (lacks, 0, price),
                        "capacity-optimized-prioritized" | "capacityOptimizedPrioritized" => {
                            (lacks, of.priority, price)
                        }
                        "prioritized" => (0, of.priority, price),
                        _ => (0, 0, price),
                    };
                    if best.as_ref().is_none_or(|(known, _)| key < *known) {
                        best = Some((key, place));
                    }
                    continue;
                }
            };
            let error = match refusal {
                // Fleets have a code of their own for it.
                PoolRefusal::NoCapacity => ApiError::new(
                    "InsufficientInstanceCapacity",
                    format!(
                        "We currently do not have sufficient {} capacity in {}.",
                        of.pool.name, of.pool.zone
                    ),
                ),
                other => Self::refusal_error(other, &of.pool, terms),
            };
            errors.push((place, market, error));
        }
        best.map(|(_, place)| place).ok_or(errors)
    }

    fn launch_of_fleet(
        &mut self,
        place: usize,
        pool: usize,
        market: Market,
        out: &mut Vec<Decision>,
    ) {
        let Some(fleet) = self.fleets.get(place) else { return };
        let Some(of) = fleet.pools.get(pool) else { return };
        let (scope, mut spec, wish) =
            (fleet.scope.clone(), of.spec.clone(), SpotWish { bid: of.bid, ..SpotWish::default() });
        let key = match fleet.spot_config {
            Some(_) => "aws:ec2spot:fleet-request-id",
            None => "aws:ec2:fleet-id",
        };
        set_tags(&mut spec.tags, &[(key.to_owned(), fleet.id.clone())]);
        let (fleet_id, capacity, bid) =
            (Some(fleet.id.clone()), of.pool.clone(), self.bid_in(&of.pool, of.bid, market));
        let spot_request = (market == Market::Spot).then(|| {
            let request = (&wish, &spec.request_tags[..], fleet_id.clone());
            let id = self.new_request(&scope, &spec, request);
            self.settle_request(&id, SpotState::Active, "fulfilled");
            id
        });
        let order = LaunchOrder {
            scope,
            spec,
            pool: capacity,
            alternatives: Vec::new(),
            market,
            bid,
            behavior: InterruptionBehavior::Terminate,
            reservation: self.new_id("r"),
            launch_index: 0,
            token: None,
            spot_request,
            fleet: fleet_id,
        };
        let index = self.launch(order, out);
        if let Some(fleet) = self.fleets.get_mut(place) {
            fleet.instances.push((index, pool));
        }
    }

    /// Launches the capacity that maintained fleets lack, and ends fleets that have expired.
    pub(crate) fn keep_fleets(&mut self, out: &mut Vec<Decision>) {
        for place in 0..self.fleets.len() {
            let Some(fleet) = self.fleets.get_mut(place) else { continue };
            if fleet.state != "active" {
                continue;
            }
            if fleet.valid_until.is_some_and(|until| until <= self.now) {
                fleet.ended = Some(self.now);
                fleet.state = if fleet.ends_with_expiration {
                    "deleted_terminating"
                } else {
                    "deleted_running"
                };
                if fleet.ends_with_expiration {
                    self.end_fleet_instances(place, out);
                }
                continue;
            }
            if fleet.kind == FleetKind::Maintain {
                self.fill_fleet(place, out);
            }
        }
    }

    /// The instants at which more capacity may become available for a fleet that lacks some.
    pub(crate) fn fleet_changes(&self) -> Vec<Time> {
        let mut changes = Vec::new();
        for fleet in self.fleets.iter().filter(|fleet| fleet.state == "active") {
            changes.extend(fleet.valid_until);
            let is_short = self.fulfilled(fleet, Market::Spot) < fleet.spot_target
                || self.fulfilled(fleet, Market::OnDemand) < fleet.on_demand_target;
            if fleet.kind == FleetKind::Maintain && is_short {
                let pools = fleet.pools.iter();
                changes.extend(
                    pools.filter_map(|of| self.market.next_change(&of.pool.kind, self.now)),
                );
            }
        }
        changes
    }

    /// Terminates the instances of a fleet.
    pub(crate) fn end_fleet_instances(&mut self, place: usize, out: &mut Vec<Decision>) {
        let Some(fleet) = self.fleets.get(place) else { return };
        for (index, _) in fleet.instances.clone() {
            self.terminate(index, out);
        }
    }

    pub(crate) fn fleet_of(&self, scope: &CallScope, id: &str) -> Option<usize> {
        self.fleets
            .iter()
            .position(|it| it.id == id && it.scope == *scope && it.spot_config.is_none())
    }

    pub(crate) fn modify_fleet(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let played =
            ["DryRun", "ExcessCapacityTerminationPolicy", "FleetId", "TargetCapacitySpecification"];
        refuse_others("ModifyFleet", input, &played)?;
        let id = input.text("FleetId").unwrap_or_default();
        let place = self.fleet_of(scope, id).ok_or_else(|| fleet_not_found(id))?;
        let Some(fleet) = self.fleets.get_mut(place) else { return Err(fleet_not_found(id)) };
        if fleet.kind != FleetKind::Maintain || fleet.state != "active" {
            let text = format!(
                "The fleet '{id}' is not an active fleet of type maintain, and can't be modified"
            );
            return Err(ApiError::new("FleetNotInModifiableState", text));
        }
        if let Some(target) = input.member("TargetCapacitySpecification") {
            (fleet.spot_target, fleet.on_demand_target) =
                split_target(target, fleet.default_market)?;
            fleet.total = target.integer("TotalTargetCapacity").unwrap_or(fleet.total);
        }
        if let Some(policy) = input.text("ExcessCapacityTerminationPolicy") {
            fleet.ends_excess = policy != "no-termination";
        }
        self.end_excess(place, out);
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    /// Terminates the instances of a fleet beyond its target, the ones launched last first.
    pub(crate) fn end_excess(&mut self, place: usize, out: &mut Vec<Decision>) {
        for market in [Market::OnDemand, Market::Spot] {
            let Some(fleet) = self.fleets.get(place).filter(|fleet| fleet.ends_excess) else {
                return;
            };
            let target =
                if market == Market::Spot { fleet.spot_target } else { fleet.on_demand_target };
            let mut excess = self.fulfilled(fleet, market).saturating_sub(target);
            let mut ends = Vec::new();
            for (index, pool) in fleet.instances.iter().rev() {
                let weight = fleet.pools.get(*pool).map_or(0, |pool| pool.weight);
                let is_up =
                    self.instances.get(*index).is_some_and(|it| it.market == market && it.is_up());
                if is_up && weight <= excess {
                    excess -= weight;
                    ends.push(*index);
                }
            }
            for index in ends {
                self.terminate(index, out);
            }
        }
    }

    pub(crate) fn delete_fleets(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteFleets", input, &["DryRun", "FleetIds", "TerminateInstances"])?;
        let ends = input.flag("TerminateInstances") == Some(true);
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for id in input.texts("FleetIds") {
            let mut fail = |code: &str, text: String| {
                let error = WireValue::structure().with("Code", code).with("Message", text);
                failed.push(WireValue::structure().with("FleetId", id).with("Error", error));
            };
            let Some(place) = self.fleet_of(scope, id) else {
                fail("fleetIdDoesNotExist", format!("The fleet '{id}' does not exist"));
                continue;
            };
            let Some(fleet) = self.fleets.get_mut(place) else { continue };
            if fleet.state != "active" {
                fail(
                    "fleetNotInDeletableState",
                    format!("The fleet '{id}' is not in a state in which it can be deleted"),
                );
                continue;
            }
            if fleet.kind == FleetKind::Instant && !ends {
                fail(
                    "fleetNotInDeletableState",
                    "An instant fleet is deleted with its instances alone".to_owned(),
                );
                continue;
            }
            let before = std::mem::replace(
                &mut fleet.state,
                if ends { "deleted_terminating" } else { "deleted_running" },
            );
            let now = fleet.state;
            fleet.ended.get_or_insert(self.now);
            done.push(
                WireValue::structure()
                    .with("FleetId", id)
                    .with("PreviousFleetState", before)
                    .with("CurrentFleetState", now),
            );
            if ends {
                self.end_fleet_instances(place, out);
            }
        }
        Ok(PendingAnswer::Ready(
            WireValue::structure()
                .with("SuccessfulFleetDeletions", done)
                .with("UnsuccessfulFleetDeletions", failed),
        ))
    }
}

pub(crate) fn fleet_not_found(id: &str) -> ApiError {
    ApiError::new("InvalidFleetId.NotFound", format!("The fleet ID '{id}' does not exist"))
}

/// The most units of a fleet's target capacity: EC2's quota.
const MOST_UNITS: u64 = 10_000;

/// Reads a target capacity.
///
/// # Errors
///
/// `InvalidParameterValue` for a negative one, and for one above EC2's quota.
pub(crate) fn read_capacity(from: &WireValue, name: &str) -> Result<Option<Units>, ApiError> {
    let Some(said) = from.integer(name) else { return Ok(None) };
    let read = u64::try_from(said).ok().filter(|units| *units <= MOST_UNITS);
    let text = || format!("Value ({said}) for parameter {name} is not from 0 to {MOST_UNITS}.");
    read.map(Some).ok_or_else(|| ApiError::new("InvalidParameterValue", text()))
}

/// Reads the weight of an instance in a fleet; one unit if none is given.
///
/// # Errors
///
/// `InvalidParameterValue` for a weight that is not above 0.
pub(crate) fn read_weight(from: &WireValue) -> Result<Units, ApiError> {
    let said = from.float("WeightedCapacity").unwrap_or(1.0);
    let text = || format!("Value ({said}) for parameter WeightedCapacity is not above 0.");
    let read = Some(units(said)).filter(|weight| *weight > 0);
    read.ok_or_else(|| ApiError::new("InvalidParameterValue", text()))
}

/// The spot and the on-demand part of a fleet's target capacity.
fn split_target(target: &WireValue, default: Market) -> Result<(Units, Units), ApiError> {
    let total = read_capacity(target, "TotalTargetCapacity")?.unwrap_or(0);
    let spot = read_capacity(target, "SpotTargetCapacity")?;
    let on_demand = read_capacity(target, "OnDemandTargetCapacity")?;
    if spot.unwrap_or(0).saturating_add(on_demand.unwrap_or(0)) > total {
        let text = "SpotTargetCapacity and OnDemandTargetCapacity are more than TotalTargetCapacity together";
        return Err(ApiError::new("InvalidParameterCombination", text));
    }
    let rest = total - spot.unwrap_or(0) - on_demand.unwrap_or(0);
    let (more_spot, more_on_demand) = if default == Market::Spot { (rest, 0) } else { (0, rest) };
    Ok(((spot.unwrap_or(0) + more_spot) * 1_000, (on_demand.unwrap_or(0) + more_on_demand) * 1_000))
}
