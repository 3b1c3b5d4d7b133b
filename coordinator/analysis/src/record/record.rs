//! The one fold from the steps of a run, virtual, live or replayed, to what became of everything in it.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{Action, Billing, Burstable, Host, Target, TariffName, Terms};
use dormouse_engine::{Counts, DecisionDigest};
use dormouse_model::{Decision, Effect, Event, Notice, Setup, Step, Tenants};
use dormouse_units::{HostId, Speedup, TaskId, Time, TypeName, VmId, Window};

use super::{
    Change, Closed, FaultHistory, JobHistory, RequestHistory, TaskHistory, VmHistory, faults,
};
use crate::ServiceTally;

/// What happened in a run, read from its steps alone: everything else that is said of a run is asked of this.
///
/// The tasks of a bag and their VMs stay in it. Parallel jobs and requests are there while they are in the
/// system; those that came to their end in the last step are in [`Record::closed`].
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Hosts of the run, by id.
    pub hosts: BTreeMap<HostId, HostHistory>,
    /// VMs of the run, by id: all that there were, or, where it forgets, those that there are.
    pub vms: BTreeMap<VmId, VmHistory>,
    /// VMs that are not among these, and for which others had to leave ([`Record::leave_out`]).
    pub takers: BTreeMap<VmId, VmHistory>,
    /// The tasks of the bag, by id.
    pub tasks: Vec<TaskHistory>,
    /// The parallel jobs in the system.
    pub jobs: Window<JobHistory>,
    /// The requests that are not over, by the VM of each.
    pub requests: BTreeMap<VmId, RequestHistory>,
    /// Acts of the provider on spot VMs, also those that hit none; none, where the record forgets.
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
    /// The account of the batch service.
    pub service: ServiceTally,
    /// The most parallel jobs that were in the system at once.
    pub most_jobs: usize,
    /// The number of parallel jobs in the system, as their scheduler knows.
    pub jobs_heard: usize,
    pub(super) tenants: Tenants,
    /// Whether what has ended is not kept.
    pub(super) forgets: bool,
    /// Whether attempts are of no interest.
    pub(super) skips_attempts: bool,
    pub(super) tariff: TariffName,
    /// The burstable types, in whatever mode.
    pub(super) burstable: BTreeSet<TypeName>,
    /// Burstable types in unlimited mode.
    pub(super) unlimited: BTreeMap<TypeName, Burstable>,
    pub(super) billing: Billing,
    /// The tasks whose programs save their work at a notice, by their numbers.
    pub(super) savers: BTreeSet<TaskId>,
    /// The digest of all decisions; `None`: nobody wants it.
    pub(super) digest: Option<DecisionDigest>,
    /// Tasks of the bag that are finished: asked for after every step.
    pub(super) finished: usize,
    pub(super) changes: Vec<Change>,
    pub(super) closed: Closed,
}

/// A host of a run, from when it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHistory {
    /// The name that people have for it.
    pub name: String,
    /// The vCPUs and the memory that it has for VMs.
    pub offer: Host,
    /// The emulated time at which it joined.
    pub joined: Time,
    /// The time and the reason of its loss.
    pub lost: Option<(Time, String)>,
}

/// An act of the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    /// The time at which it was asked for.
    pub asked: Time,
    /// The time at which the engine acted on it.
    pub at: Time,
    /// The act of the provider.
    pub action: Action,
    /// The VM or VMs that it did it to.
    pub target: Target,
    /// The VMs it hit.
    pub vms: Vec<VmId>,
    /// Why somebody who looked on asked for it; `None`: the provider did it by itself.
    pub asked_by: Option<String>,
}

