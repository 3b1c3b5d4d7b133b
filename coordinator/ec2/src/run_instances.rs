//! RunInstances: instances on demand and at spot prices.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_model::Decision;
use dormouse_units::{Price, VmId};

use crate::announcements::AnnouncedChange;
use crate::calls::end_dry_run;
use crate::catalogue_answers::is_amazon_linux;
use crate::desk::{ApiDesk, CallScope, PendingAnswer, PoolRefusal};
use crate::ec2_instance::{Ec2Instance, InstanceStage, InterruptionBehavior, StoppedBy};
use crate::key_fingerprint::login_line;
use crate::launch_spec::{self, LaunchSpec};
use crate::listing::refuse_others;
use crate::pool_market::CapacityPool;
use crate::spot_request::{SpotRequest, SpotState, message_of};

/// An instance to be launched, with its specification, pool, market and request.
#[derive(Clone, Debug)]
pub(crate) struct LaunchOrder {
    pub(crate) scope: CallScope,
    pub(crate) spec: LaunchSpec,
    pub(crate) pool: CapacityPool,
    pub(crate) alternatives: Vec<CapacityPool>,
    pub(crate) market: Market,
    pub(crate) bid: Option<Price>,
    pub(crate) behavior: InterruptionBehavior,
    pub(crate) reservation: String,
    pub(crate) launch_index: i64,
    pub(crate) token: Option<String>,
    pub(crate) spot_request: Option<String>,
    pub(crate) fleet: Option<String>,
}

/// The options with which a spot instance is requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpotWish {
    pub(crate) is_persistent: bool,
    pub(crate) bid: Option<Price>,
    pub(crate) behavior: InterruptionBehavior,
    pub(crate) valid_until: Option<i64>,
}

/// Parses a price.
///
/// # Errors
///
/// `InvalidParameterValue`: the text is no price.
pub(crate) fn read_price(text: &str) -> Result<Price, ApiError> {
    let price = text.parse::<Price>().ok().filter(|price| price.as_nanos_per_hour() > 0);
    price.ok_or_else(|| {
        ApiError::new(
            "InvalidParameterValue",
            format!("Invalid value '{text}' for a price per hour"),
        )
    })
}

/// Fails for an interruption behaviour that needs a persistent request, if the request is not persistent.
///
/// # Errors
///
/// `InvalidParameterCombination`.
pub(crate) fn check_behavior(wish: &SpotWish) -> Result<(), ApiError> {
    if wish.behavior != InterruptionBehavior::Terminate && !wish.is_persistent {
        let text = format!(
            "The interruption behavior {} wants a persistent spot request, not a one-time one.",
            wish.behavior.name()
        );
        return Err(ApiError::new("InvalidParameterCombination", text));
    }
    Ok(())
}

