//! States that a campaign must reach: where a state never occurs, its invariants are never really checked.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::Market;
use dormouse_model::{Effect, Event, FaultState, Notice, Report, Setup, Step, TenantWork, VmEnd};
use dormouse_units::{Money, TaskId, TypeName, VmId};

use crate::plan::Schedulers;

/// Number of runs from which a campaign fails if it has not reached every state.
pub const ENOUGH_RUNS: u64 = 20_000;

/// A state that a campaign must reach.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The state's name.
    pub name: &'static str,
    /// What has happened in a run that has reached the state, in words.
    pub what: &'static str,
}

macro_rules! states {
    ($($name:literal: $what:literal;)*) => {
        /// All states that a campaign must reach.
        pub const STATES: &[State] = &[$(State { name: $name, what: $what }),*];
    };
}

states! {
    "bill-over-hibernation": "a VM that was hibernated and resumed has ended and costs something";
    "bill-of-frozen": "a VM has ended while it was hibernated";
    "bill-forgiven": "a VM was used and taken by the provider, and costs nothing";
    "price-change-in-use": "a spot price changed while a VM of the type was used";
    "outbid": "a VM was ended as its price passed its bid";
    "reclaimed": "a spot VM was taken back as fewer can be had";
    "displaced": "a spot VM made room for another VM";
    "given-back": "a VM that had made room for another was told to resume";
    "burstable-spot": "a burstable VM was bought in the spot market";
    "credits-at-thaw": "a VM that was hibernated has said what credits it has";
    "surplus-charged": "surplus credits were charged";
    "background-supply": "the share of a VM in the background has changed";
    "several-tenants": "tenants shared a run that is complete";
    "tenant-refused": "a tenant was refused a VM beside others";
    "request-granted": "a customer's VM was ready";
    "request-refused": "a customer was refused a VM";
    "workflow-after-loss": "a task that follows others was sent after a host was lost";
    "late-task": "a task was sent that is submitted during the run";
    "follower-job": "a job was submitted that follows another";
    "called-job": "a job was submitted from outside";
    "closed": "an open run was closed";
    "job-with-memory": "a job that needs memory was started";
    "job-moved": "a job was moved to other processors, or promoted";
    "answers-of-program": "a scheduler that is asked as a program decided something";
    "program-after-crash": "a run went on whose scheduler is asked as a program";
    "experiment-fault": "a worker carried out a fault of the experiment";
    "experiment-fault-refused": "a worker could not carry out a fault of the experiment";
    "host-lost": "a host was lost";
    "host-lost-unheard": "a host was lost while there was no coordinator";
    "outage-with-vms": "a run went on whose VMs were kept meanwhile";
    "restore-fell-back": "a task began from an older checkpoint than the newest";
    "checkpoint-failed": "a checkpoint failed";
    "stopped-with-checkpoint": "a task was stopped with a checkpoint";
    "stale-report": "a report of a former life was dropped";
    "moot-decision": "a decision was overtaken";
    "disbelieved": "a worker is no longer believed";
    "account-parted": "a crash parted an account from its report";
    "retried-upload": "a checkpoint was sent to the coordinator again";
    "two-pauses": "two workers stood still at once";
    "large-and-complete": "a run of twenty tasks or more is complete";
}

/// The record of a VM that has not ended.
#[derive(Debug)]
struct KnownVm {
    spot: Option<TypeName>,
    is_used: bool,
    was_used: bool,
    is_frozen: bool,
    has_resumed: bool,
}

/// The states that a run has reached by its log.
#[must_use]
pub fn reached(setup: &Setup, schedulers: &Schedulers, steps: &[Step]) -> BTreeSet<&'static str> {
    let mut fold = ReachFold::new(setup, schedulers);
    steps.iter().for_each(|step| fold.see(step));
    fold.reached
}

/// Folds the steps of a run into the states that it has reached.
struct ReachFold<'a> {
    setup: &'a Setup,
    schedulers: &'a Schedulers,
    reached: BTreeSet<&'static str>,
    vms: BTreeMap<VmId, KnownVm>,
    with_memory: BTreeSet<TaskId>,
    tasks: usize,
    has_lost: bool,
}

