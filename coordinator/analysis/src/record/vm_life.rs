//! Changes of VMs in a record: the provider's acts and their costs, and the vCPUs that charts give to tasks.

use dormouse_cloud::{BillingMeter, InterruptionAction, InterruptionTarget, Market};
use dormouse_model::{Effect, Event, Step, VmEnd};
use dormouse_units::{Money, TaskId, Tier, Time, VmId};
use thin_vec::ThinVec;

use super::vm::LeaveReason;
use super::{
    AttemptEnd, ProviderAct, RecordChange, RunRecord, VmDisplacement, VmHibernation, VmHistory,
};

impl RunRecord {
    /// Adds the launch, a change or the end of a VM.
    pub(super) fn vm_effect(&mut self, now: Time, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, vcpus, host } => {
                self.counts.vms_launched += 1;
                let history = VmHistory {
                    id: *vm,
                    kind: kind.clone(),
                    market: *market,
                    price: *price,
                    vcpus: *vcpus,
                    host: *host,
                    launched: now,
                    ready: None,
                    ended: None,
                    hibernations: ThinVec::new(),
                    displaced: ThinVec::new(),
                    waited_for: ThinVec::new(),
                    leaving: None,
                    has_notice: false,
                    told: None,
                    credits: ThinVec::new(),
                    share: None,
                    is_background: false,
                    supplies: ThinVec::new(),
                    meter: BillingMeter::start_at_launch(now, *price, self.billing)
                        .at_most(*bid)
                        .with_stopped_disk(self.disk_prices.get(kind).copied().unwrap_or_default()),
                    surcharge: Money::ZERO,
                    declared_uses: ThinVec::new(),
                    tariff: self.tariff,
                    lanes: VcpuLanes::new(*vcpus),
                };
                self.vms.insert(*vm, history);
                self.request_is_granted(*vm);
            }
            Effect::VmReady { vm } => self.start_running(now, *vm, |vm| vm.ready = Some(now)),
            Effect::VmResumed { vm, asked } => {
                self.counts.resumes += 1;
                self.start_running(now, *vm, |vm| {
                    if let Some(last) = vm.hibernations.last_mut() {
                        last.resumed = Some((*asked, now));
                    }
                });
            }
            Effect::VmHibernated { vm, asked } => {
                self.counts.hibernations += 1;
                self.stop_running(*vm);
                self.on_vm(*vm, |vm| {
                    vm.hibernations.push(VmHibernation {
                        asked: *asked,
                        frozen: now,
                        resumed: None,
                    });
                    vm.meter.pause_charging(now);
                    vm.told = None;
                    // The VM has left by hibernating: whatever ends it now is another reason.
                    vm.leaving = vm.leaving.filter(|why| !matches!(why, LeaveReason::For(_)));
                });
            }
            Effect::VmEnded { vm, why, cost } => self.vm_ended(now, *vm, *why, *cost),
            Effect::PriceChanged { kind, price } => {
                let alike = |vm: &&mut VmHistory| vm.market == Market::Spot && vm.kind == *kind;
                for vm in self.vms.values_mut().filter(|vm| vm.ended.is_none()).filter(alike) {
                    vm.meter.change_price(now, *price);
                }
            }
            Effect::SurplusCharged { vm, cost, .. } => self.on_vm(*vm, |vm| vm.surcharge = *cost),
            Effect::Placed { vm, tier, .. } => {
                self.on_vm(*vm, |vm| vm.is_background = *tier == Tier::Background);
            }
            Effect::Supplied { vm, vcpu, share } => {
                self.on_vm(*vm, |vm| vm.supplies.push((now, *vcpu, *share)));
            }
            _ => {}
        }
    }

    /// Adds an act of the provider on spot VMs.
    pub(super) fn provider_acts(&mut self, step: &Step, effect: &Effect) {
        let now = step.at;
        match effect {
            Effect::Outbid { vm } => {
                self.acted_on(now, *vm, InterruptionAction::Preempt);
                self.on_vm(*vm, |vm| vm.leaving = Some(LeaveReason::Outbid));
            }
            Effect::Reclaimed { vm } => {
                self.acted_on(now, *vm, InterruptionAction::Preempt);
                self.on_vm(*vm, |vm| {
                    if vm.leaving != Some(LeaveReason::Outbid) {
                        vm.leaving = Some(LeaveReason::Reclaimed);
                    }
                });
            }
            &Effect::Displaced { vm, by, action } => {
                self.acted_on(now, vm, action);
                let displaced = VmDisplacement { at: now, by, action, given_back: None };
                self.on_vm(vm, |vm| {
                    vm.displaced.push(displaced);
                    if matches!(vm.leaving, None | Some(LeaveReason::For(_))) {
                        vm.leaving = Some(LeaveReason::For(by));
                    }
                });
                self.on_vm(by, |by| by.waited_for.push(vm));
            }
            Effect::GivenBack { vm } => {
                self.acted_on(now, *vm, InterruptionAction::Resume);
                self.on_vm(*vm, |vm| {
                    if let Some(last) = vm.displaced.last_mut() {
                        last.given_back = Some(now);
                    }
                });
            }
            Effect::Interrupted { asked, action, target, vms, .. } => {
                vms.iter().for_each(|vm| self.tell_vm(*vm, *action));
                if self.forgets {
                    return;
                }
                let (asked, action, target, vms) = (*asked, *action, target.clone(), vms.clone());
                let asked_by = match &step.event {
                    Event::Interrupt { why, .. } => Some(why.clone()),
                    _ => None,
                };
                let at = now;
                self.interruptions.push(ProviderAct { asked, at, action, target, vms, asked_by });
            }
            _ => {}
        }
    }

    /// Adds an act of the provider on a single VM.
    fn acted_on(&mut self, now: Time, vm: VmId, action: InterruptionAction) {
        self.tell_vm(vm, action);
        if !self.forgets {
            let (target, vms) = (InterruptionTarget::Vm(vm), vec![vm]);
            let (asked, at, asked_by) = (now, now, None);
            self.interruptions.push(ProviderAct { asked, at, action, target, vms, asked_by });
        }
    }

    fn tell_vm(&mut self, vm: VmId, action: InterruptionAction) {
        if action == InterruptionAction::Preempt {
            self.notice_on(self.now, vm);
        }
        self.on_vm(vm, |vm| match action {
            InterruptionAction::Hibernate | InterruptionAction::Resume => vm.told = Some(action),
            InterruptionAction::Preempt => vm.has_notice = true,
            InterruptionAction::Rebalance => {}
        });
    }

    pub(super) fn on_vm(&mut self, vm: VmId, change: impl FnOnce(&mut VmHistory)) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            change(vm);
        }
    }

    /// Notes that a VM runs from now on.
    fn start_running(&mut self, now: Time, id: VmId, note: impl FnOnce(&mut VmHistory)) {
        let Some(vm) = self.vms.get_mut(&id) else { return };
        if !vm.is_running() {
            self.changes.push(RecordChange::Runs(id));
        }
        note(vm);
        vm.told = None;
        vm.meter.start_charging(now);
    }

    /// Notes that a VM does not run any more.
    fn stop_running(&mut self, id: VmId) {
        if self.vms.get(&id).is_some_and(VmHistory::is_running) {
            self.changes.push(RecordChange::Stands(id));
        }
    }

    fn vm_ended(&mut self, now: Time, id: VmId, why: VmEnd, cost: Money) {
        if why == VmEnd::Preempted {
            self.counts.preemptions += 1;
        }
        self.stop_running(id);
        if let Some(vm) = self.vms.get_mut(&id) {
            vm.meter.end_charging(now, why.ended_by());
            vm.ended = Some((now, why, cost));
            for task in std::mem::take(&mut vm.lanes).into_tasks() {
                self.end_attempt(now, task, AttemptEnd::VmGone(why));
            }
            self.end_jobs_on(now, id, why);
        }
        self.request_is_over(id);
        if self.forgets {
            self.closed.vms.extend(self.vms.remove(&id));
        }
    }
}

