//! The desk's own work between calls: it handles notices about VMs, requests VMs that are still wanted, and sets alarms
//! for changes of the market.

use dormouse_cloud::Market;
use dormouse_model::{Decision, Notice};
use dormouse_units::{Time, VmId};

use crate::announcements::AnnouncedChange;
use crate::desk::ApiDesk;
use crate::ec2_instance::{InstanceStage, InterruptedBy, InterruptionBehavior, StoppedBy};
use crate::run_instances::LaunchOrder;
use crate::spot_request::SpotState;

impl ApiDesk {
    /// Handles a notice about the VMs, or an alarm that was set earlier.
    pub(crate) fn hear(&mut self, notice: &Notice, out: &mut Vec<Decision>) {
        match notice {
            Notice::VmReady { vm } | Notice::VmResumed { vm } => self.runs(*vm),
            Notice::LaunchRefused { vm, .. } => self.launch_refused(*vm, out),
            Notice::VmPreempting { vm, .. } => self.is_marked(*vm),
            Notice::VmRebalance { vm } => {
                if let Some(index) = self.by_vm.get(vm).copied() {
                    self.announce(index, AnnouncedChange::Rebalance);
                }
            }
            Notice::VmHibernating { vm } => {
                self.is_marked(*vm);
                if let Some(index) = self.by_vm.get(vm).copied() {
                    if let Some(instance) = self.instances.get_mut(index) {
                        instance.stage = InstanceStage::Stopping;
                    }
                    self.announce(index, AnnouncedChange::State("stopping"));
                }
            }
            Notice::VmHibernated { vm } => {
                self.hibernated(*vm);
                self.keep_up(out);
            }
            Notice::VmLost { vm } => {
                self.lost(*vm);
                self.keep_up(out);
            }
            Notice::Wake { token } if self.armed.is_some_and(|at| at.as_micros() == *token) => {
                self.armed = None;
                self.keep_up(out);
            }
            Notice::HostJoined | Notice::Available { .. } => self.keep_up(out),
            _ => {}
        }
    }

    fn instance_on(&mut self, vm: VmId) -> Option<&mut crate::ec2_instance::Ec2Instance> {
        self.by_vm.get(&vm).and_then(|index| self.instances.get_mut(*index))
    }

    fn runs(&mut self, vm: VmId) {
        let index = self.by_vm.get(&vm).copied();
        let Some(instance) = self.instance_on(vm) else { return };
        let resumes = instance.stage == InstanceStage::Stopped;
        instance.booted = Some(vm);
        (instance.stage, instance.stopped_by, instance.reason) =
            (InstanceStage::Running, None, None);
        instance.marked = None;
        instance.transition.clear();
        let request = instance.spot_request.clone();
        if let Some(index) = index {
            if resumes {
                self.give_address(index);
            }
            self.announce(index, AnnouncedChange::State("running"));
        }
        self.waiting.retain(|waits| Some(*waits) != index);
        if let Some(id) = request {
            let state = self.request_by_id.get(&id).and_then(|index| self.requests.get(*index));
            if state.is_some_and(|request| request.state == SpotState::Disabled) {
                self.settle_request(&id, SpotState::Active, "fulfilled");
            }
        }
    }

    /// Handles the announcement that EC2 will interrupt an instance.
    fn is_marked(&mut self, vm: VmId) {
        let by = self.by_vm.get(&vm).map(|index| self.interrupted_by(*index));
        let Some(instance) = self.instance_on(vm) else { return };
        instance.marked = by;
        let code = match instance.behavior {
            InterruptionBehavior::Terminate => "marked-for-termination",
            InterruptionBehavior::Stop | InterruptionBehavior::Hibernate => "marked-for-stop",
        };
        let (id, action) = (instance.spot_request.clone(), instance.behavior.name());
        if let Some(index) = self.by_vm.get(&vm).copied() {
            self.announce(index, AnnouncedChange::Interruption(action));
        }
        let request = id.as_ref().and_then(|id| self.request_by_id.get(id));
        if let (Some(id), Some(SpotState::Active)) =
            (id, request.and_then(|index| self.requests.get(*index)).map(|request| request.state))
        {
            self.settle_request(&id, SpotState::Active, code);
        }
    }

    fn interrupted_by(&self, index: usize) -> InterruptedBy {
        let Some(instance) = self.instances.get(index) else { return InterruptedBy::Law };
        if let Some(by) = instance.marked {
            return by;
        }
        let kind = &instance.pool.kind;
        let price = self.market.price(kind, Market::Spot, self.now);
        if price.zip(instance.bid).is_some_and(|(price, bid)| price > bid) {
            return InterruptedBy::Price;
        }
        let Some(most) = self.market.available(kind, self.now) else { return InterruptedBy::Law };
        let held = self.with_vm.iter().filter_map(|other| self.instances.get(*other));
        let held = held.filter(|it| it.market == Market::Spot && it.pool.kind == *kind);
        // The instance counts: it is among them until it is gone.
        if held.filter(|it| it.stage != InstanceStage::Stopped).count() > most as usize {
            return InterruptedBy::Capacity;
        }
        InterruptedBy::Law
    }