impl<'a> ReachFold<'a> {
    fn new(setup: &'a Setup, schedulers: &'a Schedulers) -> Self {
        Self {
            setup,
            schedulers,
            reached: BTreeSet::new(),
            vms: BTreeMap::new(),
            with_memory: BTreeSet::new(),
            tasks: setup.bag.tasks.len(),
            has_lost: false,
        }
    }

    fn add(&mut self, name: &'static str, is_reached: bool) {
        if is_reached {
            self.reached.insert(name);
        }
    }

    fn see(&mut self, step: &Step) {
        self.see_event(step);
        for effect in &step.effects {
            self.see_effect(effect);
        }
        let tenants = self.schedulers.tenants();
        for notice in &step.notices {
            if let Notice::LaunchRefused { vm, .. } = notice {
                self.add("tenant-refused", tenants.are_several());
                self.add("request-refused", tenants.work_on(*vm) == Some(TenantWork::Requests));
            }
        }
        self.add("answers-of-program", step.answers.iter().any(|decided| *decided > 0));
    }

    fn see_event(&mut self, step: &Step) {
        let is_stale = step.effects.contains(&Effect::Stale);
        match &step.event {
            Event::HostLost { unheard, .. } => {
                self.has_lost = true;
                self.add("host-lost", true);
                self.add("host-lost-unheard", *unheard);
            }
            Event::Submitted { task, key, job } if !is_stale => {
                self.tasks += 1;
                self.add("follower-job", job.after.is_some());
                self.add("called-job", key.is_some());
                if job.memory.get() > 0 {
                    self.with_memory.insert(*task);
                }
            }
            Event::Closed => self.add("closed", true),
            Event::Disbelieved { .. } => self.add("disbelieved", true),
            Event::FaultFelt { felt, .. } => {
                self.add("experiment-fault", matches!(felt, FaultState::Begun));
                self.add("experiment-fault-refused", matches!(felt, FaultState::Refused { .. }));
            }
            Event::Resumed { outage, .. } => {
                self.add("outage-with-vms", outage.as_micros() > 0);
                self.add("program-after-crash", self.schedulers.are_programs);
            }
            Event::Machine { report, .. } if !is_stale => self.see_report(report),
            _ => {}
        }
    }

    fn see_report(&mut self, report: &Report) {
        match report {
            Report::Credits { vm, .. } => {
                let has_resumed = self.vms.get(vm).is_some_and(|vm| vm.has_resumed);
                self.add("credits-at-thaw", has_resumed);
            }
            Report::CheckpointFailed { .. } => self.add("checkpoint-failed", true),
            Report::TaskStopped { kept, .. } => self.add("stopped-with-checkpoint", kept.is_some()),
            Report::TaskPromoted { .. } | Report::TaskMoved { .. } => self.add("job-moved", true),
            _ => {}
        }
    }

