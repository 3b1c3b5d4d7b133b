//! Invariants of a bag of tasks and its VMs, checked step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dormouse_cloud::{BillingMeter, Market, PlacementRule, Prices, ResourceVector, SpotPlaces};
use dormouse_model::{Decision, Effect, Event, Notice, Report, Setup, Step, VmEnd};
use dormouse_units::{
    Attempt, Bytes, Credits, HostId, Money, Ppm, Price, Span, TaskId, Time, TypeName, VmId,
};

use super::CapacityChecker;
use super::bounds::TimeBounds;
use super::vm::{CheckedVm, VmStage};

mod due;
mod places;
mod room;
mod taken;

/// Every stage of a VM that has not ended.
const ALIVE: [VmStage; 4] =
    [VmStage::Booting, VmStage::Running, VmStage::Freezing, VmStage::Frozen];

/// An attempt at a task that is under way, as the checker tracks it.
#[derive(Clone, Debug)]
struct OpenAttempt {
    attempt: Attempt,
    vm: VmId,
    /// Time at which the attempt started, and time for which its VM had been frozen in all by then.
    started: Option<(Time, Span)>,
    from: Ppm,
    checkpoints: u64,
}

/// State of a task, as the checker tracks it.
#[derive(Clone, Debug, Default)]
struct CheckedTask {
    open: Option<OpenAttempt>,
    attempts: Attempt,
    kept: Ppm,
    /// Parts of the task's work that its stored checkpoints hold.
    stored: BTreeSet<Ppm>,
    finished: bool,
}

/// Follows a run and notes every broken rule. Call [`Self::see`] for each step in order, then
/// [`Self::finish`]. The rules are broken by:
///
/// - a task on two VMs, or started after its end, before its submission, or before the tasks that
///   it follows have finished;
///
/// - more tasks on a VM than it has vCPUs, or than fit in its memory;
///
/// - activity of a hibernated, booting or ended VM;
///
/// - an effect before its cause, or time that runs backwards;
///
/// - a bill that is not the sum of its intervals;
///
/// - credits above the cap, above what can have been earned, or, in virtual time, below what use
///   can have left;
///
/// - more VMs of a type than its limit; interruptions of VMs that are not spot; a VM that costs
///   more than its bid, or is outbid while it doesn't;
///
/// - a VM that ends before its notice has run out, without notice, or with two notices; one that
///   makes room needlessly, or in a way that its provider does not use;
///
/// - VMs that together exceed their host in any dimension;
///
/// - in virtual time, a task that finishes sooner than its work takes;
///
/// - decisions that could not be carried out.
#[derive(Clone, Debug)]
pub struct Checker<'a> {
    setup: &'a Setup,
    prices: Arc<dyn Prices>,
    /// How late a machine's report may be, in emulated time; zero in virtual time.
    lateness: Span,
    bounds: TimeBounds,
    placement: PlacementRule,
    /// Memory that VMs of each type really fill, if the placement rule counts filled memory.
    filled: BTreeMap<TypeName, Bytes>,
    /// Capacity of each host for VMs.
    hosts: BTreeMap<HostId, ResourceVector>,
    /// Hosts on which a VM took room in this step.
    taken_of: BTreeSet<HostId>,
    vms: BTreeMap<VmId, CheckedVm>,
    tasks: Vec<CheckedTask>,
    next_seq: u64,
    now: Time,
    over: bool,
    violations: Vec<RuleViolation>,
}

impl<'a> Checker<'a> {
    /// A checker for a run in which reports may be up to `lateness` of emulated time late (zero in
    /// virtual time), before its first step.
    #[must_use]
    pub fn new(setup: &'a Setup, lateness: Span) -> Self {
        Self {
            setup,
            prices: setup.terms.price_source(),
            lateness,
            bounds: TimeBounds::new(setup),
            placement: setup.terms.placement.placement_rule(),
            filled: setup.memory_filled(),
            hosts: BTreeMap::new(),
            taken_of: BTreeSet::new(),
            vms: BTreeMap::new(),
            tasks: vec![CheckedTask::default(); setup.bag.tasks.len()],
            next_seq: 0,
            now: Time::ZERO,
            over: false,
            violations: Vec::new(),
        }
    }