    fn hibernated(&mut self, vm: VmId) {
        let Some(index) = self.by_vm.get(&vm).copied() else { return };
        self.stops(index);
    }

    /// Handles that EC2 has stopped or hibernated a spot instance.
    fn stops(&mut self, index: usize) {
        let by = self.interrupted_by(index);
        let not_before = self.now + self.hibernation;
        let laws_resume = self.laws_resume;
        let Some(instance) = self.instances.get_mut(index) else { return };
        let by_law = by == InterruptedBy::Law
            && laws_resume
            && instance.behavior == InterruptionBehavior::Hibernate;
        (instance.stage, instance.stopped_by) =
            (InstanceStage::Stopped, Some(StoppedBy::Provider { not_before, by_law }));
        instance.reason = Some((
            "Server.SpotInstanceShutdown",
            "Server.SpotInstanceShutdown: Spot instance shutdown",
        ));
        instance.transition = "Server.SpotInstanceShutdown".to_owned();
        let code = match by {
            InterruptedBy::Price => "instance-stopped-by-price",
            InterruptedBy::Capacity | InterruptedBy::Law => "instance-stopped-no-capacity",
        };
        let request = instance.spot_request.clone();
        self.waiting.insert(index);
        self.announce(index, AnnouncedChange::State("stopped"));
        let Some(id) = request else { return };
        let state =
            self.request_by_id.get(&id).and_then(|at| self.requests.get(*at)).map(|it| it.state);
        if state != Some(SpotState::Cancelled) {
            self.settle_request(&id, SpotState::Disabled, code);
        }
    }

    fn lost(&mut self, vm: VmId) {
        let Some(index) = self.by_vm.get(&vm).copied() else { return };
        let by = self.interrupted_by(index);
        let is_cancelled = self.is_request_cancelled(index);
        self.by_vm.remove(&vm);
        let Some(instance) = self.instances.get_mut(index) else { return };
        instance.vm = None;
        let stops = instance.behavior == InterruptionBehavior::Stop && !is_cancelled;
        if instance.market == Market::Spot && stops {
            // Its cause is judged while the instance still counts.
            self.stops(index);
            self.with_vm.remove(&index);
            return;
        }
        self.with_vm.remove(&index);
        self.waiting.remove(&index);
        self.leave_seat(index);
        self.end_volumes(index);
        let now = self.now;
        let Some(instance) = self.instances.get_mut(index) else { return };
        instance.stage = InstanceStage::Terminated(now);
        self.announce(index, AnnouncedChange::State("terminated"));
        let Some(instance) = self.instances.get_mut(index) else { return };
        if instance.market == Market::OnDemand {
            instance.reason = Some((
                "Server.InternalError",
                "Server.InternalError: Internal error on launch or while running",
            ));
            instance.transition = "Server.InternalError".to_owned();
            return;
        }
        instance.reason = Some((
            "Server.SpotInstanceTermination",
            "Server.SpotInstanceTermination: Spot instance termination",
        ));
        instance.transition = "Server.SpotInstanceTermination".to_owned();
        let code = match by {
            InterruptedBy::Price => "instance-terminated-by-price",
            InterruptedBy::Capacity | InterruptedBy::Law => "instance-terminated-no-capacity",
        };
        if let Some(id) = instance.spot_request.clone() {
            self.request_lost_instance(&id, code);
        }
    }

    pub(crate) fn is_request_cancelled(&self, index: usize) -> bool {
        let request = self.instances.get(index).and_then(|it| it.spot_request.as_ref());
        let request = request.and_then(|id| self.request_by_id.get(id));
        request
            .and_then(|at| self.requests.get(*at))
            .is_some_and(|it| it.state == SpotState::Cancelled)
    }

    /// Requests all VMs that are wanted and available now, and an alarm for the time at which that may change.
    pub(crate) fn keep_up(&mut self, out: &mut Vec<Decision>) {
        self.start_again(out);
        for index in self.open_requests.clone() {
            self.evaluate(index, out);
        }
        self.keep_fleets(out);
        self.forget_old();
        self.arm(out);
    }

