//! Invariants of a bag of tasks and its VMs, checked step by step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dormouse_cloud::{PlacementRule, Prices, ResourceVector};
use dormouse_model::{Decision, Effect, Event, Notice, Setup, Step};
use dormouse_units::{Bytes, HostId, Ppm, Span, TaskId, Time, TypeName, VmId};

use super::CapacityChecker;
use super::bounds::TimeBounds;
use super::vm::{CheckedVm, VmStage};
use tasks::CheckedTask;

mod room;
mod surplus;
mod taken;
mod tasks;
mod vms;

/// Every stage of a VM that has not ended.
const ALIVE: [VmStage; 4] =
    [VmStage::Booting, VmStage::Running, VmStage::Freezing, VmStage::Frozen];

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
                self.check_checkpoint_request(vm, task, attempt);
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
        self.declare_uses(step);
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
                    vm.pass_use(now);
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
            Effect::RestoreFellBack { task, from, to, given_up, .. } => {
                self.fell_back(*task, from.1, to.map_or(Ppm::ZERO, |(_, done)| done), *given_up);
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

    fn check_run_end(&mut self, complete: bool) {
        self.over = true;
        let left = self.tasks.iter().filter(|t| !t.finished).count();
        self.require(!complete || left == 0, || {
            format!("it is called complete with {left} tasks left")
        });
        let alive = self.vms.values().filter(|vm| vm.life != VmStage::Ended).count();
        self.require(alive == 0, || format!("{alive} VMs are still there at the end"));
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