impl ApiDesk {
    pub(crate) fn run_instances(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
        out: &mut Vec<Decision>,
    ) -> Result<PendingAnswer, ApiError> {
        let mut played = launch_spec::PLAYED.to_vec();
        played.extend([
            "MinCount",
            "MaxCount",
            "ClientToken",
            "DryRun",
            "LaunchTemplate",
            "InstanceMarketOptions",
        ]);
        refuse_others("RunInstances", input, &played)?;
        let (template, options) = self.template_of(scope, input.member("LaunchTemplate"))?;
        let spec = template.overridden(input)?.with_default_type();
        spec.check()?;
        self.check_runs(&spec)?;
        let options = input.member("InstanceMarketOptions").or(options.as_ref());
        let wish = match options {
            Some(options) if options.text("MarketType") == Some("spot") => {
                Some(spot_wish(options)?)
            }
            Some(options) if options.text("MarketType").is_some() => {
                let text = format!(
                    "The market {} is not played here",
                    options.text("MarketType").unwrap_or_default()
                );
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            _ => None,
        };
        let count = |name: &str| usize::try_from(input.integer(name).unwrap_or(0)).unwrap_or(0);
        let (least, most) = (count("MinCount"), count("MaxCount"));
        if least == 0 || most < least {
            let text = "MinCount has to be at least 1, and MaxCount at least MinCount";
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let market = if wish.is_some() { Market::Spot } else { Market::OnDemand };
        self.check_names(scope, &spec)?;
        let pools = self.pools_for(scope, &spec, market)?;
        end_dry_run(input)?;
        let mut refused = None;
        for (place, pool) in pools.iter().enumerate() {
            let bid = self.bid_in(pool, wish.as_ref().and_then(|wish| wish.bid), market);
            let (room, bound) = match self.room_in(&scope.account, pool, (market, bid), most) {
                Ok(room) => room,
                Err(refusal) => (0, refusal),
            };
            if room < least {
                refused.get_or_insert(Self::refusal_error(bound, pool, (market, bid)));
                continue;
            }
            let addresses = self.addresses_left(scope, &spec, &pool.zone);
            if addresses < least || spec.private_ip.is_some() && most > 1 {
                refused.get_or_insert(self.no_address(scope, &spec, &pool.zone));
                continue;
            }
            let room = room.min(addresses);
            let alternatives = pools.get(place + 1..).unwrap_or_default().iter().rev().cloned();
            let order = LaunchOrder {
                scope: scope.clone(),
                spec,
                pool: pool.clone(),
                alternatives: alternatives.collect(),
                market,
                bid,
                behavior: wish
                    .as_ref()
                    .map_or_else(InterruptionBehavior::default, |wish| wish.behavior),
                reservation: self.new_id("r"),
                launch_index: 0,
                token: input.text("ClientToken").map(str::to_owned),
                spot_request: None,
                fleet: None,
            };
            return Ok(self.launch_all(&order, wish.as_ref(), (room, least), out));
        }
        Err(refused.unwrap_or_else(|| {
            let text = format!("Invalid value '{}' for InstanceType.", spec.kind);
            ApiError::new("InvalidParameterValue", text)
        }))
    }

    fn launch_all(
        &mut self,
        order: &LaunchOrder,
        wish: Option<&SpotWish>,
        (count, least): (usize, usize),
        out: &mut Vec<Decision>,
    ) -> PendingAnswer {
        let mut instances = Vec::with_capacity(count);
        for launch_index in (0_i64..).take(count) {
            let spot_request = wish.map(|wish| {
                let fleet = order.fleet.clone();
                let request = (wish, &order.spec.request_tags[..], fleet);
                let id = self.new_request(&order.scope, &order.spec, request);
                self.settle_request(&id, SpotState::Active, "fulfilled");
                id
            });
            let order = LaunchOrder { launch_index, spot_request, ..order.clone() };
            instances.push(self.launch(order, out));
        }
        PendingAnswer::Reservation { instances, least }
    }

    /// Pools in which an instance of this specification can be launched, the first choice first: spot pools by their
    /// price, others by their zone.
    ///
    /// # Errors
    ///
    /// `InvalidParameterValue` if the region has no such type or zone; `InvalidSubnetID.NotFound`.
    pub(crate) fn pools_for(
        &self,
        scope: &CallScope,
        spec: &LaunchSpec,
        market: Market,
    ) -> Result<Vec<CapacityPool>, ApiError> {
        let wrong = |text: String| ApiError::new("InvalidParameterValue", text);
        let all = self.market.pools(&scope.region);
        let mut pools: Vec<_> = all.into_iter().filter(|pool| pool.name == spec.kind).collect();
        if pools.is_empty() {
            return Err(wrong(format!("Invalid value '{}' for InstanceType.", spec.kind)));
        }
        if spec.cpu_credits.as_deref() == Some("unlimited") && !self.has_credits(&pools) {
            let text = "CreditSpecification: only instances of burstable types have credits.";
            return Err(ApiError::new("InvalidParameterCombination", text));
        }
        let of_subnet = match &spec.subnet {
            Some(subnet) => Some(self.zone_of_subnet(scope, subnet)?),
            None => None,
        };
        for zone in [of_subnet.as_ref(), spec.zone.as_ref()].into_iter().flatten() {
            if !self.market.zones(&scope.region).contains(zone) {
                return Err(wrong(format!("Invalid availability zone: [{zone}]")));
            }
            if !pools.iter().any(|pool| pool.zone == *zone) {
                let text = format!(
                    "Your requested instance type ({}) is not supported in your requested Availability Zone ({zone}).",
                    spec.kind
                );
                return Err(ApiError::new("Unsupported", text));
            }
            pools.retain(|pool| pool.zone == *zone);
        }
        let price = |pool: &CapacityPool| self.market.price(&pool.kind, market, self.now);
        if market == Market::Spot {
            pools.sort_by_key(|pool| {
                (price(pool).unwrap_or(Price::from_nanos_per_hour(u64::MAX)), pool.zone.clone())
            });
        }
        Ok(pools)
    }

    /// Whether one of these pools has a burstable type, by the experiment or by the type's name.
    pub(crate) fn has_credits(&self, pools: &[CapacityPool]) -> bool {
        let burstable = |it: &CapacityPool| self.market.offer(&it.kind)?.burstable;
        pools.iter().any(|it| it.name.starts_with('t') || burstable(it).is_some())
    }

    /// The highest price that is paid for a spot instance of a pool: the price that its user gave, or else the
    /// on-demand price.
    pub(crate) fn bid_in(
        &self,
        pool: &CapacityPool,
        bid: Option<Price>,
        market: Market,
    ) -> Option<Price> {
        let on_demand = || self.market.offer(&pool.kind).and_then(|offer| offer.on_demand);
        if market == Market::Spot { bid.or_else(on_demand) } else { None }
    }

    /// Launches an instance; returns its index.
    pub(crate) fn launch(&mut self, order: LaunchOrder, out: &mut Vec<Decision>) -> usize {
        let (index, id) = (self.instances.len(), self.new_id("i"));
        let LaunchOrder { scope, spec, pool, alternatives, market, bid, behavior, .. } = order;
        if let Some(request) = order.spot_request.as_ref().and_then(|id| self.request_by_id.get(id))
            && let Some(request) = self.requests.get_mut(*request)
        {
            (request.instance, request.zone) = (Some(id.clone()), Some(pool.zone.clone()));
        }
        let seat = self.take_seat(&scope, &spec, &pool.zone);
        let has_amazon_image = is_amazon_linux(&scope.region, &spec.image);
        let login_key = spec.key.clone().and_then(|name| {
            let pair = self.key_pairs.get(&(scope.clone(), name.clone()))?;
            Some((name, login_line(pair.public_key.as_deref()?)?))
        });
        let instance = Ec2Instance {
            id: id.clone(),
            scope,
            reservation: order.reservation,
            launch_index: order.launch_index,
            token: order.token,
            tags: [&spec.tags[..], &spec.template_tags].concat(),
            spec,
            pool,
            alternatives,
            market,
            bid,
            behavior,
            stage: InstanceStage::Pending,
            vm: None,
            vms: Vec::new(),
            booted: None,
            declared: None,
            stopped_by: None,
            marked: None,
            reason: None,
            transition: String::new(),
            created: self.now,
            launched: self.now,
            spot_request: order.spot_request,
            seat,
            volumes: Vec::new(),
            has_amazon_image,
            number: index as u64,
            login_key,
            public_block: self.config.public_block,
            public_number: 0,
        };
        self.by_id.insert(id, index);
        self.shown.insert(index);
        self.instances.push(instance);
        self.begin_volumes(index);
        self.begin_vm(index, out);
        index
    }

    /// Gives an instance that starts or resumes another public address.
    pub(crate) fn give_address(&mut self, index: usize) {
        if let Some(instance) = self.instances.get_mut(index) {
            instance.public_number = self.next_address;
            self.next_address += 1;
        }
    }

    /// Asks the provider for a VM for an instance.
    pub(crate) fn begin_vm(&mut self, index: usize, out: &mut Vec<Decision>) {
        self.give_address(index);
        let vm = VmId::new(self.next_vm);
        let Some(instance) = self.instances.get_mut(index) else { return };
        self.next_vm += 1;
        (instance.vm, instance.stage, instance.launched) =
            (Some(vm), InstanceStage::Pending, self.now);
        instance.vms.push(vm);
        instance.declared = None;
        let (kind, market, bid) = (instance.pool.kind.clone(), instance.market, instance.bid);
        out.push(Decision::Launch { vm, kind, market, bid });
        if market == Market::Spot {
            let hibernates = instance.behavior == InterruptionBehavior::Hibernate;
            out.push(Decision::SetInterruption { vm, hibernates });
        }
        self.by_vm.insert(vm, index);
        self.with_vm.insert(index);
        self.declare_use(index, out);
        self.announce(index, AnnouncedChange::State("pending"));
    }

    /// Handles the refusal of a launch: the launch is tried again in the instance's next pool, or the instance returns
    /// to its previous stage.
    pub(crate) fn launch_refused(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let Some(index) = self.by_vm.remove(&vm) else { return };
        self.with_vm.remove(&index);
        let Some(instance) = self.instances.get_mut(index) else { return };
        instance.vms.retain(|own| *own != vm);
        instance.vm = None;
        if !instance.vms.is_empty() {
            instance.stage = InstanceStage::Stopped;
            let request = instance.spot_request.clone();
            if matches!(instance.stopped_by, Some(StoppedBy::Provider { .. })) {
                self.waiting.insert(index);
                if let Some(request) = request {
                    self.settle_request(
                        &request,
                        SpotState::Disabled,
                        "instance-stopped-no-capacity",
                    );
                }
            }
            return;
        }
        let (account, market) = (instance.scope.account.clone(), instance.market);
        while let Some(pool) = self.instances.get_mut(index).and_then(|it| it.alternatives.pop()) {
            let said = self.instances.get(index).and_then(|it| it.bid);
            if self.room_in(&account, &pool, (market, said), 1).is_ok_and(|(room, _)| room > 0) {
                self.move_to_pool(index, pool);
                return self.begin_vm(index, out);
            }
        }
        self.refuse_instance(index, "capacity-not-available");
    }

    /// Moves an instance that no client knows of yet to a different pool, and to a subnet of that pool's zone.
    fn move_to_pool(&mut self, index: usize, pool: CapacityPool) {
        self.leave_seat(index);
        let Some(instance) = self.instances.get(index) else { return };
        let (scope, spec) = (instance.scope.clone(), instance.spec.clone());
        let seat = self.take_seat(&scope, &spec, &pool.zone);
        self.move_volumes(index, &pool.zone);
        if let Some(instance) = self.instances.get_mut(index) {
            (instance.pool, instance.seat) = (pool, seat);
        }
    }

    /// Handles the refusal of an instance that no client knows of yet.
    pub(crate) fn refuse_instance(&mut self, index: usize, code: &'static str) {
        self.leave_seat(index);
        self.end_volumes(index);
        let Some(instance) = self.instances.get_mut(index) else { return };
        instance.stage = InstanceStage::Refused;
        self.shown.remove(&index);
        let Some(id) = instance.spot_request.clone() else { return };
        let Some(index_of_request) = self.request_by_id.get(&id).copied() else { return };
        if let Some(request) = self.requests.get_mut(index_of_request) {
            (request.instance, request.zone) = (None, None);
            // A fleet asks for another by itself.
            let is_asked_again = request.fleet.is_none();
            let state = if is_asked_again { SpotState::Open } else { SpotState::Closed };
            self.settle_request(&id, state, code);
        }
    }

    /// Completes the answer to a RunInstances call, once it is known which launches were refused.
    pub(crate) fn finish_reservation(
        &mut self,
        instances: &[usize],
        least: usize,
        out: &mut Vec<Decision>,
    ) -> Result<WireValue, ApiError> {
        let had: Vec<usize> = instances
            .iter()
            .copied()
            .filter(|index| self.instances.get(*index).is_some_and(Ec2Instance::is_alive))
            .collect();
        let first = instances.first().and_then(|index| self.instances.get(*index)).cloned();
        // Whoever runs instances asks once: a request that got none is not asked again.
        let is_short = had.len() < least;
        for index in instances.iter().filter(|index| is_short || !had.contains(index)) {
            if let Some(vm) = self.instances.get(*index).and_then(|it| it.vm) {
                out.push(Decision::Terminate { vm, reason: None });
                self.by_vm.remove(&vm);
                self.with_vm.remove(index);
            }
            self.refuse_instance(*index, "capacity-not-available");
            let request = self.instances.get(*index).and_then(|it| it.spot_request.clone());
            if let Some(request) = request {
                self.settle_request(&request, SpotState::Closed, "capacity-not-available");
            }
        }
        let Some(first) = first.filter(|_| !is_short) else {
            return Err(ApiError::new(
                "InsufficientInstanceCapacity",
                "We currently do not have sufficient capacity of the type that you requested: no host has room for it.",
            ));
        };
        let had: Vec<&Ec2Instance> =
            had.iter().filter_map(|index| self.instances.get(*index)).collect();
        Ok(self.reservation_to_wire(&first, &had))
    }

    /// Makes a new, open spot request.
    pub(crate) fn new_request(
        &mut self,
        scope: &CallScope,
        spec: &LaunchSpec,
        (wish, tags, fleet): (&SpotWish, &[(String, String)], Option<String>),
    ) -> String {
        let (id, index) = (self.new_id("sir"), self.requests.len());
        let code = "pending-evaluation";
        self.requests.push(SpotRequest {
            id: id.clone(),
            scope: scope.clone(),
            created: self.now,
            is_persistent: wish.is_persistent,
            bid: wish.bid,
            behavior: wish.behavior,
            valid_from: None,
            valid_until: wish.valid_until.map(|until| self.time_of(until)),
            state: SpotState::Open,
            code,
            message: message_of(code),
            updated: self.now,
            instance: None,
            zone: None,
            spec: spec.clone(),
            tags: tags.to_vec(),
            fleet,
        });
        self.request_by_id.insert(id.clone(), index);
        self.open_requests.insert(index);
        id
    }

    /// Changes the state of a request.
    pub(crate) fn settle_request(&mut self, id: &str, state: SpotState, code: &'static str) {
        let Some(index) = self.request_by_id.get(id).copied() else { return };
        let Some(request) = self.requests.get_mut(index) else { return };
        request.becomes(self.now, state, code);
        if request.state == SpotState::Open {
            self.open_requests.insert(index);
        } else {
            self.open_requests.remove(&index);
        }
    }

    /// The status code of an open spot request that a pool refuses.
    pub(crate) const fn code_of(refusal: PoolRefusal) -> &'static str {
        match refusal {
            PoolRefusal::PriceTooLow(_) => "price-too-low",
            PoolRefusal::TypeLimit | PoolRefusal::VcpuLimit => "limit-exceeded",
            PoolRefusal::NotOffered | PoolRefusal::NoCapacity => "capacity-not-available",
        }
    }
}

/// Reads the spot options of a RunInstances call.
pub(crate) fn spot_wish(options: &WireValue) -> Result<SpotWish, ApiError> {
    let Some(options) = options.member("SpotOptions") else { return Ok(SpotWish::default()) };
    let played = ["MaxPrice", "SpotInstanceType", "ValidUntil", "InstanceInterruptionBehavior"];
    refuse_others("SpotOptions", options, &played)?;
    let wish = SpotWish {
        is_persistent: options.text("SpotInstanceType") == Some("persistent"),
        bid: options.text("MaxPrice").filter(|it| !it.is_empty()).map(read_price).transpose()?,
        behavior: InterruptionBehavior::from_name(options.text("InstanceInterruptionBehavior")),
        valid_until: options.instant("ValidUntil"),
    };
    check_behavior(&wish)?;
    Ok(wish)
}
