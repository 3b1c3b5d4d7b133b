//! From the event log to what became of everything: for virtual, live and replayed runs alike.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{Action, Billing, Burstable, Host, Market, Meter, Target, TariffName, Terms};
use dormouse_engine::{Counts, DecisionDigest};
use dormouse_model::{Decision, Effect, Event, Notice, Report, Setup, StartReason, Step, VmEnd};
use dormouse_units::{HostId, Mode, Money, Speedup, TaskId, Tier, Time, TypeName, VmId};

use crate::ServiceTally;

use super::lanes::Lanes;
use super::reasons::reason;
use super::{
    AttemptEnd, AttemptHistory, CheckpointMark, Displaced, FallBack, FaultHistory, Hibernation,
    TaskHistory, VmHistory, faults,
};

/// What happened in a run, read from its steps alone.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Hosts of the run, by id.
    pub hosts: BTreeMap<HostId, HostHistory>,
    /// VMs of the run, by id.
    pub vms: BTreeMap<VmId, VmHistory>,
    /// VMs that are not among these, and for which others had to leave ([`Record::leave_out`]).
    pub takers: BTreeMap<VmId, VmHistory>,
    /// The tasks, by id.
    pub tasks: Vec<TaskHistory>,
    /// What the provider did to spot VMs, also where it hit none.
    pub interruptions: Vec<Interrupted>,
    /// The faults that the experiment asked for, as far as their hosts were told of them.
    pub faults: Vec<FaultHistory>,
    /// The number of times that each thing happened.
    pub counts: Counts,
    /// Why checkpoints failed, each reason with how often.
    pub checkpoint_failures: BTreeMap<String, u32>,
    /// Decisions that could not be carried out.
    pub rejected: Vec<(Time, String)>,
    /// Reports of a former life that were dropped.
    pub stale: u32,
    /// The time at which it was over, and whether all tasks were finished.
    pub over: Option<(Time, bool)>,
    /// Why it was ended before its time.
    pub cancelled: Option<String>,
    /// The number of steps that there were.
    pub steps: u64,
    /// The number of decisions in all steps.
    pub decisions: u64,
    /// The time of the last step.
    pub now: Time,
    /// The speed at which a live run's clock goes; `None` in virtual time.
    pub speedup: Option<Speedup>,
    tariff: TariffName,
    /// The burstable types, in whatever mode.
    burstable: BTreeSet<TypeName>,
    /// Burstable types in unlimited mode.
    unlimited: BTreeMap<TypeName, Burstable>,
    billing: Billing,
    /// What the batch service made of it.
    pub service: ServiceTally,
    pub(super) digest: DecisionDigest,
    /// Tasks that are finished: asked for after every step.
    pub(super) finished: usize,
}

/// One host, from when it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHistory {
    /// What people call it.
    pub name: String,
    /// The vCPUs and the memory that it has for VMs.
    pub offer: Host,
    /// The emulated time at which it joined.
    pub joined: Time,
    /// The time and the reason of its loss.
    pub lost: Option<(Time, String)>,
}

/// One act of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The time at which it was asked for.
    pub asked: Time,
    /// The time at which the engine acted on it.
    pub at: Time,
    /// What the provider did.
    pub action: Action,
    /// The VM or VMs that it did it to.
    pub target: Target,
    /// The VMs it hit.
    pub vms: Vec<VmId>,
    /// Why somebody who looked on asked for it; `None`: the provider did it by itself.
    pub asked_by: Option<String>,
}