    fn see_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::VmLaunched { vm, kind, market, .. } => {
                let spot = (*market == Market::Spot).then(|| kind.clone());
                let rates = self.setup.catalogue.get(kind).and_then(|kind| kind.burstable);
                self.add("burstable-spot", spot.is_some() && rates.is_some());
                let known = KnownVm {
                    spot,
                    is_used: false,
                    was_used: false,
                    is_frozen: false,
                    has_resumed: false,
                };
                self.vms.insert(*vm, known);
            }
            Effect::VmReady { vm } => {
                let work = self.schedulers.tenants().work_on(*vm);
                self.add("request-granted", work == Some(TenantWork::Requests));
                if let Some(vm) = self.vms.get_mut(vm) {
                    (vm.is_used, vm.was_used) = (true, true);
                }
            }
            Effect::VmHibernated { vm, .. } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    (vm.is_used, vm.is_frozen) = (false, true);
                }
            }
            Effect::VmResumed { vm, .. } => {
                if let Some(vm) = self.vms.get_mut(vm) {
                    (vm.is_used, vm.is_frozen, vm.has_resumed) = (true, false, true);
                }
            }
            Effect::PriceChanged { kind, .. } => {
                let mut used = self.vms.values().filter(|vm| vm.is_used);
                let is_in_use = used.any(|vm| vm.spot.as_ref() == Some(kind));
                self.add("price-change-in-use", is_in_use);
            }
            Effect::VmEnded { vm, why, cost } => {
                if let Some(vm) = self.vms.remove(vm) {
                    let costs = *cost > Money::ZERO;
                    self.add("bill-over-hibernation", vm.has_resumed && costs);
                    self.add("bill-of-frozen", vm.is_frozen);
                    self.add("bill-forgiven", vm.was_used && !costs && *why == VmEnd::Preempted);
                }
            }
            Effect::TaskSent { task, .. } => self.see_start(*task),
            Effect::Over { complete: true } => {
                self.add("several-tenants", self.schedulers.tenants().are_several());
                self.add("large-and-complete", self.tasks >= 20);
            }
            effect => {
                if let Some(name) = plain_state(effect) {
                    self.add(name, true);
                }
            }
        }
    }

    fn see_start(&mut self, task: TaskId) {
        if let Some(task) = self.setup.bag.tasks.get(task.get() as usize) {
            self.add("workflow-after-loss", self.has_lost && !task.after.is_empty());
            self.add("late-task", task.submitted.as_micros() > 0);
        }
        self.add("job-with-memory", self.with_memory.contains(&task));
    }
}

/// The state that this effect alone shows; `None` if it shows none.
const fn plain_state(effect: &Effect) -> Option<&'static str> {
    Some(match effect {
        Effect::Outbid { .. } => "outbid",
        Effect::Reclaimed { .. } => "reclaimed",
        Effect::Displaced { .. } => "displaced",
        Effect::GivenBack { .. } => "given-back",
        Effect::SurplusCharged { .. } => "surplus-charged",
        Effect::Supplied { .. } => "background-supply",
        Effect::RestoreFellBack { .. } => "restore-fell-back",
        Effect::Stale => "stale-report",
        Effect::Moot { .. } => "moot-decision",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use dormouse_model::UsageInformation;
    use dormouse_units::{HostId, Price, Time};

    use super::*;

    fn of(effects: Vec<Effect>) -> Vec<&'static str> {
        let setup = Setup::of_jobs(1, UsageInformation::Exact, 1);
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, Event::Tick);
        step.effects = effects;
        reached(&setup, &Schedulers::default(), &[step]).into_iter().collect()
    }

    #[test]
    fn a_state_is_reached_by_all_that_it_takes() {
        let vm = VmId::new(1);
        let launched = || Effect::VmLaunched {
            vm,
            kind: "a".into(),
            market: Market::Spot,
            price: Price::default(),
            bid: None,
            vcpus: 1,
            host: HostId::new(0),
        };
        let hibernated = || Effect::VmHibernated { vm, asked: Time::ZERO };
        let resumed = || Effect::VmResumed { vm, asked: Time::ZERO };
        let ended =
            |nanos| Effect::VmEnded { vm, why: VmEnd::Preempted, cost: Money::from_nanos(nanos) };
        let ready = || Effect::VmReady { vm };
        assert_eq!(of(vec![launched(), ready(), hibernated(), ended(1)]), ["bill-of-frozen"]);
        let all = vec![launched(), ready(), hibernated(), resumed(), ended(1)];
        assert_eq!(of(all), ["bill-over-hibernation"]);
        assert_eq!(of(vec![launched(), ready(), ended(0)]), ["bill-forgiven"]);
        assert_eq!(of(vec![launched(), ended(0)]), [""; 0]);
        let change = || Effect::PriceChanged { kind: "a".into(), price: Price::default() };
        assert_eq!(of(vec![launched(), change()]), [""; 0]);
        assert_eq!(of(vec![launched(), ready(), change()]), ["price-change-in-use"]);
    }

    #[test]
    fn names_are_told_apart() {
        let names: BTreeSet<_> = STATES.iter().map(|state| state.name).collect();
        assert_eq!(names.len(), STATES.len());
        assert!(plain_state(&Effect::Stale).is_some_and(|name| names.contains(name)));
    }
}