    /// All violations. If `ended`, a log that stops before the end of the run is a violation too.
    #[must_use]
    pub fn finish(mut self, ended: bool) -> Vec<RuleViolation> {
        if ended && !self.over {
            self.report_violation("the log ends before the run is over".to_owned());
        }
        self.violations
    }

    fn is_exact(&self) -> bool {
        self.lateness == Span::ZERO
    }

    fn report_violation(&mut self, what: String) {
        let seq = self.next_seq.saturating_sub(1);
        self.violations.push(RuleViolation { seq, at: self.now, what });
    }

    fn require(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.report_violation(what());
        }
    }

    /// Checks the next step of the bag.
    pub fn see(&mut self, step: &Step) {
        let (expected, before) = (self.next_seq, self.now);
        self.next_seq = step.seq + 1;
        self.now = step.at;
        self.require(step.seq == expected, || format!("it should be step {expected}"));
        self.require(step.at >= before, || format!("time ran backwards from {before}"));
        if let Some(wrong) = self.bounds.broken_by(step) {
            self.report_violation(wrong);
        }
        if let Event::HostJoined { host, offer, .. } = &step.event {
            self.hosts.insert(*host, *offer);
        }
        let was_over = self.over;
        self.require(!was_over || step.decisions.is_empty(), || {
            "a decision after the end".to_owned()
        });
        self.check_notices(&step.notices);

        let stale = step.effects.contains(&Effect::Stale);
        if let (Event::Machine { report, .. }, false) = (&step.event, stale) {
            self.check_report(report);
        }
        // An attempt may be stopped later in the same step.
        for effect in &step.effects {
            if let &Effect::CheckpointAsked { task, attempt, vm } = effect {
                self.check_attempt(vm, task, attempt, "is to be checkpointed", |open| {
                    open.started.is_none().then(|| "it has not started".to_owned())
                });
            }
        }
        // A stop has no effect of its own. Within a step it comes before what follows from it, and
        // right after the start that it takes back, if both are of the same step.
        let mut taken_back = Vec::new();
        for (n, decision) in step.decisions.iter().enumerate() {
            let refused = step.effects.iter().any(|e| e.refuses_decision(n));
            if let (Decision::Stop { task, vm, .. }, false) = (decision, refused)
                && self.stops_at_once((*task, *vm), step, decision)
            {
                let start = |d: &Decision| matches!(d, Decision::Start { task: t, on, .. } if (t, on.vm) == (task, *vm));
                if step.decisions[..n].iter().any(start) {
                    taken_back.push((*task, *vm));
                } else {
                    self.remove_task(*task, *vm);
                }
            }
        }
        for effect in &step.effects {
            match effect {
                Effect::Rejected { why, .. } => {
                    self.report_violation(format!("a decision can't be carried out: {why}"));
                }
                effect => self.check_effect(effect),
            }
            if let Effect::TaskSent { task, vm, .. } = effect
                && taken_back.contains(&(*task, *vm))
            {
                self.remove_task(*task, *vm);
            }
        }
        self.look_at_rooms();
    }

    /// Whether a task is stopped without an answer of its worker: by a stop without a checkpoint,
    /// or while its VM is frozen. A VM that boots or resumes in this step counts as running; a stop
    /// on a VM that freezes in this step is reported to the scheduler at once.
    fn stops_at_once(&self, (task, vm): (TaskId, VmId), step: &Step, decision: &Decision) -> bool {
        let runs = |effect: &Effect| matches!(effect, Effect::VmResumed { vm: v, .. } | Effect::VmReady { vm: v } if *v == vm);
        let frozen = self.vms.get(&vm).is_some_and(|vm| vm.life != VmStage::Running)
            && !step.effects.iter().any(runs);
        let is_heard = |it: &Notice| matches!(it, Notice::TaskStopped { task: t, vm: v, .. } if (*t, *v) == (task, vm));
        let keeps = matches!(decision, Decision::Stop { keep: true, .. });
        frozen || !keeps || step.notices.iter().any(is_heard)
    }

    fn check_notices(&mut self, notices: &[Notice]) {
        for notice in notices {
            if let Notice::VmHibernating { vm }
            | Notice::VmHibernated { vm }
            | Notice::VmResumed { vm }
            | Notice::VmReady { vm } = notice
            {
                let known = self.vms.contains_key(vm);
                self.require(known, || format!("the scheduler heard of {vm} before its launch"));
            }
        }
    }

    fn check_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, host, .. } => {
                self.check_launch((*vm, *host), kind, *market, *price, *bid);
            }
            Effect::VmReady { vm } => {
                let (now, boot) = (self.now, self.setup.catalogue.boot);
                self.takes_room(*vm);
                self.check_vm(*vm, &[VmStage::Booting], "is ready", |vm| {
                    (vm.life, vm.waits) = (VmStage::Running, false);
                    vm.meter.start_charging(now);
                    (now < vm.launched + boot)
                        .then(|| "it is ready before its boot is over".to_owned())
                });
            }
            Effect::VmHibernated { vm, asked } => self.took_effect(*vm, *asked, true),
            Effect::VmResumed { vm, asked } => self.took_effect(*vm, *asked, false),
            Effect::Interrupted { asked, action, target, vms, left } => {
                self.check_interruption(*asked, *action, target, (vms, left));
            }
            Effect::VmEnded { vm, why, cost } => self.check_vm_end(*vm, *why, *cost),
            Effect::TaskSent { task, attempt, vm, from, .. } => {
                self.check_task_start(*task, *attempt, *vm, from.map(|(_, done)| done));
            }
            Effect::Over { complete } => self.check_run_end(*complete),
            Effect::RestoreFellBack { task, from, to, .. } => {
                self.fell_back(*task, from.1, to.map_or(Ppm::ZERO, |(_, done)| done));
            }
            Effect::PriceChanged { kind, price } => self.price_changed(kind, *price),
            Effect::Reclaimed { vm } => self.check_preemption(*vm, |_| None),
            Effect::Outbid { vm } => self.check_preemption(*vm, |vm| {
                let price = vm.meter.price();
                let below = vm.bid.is_none_or(|bid| price <= bid);
                below.then(|| {
                    let bid =
                        vm.bid.map_or("it has no bid".to_owned(), |b| format!("its bid is {b}"));
                    format!("it is outbid at {price}, {bid}")
                })
            }),
            Effect::Displaced { vm, by, action } => self.check_displacement(*vm, *by, *action),
            Effect::GivenBack { vm } => self.given_back(*vm),
            &Effect::CheckpointAsked { vm, .. } => {
                self.require_awake(vm, "is to take a checkpoint of a task");
            }
            Effect::SurplusCharged { vm, credits, cost } => {
                self.check_surcharge(*vm, *credits, *cost);
            }
            Effect::Placed { vm, tier, processors } => self.check_placement(*vm, *tier, processors),
            Effect::Supplied { vm, vcpu, share } => self.check_supply(*vm, *vcpu, *share),
            Effect::AvailabilityChanged { .. }
            | Effect::Stale
            | Effect::Answered { .. }
            | Effect::Moot { .. }
            | Effect::Rejected { .. } => {}
        }
    }

    /// Runs `change` on a VM that must be in one of the stages `fit`; `what` names the event in the
    /// violation.
    fn check_vm(
        &mut self,
        id: VmId,
        fit: &[VmStage],
        what: &str,
        change: impl FnOnce(&mut CheckedVm) -> Option<String>,
    ) {
        let Some(vm) = self.vms.get_mut(&id) else {
            return self.report_violation(format!("{id} {what} but was never launched"));
        };
        if !fit.contains(&vm.life) {
            let life = vm.life;
            return self.report_violation(format!("{id} {what} while it is {life}"));
        }
        if let Some(wrong) = change(vm) {
            self.report_violation(format!("{id}: {wrong}"));
        }
    }

    fn check_launch(
        &mut self,
        (id, host): (VmId, HostId),
        kind: &TypeName,
        market: Market,
        price: Price,
        bid: Option<Price>,
    ) {
        let Some(kind) = self.setup.catalogue.get(kind).cloned() else {
            return self
                .report_violation(format!("{id} is of a type that the catalogue doesn't have"));
        };
        let used = self.vms.contains_key(&id);
        self.require(!used, || format!("{id} is launched twice"));
        let right = self.prices.price_at(&kind, market, self.now) == Some(price);
        self.require(right, || format!("{id} is charged {price}, which is not its price"));
        self.require(bid.is_none_or(|bid| price <= bid), || {
            format!("{id} costs more than its bid")
        });
        let alike = self
            .vms
            .values()
            .filter(|v| v.life != VmStage::Ended && v.market == market && v.kind.name == kind.name);
        let (count, limit) = (alike.count(), kind.vm_limit(market) as usize);
        self.require(count < limit, || format!("{id} is more than the limit of {limit}"));
        let background = self.setup.terms.spot == SpotPlaces::Background;
        let filled = self.filled.get(&kind.name).copied().unwrap_or_default();
        let room = self.placement.room_of(&kind, filled, background && market == Market::Spot);
        self.taken_of.insert(host);
        let followed = CheckedVm {
            kind,
            market,
            bid,
            host,
            room,
            waits: false,
            notice: None,
            is_displaced: false,
            resumes: false,
            places: None,
            life: VmStage::Booting,
            launched: self.now,
            meter: BillingMeter::start_at_launch(self.now, price, self.setup.terms.billing)
                .at_most(bid),
            frozen: Span::ZERO,
            frozen_since: None,
            tasks: BTreeMap::new(),
            credits: None,
            surcharge: Money::ZERO,
        };
        self.vms.insert(id, followed);
    }

    fn price_changed(&mut self, kind: &TypeName, price: Price) {
        let known = self.setup.catalogue.get(kind);
        let right = known.and_then(|kind| self.prices.price_at(kind, Market::Spot, self.now));
        self.require(right == Some(price), || format!("{price} is not the price of {kind}"));
        let now = self.now;
        for vm in self.vms.values_mut() {
            if vm.market == Market::Spot && vm.kind.name == *kind && vm.life != VmStage::Ended {
                vm.meter.change_price(now, price);
            }
        }
    }

    fn took_effect(&mut self, vm: VmId, asked: Time, freeze: bool) {
        let now = self.now;
        self.require(asked <= now, || format!("{vm} changed before that was asked for at {asked}"));
        let fit = if freeze { VmStage::Freezing } else { VmStage::Frozen };
        self.check_vm(vm, &[fit], "hibernates or resumes", |vm| {
            if freeze {
                vm.freeze(now);
            } else {
                vm.thaw(now);
            }
            None
        });
    }

    fn check_vm_end(&mut self, id: VmId, why: VmEnd, cost: Money) {
        let (now, tariff) = (self.now, self.setup.terms.tariff);
        let mut left = Vec::new();
        if why == VmEnd::Preempted {
            self.is_taken(id);
        }
        self.check_vm(id, &ALIVE, "ends", |vm| {
            vm.meter.end_charging(now, why.ended_by());
            vm.life = VmStage::Ended;
            vm.places = None;
            left = std::mem::take(&mut vm.tasks).into_keys().collect();
            let owed = vm.meter.settled_cost(tariff) + vm.surcharge;
            (owed != cost).then(|| format!("it cost {cost}, its intervals {owed}"))
        });
        for task in left {
            self.remove_task(task, id);
        }
    }

    /// Checks a charge for surplus credits: `cost` must be the price of `credits`, must not
    /// decrease, and the credits can't exceed the time of the VM's vCPUs since its launch.
    fn check_surcharge(&mut self, id: VmId, credits: Credits, cost: Money) {
        let now = self.now;
        self.check_vm(id, &ALIVE, "is charged for surplus credits", |vm| {
            let Some(price) = vm.kind.burstable.and_then(|burstable| burstable.surplus) else {
                return Some(format!("{} is not in unlimited mode", vm.kind.name));
            };
            let right = price.for_span(Span::from_micros(credits.as_vcpu_micros()));
            let most = now.since(vm.launched).times(u64::from(vm.kind.vcpus)).as_micros();
            let is_less = cost < vm.surcharge;
            vm.surcharge = cost;
            if cost != right {
                Some(format!("{credits} of surplus cost {right}, not {cost}"))
            } else if credits.as_vcpu_micros() > most {
                Some(format!("it spent {credits} beyond what it had earned: more than it can have"))
            } else {
                is_less.then(|| "less is charged in all than before".to_owned())
            }
        });
    }

    fn check_task_start(&mut self, task: TaskId, attempt: Attempt, vm: VmId, from: Option<Ppm>) {
        let Some(spec) = self.setup.bag.tasks.get(task.get() as usize) else {
            return self.report_violation(format!("there is no {task}"));
        };
        let memory = spec.memory;
        let state = self.tasks[task.get() as usize].clone();
        self.require(!state.finished, || format!("{task} is started though it is finished"));
        self.check_due(task, spec);
        if let Some(open) = &state.open {
            self.report_violation(format!("{task} is started on {vm} while on {}", open.vm));
        }
        self.require(attempt > state.attempts, || format!("{task}: {attempt} is not new"));
        let from = from.unwrap_or(Ppm::ZERO);
        self.require(from <= state.kept, || {
            format!("{task} starts from {from}, its checkpoints keep {}", state.kept)
        });
        // The scheduler has not yet heard that the VM freezes: the task waits there for the resume.
        self.check_vm(vm, &[VmStage::Running, VmStage::Freezing], "is given a task", |vm| {
            vm.tasks.insert(task, memory);
            let used: dormouse_units::Bytes = vm.tasks.values().copied().sum();
            if vm.tasks.len() > vm.kind.vcpus as usize {
                return Some(format!("{} tasks on {} vCPUs", vm.tasks.len(), vm.kind.vcpus));
            }
            (used > vm.kind.memory).then(|| format!("tasks of {used} in {}", vm.kind.memory))
        });
        let open = OpenAttempt { attempt, vm, started: None, from, checkpoints: 0 };
        let state = &mut self.tasks[task.get() as usize];
        state.attempts = attempt;
        state.open = Some(open);
    }

    /// Checks that after a failed restore the task goes on from an older checkpoint of its own, or
    /// from scratch.
    fn fell_back(&mut self, task: TaskId, from: Ppm, to: Ppm) {
        let may_be_older = self.may_begin_at(task, to);
        self.require(may_be_older && to <= from, || {
            format!("{task} falls back from {from} to {to}, which no checkpoint of it holds")
        });
        if let Some(state) = self.tasks.get_mut(task.get() as usize) {
            state.kept = to;
        }
    }

    fn remove_task(&mut self, task: TaskId, vm: VmId) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            vm.tasks.remove(&task);
        }
        if let Some(state) = self.tasks.get_mut(task.get() as usize)
            && state.open.as_ref().is_some_and(|open| open.vm == vm)
        {
            state.open = None;
        }
    }

    fn check_run_end(&mut self, complete: bool) {
        self.over = true;
        let left = self.tasks.iter().filter(|t| !t.finished).count();
        self.require(!complete || left == 0, || {
            format!("it is called complete with {left} tasks left")
        });
        let alive = self.vms.values().filter(|vm| vm.life != VmStage::Ended).count();
        self.require(alive == 0, || format!("{alive} VMs are still there at the end"));
    }

    fn check_report(&mut self, report: &Report) {
        match *report {
            Report::TaskStarted { vm, task, attempt, done, .. } => {
                let frozen = self.frozen_for(vm);
                let (now, may_be_older) = (self.now, self.may_begin_at(task, done));
                self.check_attempt(vm, task, attempt, "starts", |open| {
                    open.started = Some((now, frozen));
                    let from = std::mem::replace(&mut open.from, done);
                    (done != from && !(done < from && may_be_older))
                        .then(|| format!("it starts at {done}, not at {from}"))
                });
            }
            Report::TaskFinished { vm, task, attempt, verified, program_failed, .. } => {
                self.require_awake(vm, "finishes a task");
                let too_soon = self.too_soon(vm, task);
                self.check_attempt(vm, task, attempt, "finishes", |open| {
                    if open.started.is_none() {
                        return Some("it finishes before it starts".to_owned());
                    }
                    too_soon
                });
                self.remove_task(task, vm);
                if let Some(state) = self.tasks.get_mut(task.get() as usize) {
                    state.finished = verified || program_failed;
                    if !state.finished {
                        state.stored.clear();
                    }
                }
            }
            Report::TaskFailed { vm, task, attempt, .. } => {
                self.check_attempt(vm, task, attempt, "fails", |_| None);
                self.remove_task(task, vm);
            }
            Report::TaskStopped { vm, task, attempt, kept, .. } => {
                self.check_attempt(vm, task, attempt, "is stopped", |_| None);
                self.remove_task(task, vm);
                self.keep_checkpoint(task, kept.map(|(_, done)| done));
            }
            Report::CheckpointTaken { vm, task, attempt, done, .. } => {
                self.require_awake(vm, "takes a checkpoint");
                self.check_attempt(vm, task, attempt, "is checkpointed", |open| {
                    open.checkpoints += 1;
                    open.started.is_none().then(|| "it is checkpointed before it starts".to_owned())
                });
                self.keep_checkpoint(task, Some(done));
            }
            Report::Credits { vm, balance, as_of } => self.check_credits(vm, (balance, as_of)),
            _ => {}
        }
    }

    fn check_credits(&mut self, vm: VmId, said: (Credits, Option<Time>)) {
        let (now, late) = (self.now, (self.lateness, self.bounds.held_up(self.now, self.lateness)));
        self.check_vm(vm, &ALIVE, "reports credits", |vm| vm.credit_error(now, said, late));
    }

    fn keep_checkpoint(&mut self, task: TaskId, done: Option<Ppm>) {
        if let (Some(state), Some(done)) = (self.tasks.get_mut(task.get() as usize), done) {
            state.kept = done;
            state.stored.insert(done);
        }
    }

    /// Whether a task may start with `done` of its work although its newest checkpoint holds more:
    /// an older checkpoint holds `done`, or the task starts from scratch. In virtual time every
    /// checkpoint can be restored.
    fn may_begin_at(&self, task: TaskId, done: Ppm) -> bool {
        let stored = self.tasks.get(task.get() as usize).map(|task| &task.stored);
        !self.is_exact() && (done == Ppm::ZERO || stored.is_some_and(|all| all.contains(&done)))
    }

    fn frozen_for(&self, vm: VmId) -> Span {
        self.vms.get(&vm).map_or(Span::ZERO, |vm| vm.frozen_until(self.now))
    }

    /// In virtual time, requires that the VM is not hibernated. A real VM's report may date from
    /// just before its hibernation, so live runs are not checked.
    fn require_awake(&mut self, vm: VmId, what: &str) {
        if self.is_exact() {
            self.check_vm(vm, &[VmStage::Running, VmStage::Freezing], what, |_| None);
        }
    }

    fn check_attempt(
        &mut self,
        vm: VmId,
        task: TaskId,
        attempt: Attempt,
        what: &str,
        change: impl FnOnce(&mut OpenAttempt) -> Option<String>,
    ) {
        let open = self.tasks.get_mut(task.get() as usize).and_then(|t| t.open.as_mut());
        let Some(open) = open.filter(|o| o.vm == vm && o.attempt == attempt) else {
            return self
                .report_violation(format!("{task} {what} on {vm}, where it is not ({attempt})"));
        };
        if let Some(wrong) = change(open) {
            self.report_violation(format!("{task} on {vm}: {wrong}"));
        }
    }

    /// An error text if a task that finishes now had less time than its work takes at full speed.
    fn too_soon(&self, vm: VmId, task: TaskId) -> Option<String> {
        let n = task.get() as usize;
        let (followed, open) = (self.vms.get(&vm)?, self.tasks.get(n)?.open.as_ref()?);
        let spec = self.setup.bag.tasks.get(n).filter(|_| self.is_exact())?;
        let runtime = self.setup.task_runtime(task, &followed.kind.name)?;
        let (started, frozen) = open.started?;
        let cost = self.setup.checkpoint.checkpoint_cost(spec.memory).times(open.checkpoints);
        let need = runtime.part(open.from.rest_of_whole()) + cost;
        let frozen = followed.frozen_until(self.now).saturating_sub(frozen);
        let had = self.now.since(started).saturating_sub(frozen);
        // Parts of the work are kept in whole millionths.
        let rounding = runtime.part(Ppm::new(2)) + Span::from_micros(2);
        (had + rounding < need).then(|| format!("it had {had} for work of {need}"))
    }
}

/// Checks all steps of a bag that has the run to itself. Reports may be up to `lateness` of
/// emulated time late (zero in virtual time). If `ended`, the steps must reach the end of the run.
#[must_use]
pub fn check_bag(setup: &Setup, steps: &[Step], lateness: Span, ended: bool) -> Vec<RuleViolation> {
    let (mut checker, mut capacity) = (Checker::new(setup, lateness), CapacityChecker::new(setup));
    for step in steps {
        checker.see(step);
        capacity.see(step);
    }
    checker.finish(ended).into_iter().chain(capacity.finish()).collect()
}

/// A rule that a step of a run breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// Sequence number of the step.
    pub seq: u64,
    /// The emulated time of the step.
    pub at: Time,
    /// The broken rule, as a sentence.
    pub what: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {} at {}: {}", self.seq, self.at, self.what)
    }
}