impl Record {
    /// Nothing yet, of a run of this setup.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        let tasks = vec![TaskHistory::default(); setup.bag.tasks.len()];
        let Terms { tariff, billing, .. } = setup.terms;
        let unlimited = setup.catalogue.types.values().filter_map(|kind| {
            let burstable = kind.burstable.filter(|burstable| burstable.surplus.is_some())?;
            Some((kind.name.clone(), burstable))
        });
        let (service, unlimited) = (ServiceTally::new(setup), unlimited.collect());
        let kinds = setup.catalogue.types.values().filter(|kind| kind.burstable.is_some());
        let burstable = kinds.map(|kind| kind.name.clone()).collect();
        Self { tasks, tariff, burstable, unlimited, billing, service, ..Self::default() }
    }

    /// Leaves out VMs that are of no concern; of those for which others had to leave it is known still
    /// what they were.
    pub fn leave_out(&mut self, of_no_concern: impl Fn(VmId) -> bool) {
        let displaced = self.vms.values().flat_map(|vm| &vm.displaced);
        let takers: BTreeSet<VmId> = displaced.map(|how| how.by).collect();
        let out = self.vms.extract_if(.., |vm, _| of_no_concern(*vm));
        self.takers.extend(out.filter(|(vm, _)| takers.contains(vm)));
    }

    /// The record, as of a live run at this speed-up.
    #[must_use]
    pub fn at(self, speedup: Speedup) -> Self {
        Self { speedup: Some(speedup), ..self }
    }

    /// Takes in the next step.
    pub fn see(&mut self, step: &Step) {
        let now = step.at;
        self.now = now;
        self.steps += 1;
        self.service.see(step);
        faults::see(&mut self.faults, step);
        for decision in &step.decisions {
            self.digest.add(now, decision);
            self.decisions += 1;
        }
        self.event(now, step);
        for notice in &step.notices {
            match notice {
                Notice::LaunchRefused { .. } => self.counts.launches_refused += 1,
                // In unlimited mode the machine's balance is not the VM's.
                Notice::Credits { vm, balance } => {
                    let unlimited = &self.unlimited;
                    let history =
                        self.vms.get_mut(vm).filter(|vm| unlimited.contains_key(&vm.kind));
                    if let Some(last) = history.and_then(|vm| vm.credits.last_mut()) {
                        last.1 = *balance;
                    }
                }
                _ => {}
            }
        }
        let done = carried_out(step);
        let (before, after) = self.split_stops(&done);
        for (task, vm, keep) in before {
            self.stop(now, task, vm, keep);
        }
        let modes: BTreeMap<TaskId, Mode> = done
            .iter()
            .filter_map(|d| match d {
                Decision::Start { task, mode, .. } => Some((*task, *mode)),
                _ => None,
            })
            .collect();
        let asked_by = match &step.event {
            Event::Interrupt { why, .. } => Some(why.as_str()),
            _ => None,
        };
        for effect in &step.effects {
            self.effect(now, effect, &modes, asked_by);
            if let &Effect::CheckpointAsked { task, .. } = effect {
                let is_it =
                    |d: &&Decision| matches!(d, Decision::Checkpoint { task: t, .. } if *t == task);
                let decided = done.iter().any(is_it);
                if let Some(attempt) = self.task(task).and_then(TaskHistory::open) {
                    attempt.asked.push((now, decided));
                }
            }
        }
        for (task, vm, keep) in after {
            self.stop(now, task, vm, keep);
        }
        for decision in done {
            match *decision {
                Decision::SetMode { task, mode, .. } => {
                    if let Some(attempt) = self.task(task).and_then(TaskHistory::open) {
                        attempt.modes.push((now, mode));
                    }
                }
                Decision::Terminate { reason: Some(reason), .. } => {
                    self.counts.given_back(reason);
                }
                _ => {}
            }
        }
    }

    fn task(&mut self, id: TaskId) -> Option<&mut TaskHistory> {
        self.tasks.get_mut(id.get() as usize)
    }

    /// The stops of a step: of attempts that were there before, and of its own.
    fn split_stops(&self, done: &[&Decision]) -> (Vec<Stop>, Vec<Stop>) {
        done.iter()
            .filter_map(|d| match **d {
                Decision::Stop { task, vm, keep } => Some((task, vm, keep)),
                _ => None,
            })
            .partition(|&(task, vm, _)| {
                self.tasks
                    .get(task.get() as usize)
                    .and_then(TaskHistory::last)
                    .is_some_and(|a| a.ended.is_none() && a.vm == vm)
            })
    }

    fn stop(&mut self, now: Time, task: TaskId, vm: VmId, keep: bool) {
        // One that is to be kept is over when its checkpoint is reported.
        let on_vm = |t: &mut TaskHistory| t.open().is_some_and(|a| a.vm == vm);
        if !keep && self.task(task).is_some_and(on_vm) {
            self.end_attempt(now, task, AttemptEnd::Dropped);
        }
    }

    fn end_attempt(&mut self, now: Time, task: TaskId, end: AttemptEnd) {
        let Some(attempt) = self.task(task).and_then(TaskHistory::open) else { return };
        attempt.ended = Some((now, end));
        let vm = attempt.vm;
        if let Some(vm) = self.vms.get_mut(&vm) {
            vm.lanes.leave(task);
        }
    }

    fn event(&mut self, now: Time, step: &Step) {
        match &step.event {
            Event::HostJoined { host, name, offer } => {
                let history =
                    HostHistory { name: name.clone(), offer: *offer, joined: now, lost: None };
                self.hosts.insert(*host, history);
            }
            Event::HostLost { host, why, .. } => {
                self.counts.hosts_lost += 1;
                if let Some(history) = self.hosts.get_mut(host) {
                    history.lost = Some((now, why.clone()));
                }
            }
            Event::Cancel { why } => {
                self.cancelled.get_or_insert_with(|| why.clone());
            }
            Event::Machine { report, .. } => {
                let stale = step.effects.contains(&Effect::Stale);
                if let Report::TaskStarted { task, .. } = *report {
                    self.begins_with_another(task, &step.effects);
                }
                self.report(now, report, stale);
            }
            // This is the record of a bag: jobs that are submitted later have one of their own.
            Event::Submitted { .. }
            | Event::Closed
            | Event::AllSubmitted
            | Event::Requested { .. }
            | Event::AllRequested
            | Event::InstantOver
            | Event::Interrupt { .. }
            | Event::Fault { .. }
            | Event::FaultFelt { .. }
            | Event::HostLoad { .. }
            | Event::Disbelieved { .. }
            | Event::CoordinatorLoad { .. }
            | Event::Begin
            | Event::Tick
            | Event::Clock { .. }
            | Event::Resumed { .. } => {}
        }
    }

    /// An attempt begins with another checkpoint than it was sent with, if these effects say so.
    fn begins_with_another(&mut self, id: TaskId, effects: &[Effect]) {
        for effect in effects {
            if let Effect::RestoreFellBack { task, to, .. } = *effect
                && task == id
                && let Some(attempt) = self.task(task).and_then(TaskHistory::open)
            {
                attempt.from = to;
            }
        }
    }

    fn report(&mut self, now: Time, report: &Report, stale: bool) {
        if let Report::Ledger { task, attempt, ref ledger, ref own, .. } = *report {
            if let Some(attempt) = self.task(task).and_then(|t| t.current(attempt)) {
                attempt.ledger = Some(**ledger);
                attempt.own.clone_from(own);
            }
            return;
        }
        if let Report::Share { vm, real_promised_us, real_received_us } = *report {
            if let Some(vm) = self.vms.get_mut(&vm) {
                vm.share = Some((real_promised_us, real_received_us));
            }
            return;
        }
        // CPU time of a former life was spent all the same.
        if let Report::TaskFinished { task, attempt, real_cpu_us, .. }
        | Report::TaskFailed { task, attempt, real_cpu_us, .. }
        | Report::TaskStopped { task, attempt, real_cpu_us, .. } = *report
            && let Some(attempt) = self.task(task).and_then(|t| t.current(attempt))
        {
            attempt.real_cpu_us = real_cpu_us;
        }
        if stale {
            self.stale += 1;
            return;
        }
        match report {
            Report::Credits { vm, balance, .. } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    let burstable = self.unlimited.get(&vm.kind);
                    let balance = burstable.map_or(*balance, |of| of.of_vm(*balance));
                    vm.credits.push((now, balance));
                }
            }
            Report::TaskStarted { task, attempt, real_took_us, .. } => {
                let vms = &self.vms;
                let attempts = self.tasks.get_mut(task.get() as usize);
                if let Some(attempt) = attempts.and_then(|t| t.current(*attempt)) {
                    // One sent to a VM that froze meanwhile began with its resume.
                    if attempt.started.is_none() {
                        self.counts.restores += u32::from(attempt.from.is_some());
                    }
                    let resumes = vms.get(&attempt.vm).into_iter().flat_map(|vm| &vm.hibernations);
                    let resumed = resumes.filter_map(|h| h.resumed.map(|(_, at)| at)).max();
                    attempt
                        .started
                        .get_or_insert(resumed.map_or(attempt.sent, |at| at.max(attempt.sent)));
                    attempt.real_start_us = *real_took_us;
                }
            }
            Report::TaskFinished { task, verified: true, reported, .. } => {
                self.end_attempt(now, *task, AttemptEnd::Finished);
                let task = self.tasks.get_mut(task.get() as usize);
                let before = task.map(|task| {
                    task.reported = *reported;
                    task.finished.replace(now)
                });
                self.finished += usize::from(before == Some(None));
            }
            Report::TaskFinished { task, program_failed: true, .. } => {
                self.counts.attempts_failed += 1;
                let own = self.task(*task).and_then(|it| it.open()?.own.clone());
                let how = own.map_or_else(|| "came to nothing".to_owned(), |own| own.in_words());
                self.end_attempt(now, *task, AttemptEnd::Failed(format!("its program {how}")));
                let task = self.tasks.get_mut(task.get() as usize);
                let before = task.map(|task| {
                    task.program_failed = true;
                    task.finished.replace(now)
                });
                self.finished += usize::from(before == Some(None));
            }
            Report::TaskFinished { task, verified: false, .. } => {
                self.counts.attempts_failed += 1;
                self.end_attempt(now, *task, AttemptEnd::Failed("its answer is wrong".into()));
            }
            Report::TaskFailed { task, why, .. } => {
                self.counts.attempts_failed += 1;
                self.end_attempt(now, *task, AttemptEnd::Failed(why.clone()));
            }
            Report::TaskStopped { task, kept, .. } => {
                let end = kept.map_or(AttemptEnd::Dropped, |(_, done)| AttemptEnd::Stopped(done));
                self.end_attempt(now, *task, end);
            }
            Report::CheckpointTaken {
                task,
                attempt,
                checkpoint,
                done,
                bytes,
                real_held_us,
                real_owed_us,
                ..
            } => {
                self.counts.checkpoints += 1;
                if let Some(attempt) = self.task(*task).and_then(|t| t.current(*attempt)) {
                    attempt.checkpoints.push(CheckpointMark {
                        at: now,
                        seq: *checkpoint,
                        done: *done,
                        bytes: *bytes,
                        real_held_us: *real_held_us,
                        real_owed_us: *real_owed_us,
                    });
                }
            }
            Report::CheckpointFailed { why, .. } => {
                self.counts.checkpoints_failed += 1;
                *self.checkpoint_failures.entry(reason(why)).or_default() += 1;
            }
            _ => {}
        }
    }

    fn effect(
        &mut self,
        now: Time,
        effect: &Effect,
        modes: &BTreeMap<TaskId, Mode>,
        asked_by: Option<&str>,
    ) {
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, vcpus, host, .. } => {
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
                    hibernations: Vec::new(),
                    displaced: Vec::new(),
                    waited_for: Vec::new(),
                    credits: Vec::new(),
                    share: None,
                    is_background: false,
                    supplies: Vec::new(),
                    meter: Meter::launched(now, *price, self.billing).at_most(*bid),
                    surcharge: Money::ZERO,
                    tariff: self.tariff,
                    lanes: Lanes::new(*vcpus),
                };
                self.vms.insert(*vm, history);
            }
            Effect::VmReady { vm } => self.on_vm(*vm, |vm| {
                vm.ready = Some(now);
                vm.meter.start(now);
            }),
            Effect::PriceChanged { kind, price } => {
                let alike = |vm: &&mut VmHistory| vm.market == Market::Spot && vm.kind == *kind;
                for vm in self.vms.values_mut().filter(|vm| vm.ended.is_none()).filter(alike) {
                    vm.meter.reprice(now, *price);
                }
            }
            Effect::Outbid { vm } | Effect::Reclaimed { vm } => {
                self.acted_on(now, *vm, Action::Preempt);
            }
            &Effect::Displaced { vm, by, action } => {
                self.acted_on(now, vm, action);
                let displaced = Displaced { at: now, by, action, given_back: None };
                self.on_vm(vm, |vm| vm.displaced.push(displaced));
                self.on_vm(by, |by| by.waited_for.push(vm));
            }
            Effect::GivenBack { vm } => {
                self.acted_on(now, *vm, Action::Resume);
                let last = |vm: &mut VmHistory| {
                    if let Some(last) = vm.displaced.last_mut() {
                        last.given_back = Some(now);
                    }
                };
                self.on_vm(*vm, last);
            }
            Effect::Interrupted { asked, action, target, vms, .. } => {
                let (asked, action, target, vms) = (*asked, *action, target.clone(), vms.clone());
                let asked_by = asked_by.map(str::to_owned);
                self.interruptions.push(Interrupted {
                    asked,
                    at: now,
                    action,
                    target,
                    vms,
                    asked_by,
                });
            }
            Effect::SurplusCharged { vm, cost, .. } => self.on_vm(*vm, |vm| vm.surcharge = *cost),
            Effect::VmHibernated { vm, asked } => {
                self.counts.hibernations += 1;
                self.on_vm(*vm, |vm| {
                    vm.hibernations.push(Hibernation { asked: *asked, frozen: now, resumed: None });
                    vm.meter.freeze(now);
                });
            }
            Effect::VmResumed { vm, asked } => {
                self.counts.resumes += 1;
                self.on_vm(*vm, |vm| {
                    if let Some(last) = vm.hibernations.last_mut() {
                        last.resumed = Some((*asked, now));
                    }
                    vm.meter.start(now);
                });
            }
            Effect::VmEnded { vm, why, cost } => self.vm_ended(now, *vm, *why, *cost),
            Effect::Placed { vm, tier, .. } => {
                self.on_vm(*vm, |vm| vm.is_background = *tier == Tier::Background);
            }
            Effect::Supplied { vm, vcpu, share } => {
                self.on_vm(*vm, |vm| vm.supplies.push((now, *vcpu, *share)));
            }
            Effect::TaskSent { task, attempt, vm, reason, from, vcpu } => {
                let mode = modes.get(task).copied().unwrap_or_default();
                match reason {
                    StartReason::Migrated => {
                        self.counts.migrations += 1;
                        let kind = self.vms.get(vm).map(|vm| &vm.kind);
                        let is_burstable = kind.is_some_and(|kind| self.burstable.contains(kind));
                        let is_burst = mode == Mode::Burst && is_burstable;
                        self.counts.burst_starts += u32::from(is_burst);
                    }
                    StartReason::Stolen => self.counts.steals += 1,
                    _ => {}
                }
                if self.task(*task).is_none() {
                    return;
                }
                let lane = self.vms.get_mut(vm).map_or(0, |vm| vm.lanes.take(*task, *vcpu));
                let history = AttemptHistory {
                    attempt: *attempt,
                    vm: *vm,
                    lane,
                    reason: *reason,
                    from: *from,
                    fell_back: Vec::new(),
                    sent: now,
                    started: None,
                    modes: vec![(now, mode)],
                    asked: Vec::new(),
                    checkpoints: Vec::new(),
                    ended: None,
                    real_cpu_us: 0,
                    real_start_us: 0,
                    ledger: None,
                    own: None,
                };
                if let Some(task) = self.task(*task) {
                    task.attempts.push(history);
                }
            }
            &Effect::RestoreFellBack { task, from, to, not_on, .. } => {
                if let Some(attempt) = self.task(task).and_then(|t| t.attempts.last_mut()) {
                    attempt.fell_back.push(FallBack { at: now, from, to, not_on });
                }
            }
            Effect::AvailabilityChanged { .. }
            | Effect::Stale
            | Effect::Moot { .. }
            | Effect::CheckpointAsked { .. } => {}
            Effect::Rejected { why, .. } => {
                self.counts.rejected += 1;
                self.rejected.push((now, why.clone()));
            }
            Effect::Over { complete } => self.over = Some((now, *complete)),
        }
    }

    /// The provider did this to one VM.
    fn acted_on(&mut self, now: Time, vm: VmId, action: Action) {
        let (target, vms) = (Target::Vm(vm), vec![vm]);
        let (asked, asked_by) = (now, None);
        self.interruptions.push(Interrupted { asked, at: now, action, target, vms, asked_by });
    }

    fn on_vm(&mut self, vm: VmId, change: impl FnOnce(&mut VmHistory)) {
        if let Some(vm) = self.vms.get_mut(&vm) {
            change(vm);
        }
    }

    fn vm_ended(&mut self, now: Time, vm: VmId, why: VmEnd, cost: Money) {
        if why == VmEnd::Preempted {
            self.counts.preemptions += 1;
        }
        let Some(history) = self.vms.get_mut(&vm) else { return };
        history.meter.end(now, why.by());
        history.ended = Some((now, why, cost));
        for task in std::mem::take(&mut history.lanes).into_tasks() {
            self.end_attempt(now, task, AttemptEnd::VmGone(why));
        }
    }
}

/// A task on a VM, and whether what it has done is to be kept.
type Stop = (TaskId, VmId, bool);

/// The decisions of a step without those that were not carried out.
#[must_use]
pub fn carried_out(step: &Step) -> Vec<&Decision> {
    let refused = |n: usize| step.effects.iter().any(|e| e.refuses(n));
    step.decisions.iter().enumerate().filter(|&(n, _)| !refused(n)).map(|(_, d)| d).collect()
}