impl Record {
    /// Nothing yet, of a run of this setup that one tenant has.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self::shared(setup, Tenants::default())
    }

    /// Nothing yet, of a run of this whole setup with these tenants.
    #[must_use]
    pub fn shared(setup: &Setup, tenants: Tenants) -> Self {
        let tasks = vec![TaskHistory::default(); setup.bag.tasks.len()];
        let Terms { tariff, billing, .. } = setup.terms;
        let unlimited = setup.catalogue.types.values().filter_map(|kind| {
            let burstable = kind.burstable.filter(|burstable| burstable.surplus.is_some())?;
            Some((kind.name.clone(), burstable))
        });
        let (service, unlimited) = (ServiceTally::new(setup), unlimited.collect());
        let kinds = setup.catalogue.types.values().filter(|kind| kind.burstable.is_some());
        let burstable = kinds.map(|kind| kind.name.clone()).collect();
        let digest = Some(DecisionDigest::default());
        let all = (0..).map(TaskId::new).take(tasks.len());
        let savers = all.filter(|task| setup.checkpoint.is_saved_by_program(*task)).collect();
        Self {
            tasks,
            tenants,
            tariff,
            burstable,
            unlimited,
            billing,
            savers,
            service,
            digest,
            ..Self::default()
        }
    }

    /// This record, without the digest of all decisions.
    #[must_use]
    pub fn undigested(self) -> Self {
        Self { digest: None, ..self }
    }

    /// This record, which keeps no VM that has ended and no act of the provider: its memory is that of what is in
    /// the system. It has no digest, and nothing of a batch service.
    #[must_use]
    pub fn forgetting(self) -> Self {
        Self { forgets: true, digest: None, ..self }
    }

    /// This record, which knows of no attempt at a task or job: jobs have their spells all the same.
    #[must_use]
    pub fn without_attempts(self) -> Self {
        Self { skips_attempts: true, ..self }
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

    /// The changes of the last step, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// All that came to its end in the last step.
    #[must_use]
    pub const fn closed(&self) -> &Closed {
        &self.closed
    }

    /// A VM, also one that ended in the last step.
    #[must_use]
    pub fn vm(&self, id: VmId) -> Option<&VmHistory> {
        self.vms.get(&id).or_else(|| self.closed.vms.iter().find(|vm| vm.id == id))
    }

    /// The attempts at a task of the bag or a parallel job, also of one that ended in the last step.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&TaskHistory> {
        let ended = || self.closed.jobs.iter().find(|job| job.id == id).map(|job| &job.task);
        let job = || self.jobs.get(id).map(|job| &job.task);
        self.tasks.get(id.get() as usize).or_else(job).or_else(ended)
    }

    /// The request for a VM, also one that was over in the last step.
    #[must_use]
    pub fn request(&self, vm: VmId) -> Option<&RequestHistory> {
        let over = || self.closed.requests.iter().find(|request| request.vm == vm);
        self.requests.get(&vm).or_else(over)
    }

    /// Takes in the next step.
    pub fn see(&mut self, step: &Step) {
        let now = step.at;
        self.changes.clear();
        self.closed.clear();
        self.now = now;
        self.steps += 1;
        self.decisions += step.decisions.len() as u64;
        if !self.forgets {
            self.service.see(step);
        }
        if let Some(digest) = &mut self.digest {
            step.decisions.iter().for_each(|decision| digest.add(now, decision));
        }
        faults::see(&mut self.faults, step);
        self.event(step);
        if self.skips_attempts {
            step.effects.iter().for_each(|effect| self.effect(step, effect));
        } else {
            self.see_with_attempts(step);
        }
        for notice in &step.notices {
            self.heard(notice);
        }
        if step.event == Event::InstantOver {
            self.instant(step);
        }
    }

    /// The effects of a step, and what its decisions come to for attempts.
    fn see_with_attempts(&mut self, step: &Step) {
        let done = carried_out(step);
        let stopped_first = self.stops_of_before(&done);
        self.stop(step, &done, &stopped_first, true);
        for effect in &step.effects {
            self.attempt_effect(step.at, effect, &done);
            self.effect(step, effect);
        }
        self.stop(step, &done, &stopped_first, false);
        for decision in done {
            match *decision {
                Decision::SetMode { task, mode, .. } => self.has_mode(step.at, task, mode),
                Decision::Terminate { reason: Some(reason), .. } => self.counts.given_back(reason),
                _ => {}
            }
        }
    }

    fn event(&mut self, step: &Step) {
        let now = step.at;
        match &step.event {
            Event::HostJoined { host, name, offer } => {
                let (name, offer) = (name.clone(), *offer);
                let history = HostHistory { name, offer, joined: now, lost: None };
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
            Event::Machine { report, .. } if !self.skips_attempts => {
                self.machine_reports(now, report, &step.effects);
            }
            Event::Submitted { task, job, .. } if !step.effects.contains(&Effect::Stale) => {
                self.submitted(*task, job);
            }
            Event::Requested { request, asks } if !step.effects.contains(&Effect::Stale) => {
                self.requested(now, *request, asks);
            }
            Event::Machine { .. }
            | Event::Submitted { .. }
            | Event::Requested { .. }
            | Event::Closed
            | Event::AllSubmitted
            | Event::Called { .. }
            | Event::AllRequested
            | Event::InstantOver
            | Event::Interrupt { .. }
            | Event::Fault { .. }
            | Event::FaultFelt { .. }
            | Event::HostLoad { .. }
            | Event::Disbelieved { .. }
            | Event::JailLacking { .. }
            | Event::SpotCheck { .. }
            | Event::CoordinatorLoad { .. }
            | Event::Begin
            | Event::Tick
            | Event::Clock { .. }
            | Event::Resumed { .. } => {}
        }
    }

    fn heard(&mut self, notice: &Notice) {
        match notice {
            Notice::LaunchRefused { vm, .. } => {
                self.counts.launches_refused += 1;
                self.request_is_over(*vm);
            }
            // In unlimited mode the machine's balance is not the VM's.
            Notice::Credits { vm, balance } => {
                let unlimited = &self.unlimited;
                let vm = self.vms.get_mut(vm).filter(|vm| unlimited.contains_key(&vm.kind));
                if let Some(last) = vm.and_then(|vm| vm.credits.last_mut()) {
                    last.1 = *balance;
                }
            }
            _ => {}
        }
    }

    fn effect(&mut self, step: &Step, effect: &Effect) {
        let now = step.at;
        match effect {
            Effect::VmLaunched { .. }
            | Effect::VmReady { .. }
            | Effect::VmHibernated { .. }
            | Effect::VmResumed { .. }
            | Effect::VmEnded { .. }
            | Effect::PriceChanged { .. }
            | Effect::SurplusCharged { .. }
            | Effect::Placed { .. }
            | Effect::Supplied { .. } => self.vm_effect(now, effect),
            Effect::Interrupted { .. }
            | Effect::Outbid { .. }
            | Effect::Reclaimed { .. }
            | Effect::Displaced { .. }
            | Effect::GivenBack { .. } => self.provider_acts(step, effect),
            Effect::Rejected { why, .. } => {
                self.counts.rejected += 1;
                if !self.forgets {
                    self.rejected.push((now, why.clone()));
                }
            }
            Effect::Over { complete } => self.over = Some((now, *complete)),
            Effect::TaskSent { .. }
            | Effect::CheckpointAsked { .. }
            | Effect::RestoreFellBack { .. }
            | Effect::AvailabilityChanged { .. }
            | Effect::Stale
            | Effect::Answered { .. }
            | Effect::Moot { .. } => {}
        }
    }
}

/// The decisions of a step without those that were not carried out.
#[must_use]
pub fn carried_out(step: &Step) -> Vec<&Decision> {
    let refused = |n: usize| step.effects.iter().any(|e| e.refuses(n));
    step.decisions.iter().enumerate().filter(|&(n, _)| !refused(n)).map(|(_, d)| d).collect()
}