    /// Requests the VM of an open spot request if there is room for it; else notes the reason in the request's status.
    fn evaluate(&mut self, index: usize, out: &mut Vec<Decision>) {
        let Some(request) = self.requests.get(index).cloned() else { return };
        if request.valid_until.is_some_and(|until| until <= self.now) {
            return self.settle_request(&request.id, SpotState::Closed, "schedule-expired");
        }
        if !request.wants_now(self.now) {
            return;
        }
        let scope = request.scope.clone();
        let Ok(pools) = self.pools_for(&scope, &request.spec, Market::Spot) else { return };
        let mut code = None;
        for (place, pool) in pools.iter().enumerate() {
            let bid = self.bid_in(pool, request.bid, Market::Spot);
            match self.room_in(&request.scope.account, pool, (Market::Spot, bid), 1) {
                Ok((0, refusal)) | Err(refusal) => {
                    code.get_or_insert(Self::code_of(refusal));
                }
                Ok(_) if self.addresses_left(&scope, &request.spec, &pool.zone) == 0 => {
                    code.get_or_insert("constraint-not-fulfillable");
                }
                Ok(_) => {
                    let alternatives =
                        pools.get(place + 1..).unwrap_or_default().iter().rev().cloned();
                    let order = LaunchOrder {
                        scope,
                        spec: request.spec.clone(),
                        pool: pool.clone(),
                        alternatives: alternatives.collect(),
                        market: Market::Spot,
                        bid,
                        behavior: request.behavior,
                        reservation: self.new_id("r"),
                        launch_index: 0,
                        token: None,
                        spot_request: Some(request.id.clone()),
                        fleet: request.fleet.clone(),
                    };
                    self.settle_request(&request.id, SpotState::Active, "fulfilled");
                    self.launch(order, out);
                    return;
                }
            }
        }
        if let Some(code) = code {
            self.settle_request(&request.id, SpotState::Open, code);
        }
    }

    /// Restarts the instances that EC2 has stopped and resumes the instances that EC2 has hibernated, if there is room
    /// for them.
    fn start_again(&mut self, out: &mut Vec<Decision>) {
        for index in self.waiting.clone() {
            let Some(instance) = self.instances.get(index) else { continue };
            let Some(StoppedBy::Provider { not_before, by_law: false }) = instance.stopped_by
            else {
                continue;
            };
            let terms = (Market::Spot, instance.bid);
            if not_before > self.now || instance.stage != InstanceStage::Stopped {
                continue;
            }
            // A hibernated instance counts against the limit of its type already.
            let room = self.room_in(&instance.scope.account, &instance.pool, terms, 1);
            let is_there = match room {
                Ok((room, bound)) => {
                    room > 0
                        || instance.vm.is_some() && bound == crate::desk::PoolRefusal::TypeLimit
                }
                Err(_) => false,
            };
            if !is_there {
                continue;
            }
            match instance.vm {
                Some(vm) => {
                    out.push(Decision::Resume { vm });
                    if let Some(instance) = self.instances.get_mut(index) {
                        // It counts from now on; if it can't be resumed, it is looked at again at the next change.
                        instance.launched = self.now;
                    }
                }
                None => {
                    let request = instance.spot_request.clone();
                    self.waiting.remove(&index);
                    self.begin_vm(index, out);
                    if let Some(request) = request {
                        self.settle_request(&request, SpotState::Active, "fulfilled");
                    }
                }
            }
        }
    }

    /// Removes instances that DescribeInstances no longer shows from the list of instances to be searched.
    fn forget_old(&mut self) {
        let now = self.now;
        let is_old =
            |index: &usize| self.instances.get(*index).is_none_or(|it| !it.is_visible(now));
        let old: Vec<usize> = self.shown.iter().copied().filter(is_old).collect();
        for index in old {
            self.shown.remove(&index);
            self.instances.forget_described(index);
        }
    }

    /// Sets an alarm for the next time at which a wanted instance that can't be had now may become available.
    fn arm(&mut self, out: &mut Vec<Decision>) {
        let mut next: Option<Time> = None;
        let mut by =
            |at: Option<Time>| next = Time::sooner_of(next, at.filter(|at| *at > self.now));
        for request in self.open_requests.iter().filter_map(|index| self.requests.get(*index)) {
            by(request.valid_until);
            by(request.valid_from);
            let pools = self.market.pools(&request.scope.region).into_iter();
            for pool in pools.filter(|pool| pool.name == request.spec.kind) {
                by(self.market.next_change(&pool.kind, self.now));
            }
        }
        for instance in self.waiting.iter().filter_map(|index| self.instances.get(*index)) {
            if let Some(StoppedBy::Provider { not_before, by_law: false }) = instance.stopped_by {
                by(Some(not_before));
                by(self.market.next_change(&instance.pool.kind, self.now));
            }
        }
        for at in self.fleet_changes() {
            by(Some(at));
        }
        if let Some(at) = next.filter(|at| self.armed.is_none_or(|armed| *at < armed)) {
            self.armed = Some(at);
            out.push(Decision::Wake { at, token: at.as_micros() });
        }
    }
}