/// Lanes of a VM in charts: one for each vCPU, and one for each task beyond the number of vCPUs.
/// Only lanes with a task take memory: a log may name any number of vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VcpuLanes {
    /// Number of lanes that the VM has in charts, free lanes included.
    count: usize,
    /// Chart lanes of the VM that hold a task, in order, each with its task.
    taken: ThinVec<(usize, TaskId)>,
}

impl VcpuLanes {
    /// Chart lanes for this many vCPUs, all of them free.
    #[must_use]
    pub(super) fn new(vcpus: u32) -> Self {
        Self { count: vcpus as usize, taken: ThinVec::new() }
    }

    /// Puts a task on the chart lane of `vcpu`, or on the first free lane if the vCPU is not known; returns the lane's index.
    pub(super) fn take(&mut self, task: TaskId, vcpu: Option<u32>) -> usize {
        let known = vcpu.map(|vcpu| vcpu as usize).filter(|lane| *lane < self.count);
        let lane = known.unwrap_or_else(|| {
            let is_taken = |(lane, (taken, _)): &(usize, &(usize, TaskId))| lane == taken;
            (0..).zip(&self.taken).take_while(is_taken).count()
        });
        self.count = self.count.max(lane + 1);
        match self.taken.binary_search_by_key(&lane, |(taken, _)| *taken) {
            Ok(place) => self.taken[place].1 = task,
            Err(place) => self.taken.insert(place, (lane, task)),
        }
        lane
    }

    /// Removes a task from its chart lane.
    pub(super) fn leave(&mut self, task: TaskId) {
        self.taken.retain(|(_, it)| *it != task);
    }

    /// The tasks of the VM, in the order of their chart lanes.
    pub(super) fn into_tasks(self) -> impl Iterator<Item = TaskId> {
        self.taken.into_iter().map(|(_, task)| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32) -> TaskId {
        TaskId::new(id)
    }

    #[test]
    fn a_task_is_on_its_vcpu_or_on_the_first_that_is_free() {
        let mut lanes = VcpuLanes::new(3);
        assert_eq!((lanes.take(task(0), None), lanes.take(task(1), Some(2))), (0, 2));
        assert_eq!(lanes.take(task(2), None), 1);
        // All are taken: one more than there are vCPUs, which is one that is known then.
        assert_eq!(lanes.take(task(3), Some(7)), 3);
        lanes.leave(task(0));
        assert_eq!((lanes.take(task(4), None), lanes.take(task(5), Some(3))), (0, 3));
        assert!(lanes.into_tasks().eq([4, 2, 1, 5].map(task)));
    }

    #[test]
    fn as_many_vcpus_as_a_log_names_take_no_room() {
        let mut lanes = VcpuLanes::new(u32::MAX);
        let last = u32::MAX - 1;
        assert_eq!(lanes.take(task(0), Some(last)), last as usize);
        assert_eq!(lanes.take(task(1), None), 0);
        assert!(lanes.into_tasks().eq([1, 0].map(task)));
    }
}
