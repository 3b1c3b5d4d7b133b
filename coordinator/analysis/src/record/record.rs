//! The fold from the steps of a run, virtual, live or replayed, to the state of everything in it.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{
    BillingTerms, BurstableTerms, InterruptionAction, InterruptionTarget, ProviderTerms,
    ResourceVector, TariffName,
};
use dormouse_engine::{DecisionDigest, RunCounts};
use dormouse_model::{Decision, Effect, Event, Notice, Setup, Step, Tenants, VmRequest};
use dormouse_units::{HostId, Price, RequestId, Speedup, TaskId, Time, TypeName, VmId, Window};

use super::{
    ClosedHistories, FaultHistory, JobHistory, RecordChange, TaskHistory, VmHistory, faults,
};
use crate::ServiceTally;

/// State and history of a run, read from its steps alone. Call [`RunRecord::see`] for each step in order; all later
/// queries go to this record.
///
/// The record keeps tasks of a bag and their VMs. It keeps parallel jobs and requests only while they are in the
/// system; those that ended in the last step are in [`RunRecord::closed`].
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// Hosts by id.
    pub hosts: BTreeMap<HostId, HostHistory>,
    /// VMs by id: all VMs of the run, or, in a forgetting record, the existing ones.
    pub vms: BTreeMap<VmId, VmHistory>,
    /// VMs that were left out of `vms` and for which others had to leave ([`RunRecord::leave_out`]).
    pub takers: BTreeMap<VmId, VmHistory>,
    /// Tasks of the bag, by id.
    pub tasks: Vec<TaskHistory>,
    /// Parallel jobs in the system.
    pub jobs: Window<JobHistory>,
    /// Open requests for VMs, by the VM that each request got or may get.
    pub requests: BTreeMap<VmId, RequestHistory>,
    /// Acts of the provider on spot VMs, also those that hit no VM; empty in a record that forgets.
    pub interruptions: Vec<ProviderAct>,
    /// Faults of the experiment that hosts were commanded to inject.
    pub faults: Vec<FaultHistory>,
    /// Number of times that each kind of event happened.
    pub counts: RunCounts,
    /// Reasons for failed checkpoints, with the number of times.
    pub checkpoint_failures: BTreeMap<String, u32>,
    /// Rejected decisions: time and reason.
    pub rejected: Vec<(Time, String)>,
    /// Number of reports of ended attempts, which were dropped.
    pub stale: u32,
    /// Time of the run's end, and whether all tasks were finished then; `None` if the run has not ended.
    pub over: Option<(Time, bool)>,
    /// Reason given by the user who ended the run early; `None` if no user did.
    pub cancelled: Option<String>,
    /// Number of steps that the record has seen.
    pub steps: u64,
    /// Number of decisions in all steps that the record has seen.
    pub decisions: u64,
    /// Time of the last step that the record has seen.
    pub now: Time,
    /// Speed of a live run's clock; `None` in virtual time.
    pub speedup: Option<Speedup>,
    /// Jobs and VMs of the batch service, counted step by step; empty under any other scheduler.
    pub service: ServiceTally,
    /// Most parallel jobs that were in the system at once.
    pub most_jobs: usize,
    /// Number of parallel jobs that are in the system as far as their scheduler knows.
    pub jobs_heard: usize,
    pub(super) tenants: Tenants,
    /// Whether ended VMs and acts of the provider are dropped.
    pub(super) forgets: bool,
    /// Whether attempts are not recorded.
    pub(super) skips_attempts: bool,
    pub(super) tariff: TariffName,
    /// Names of all burstable instance types.
    pub(super) burstable: BTreeSet<TypeName>,
    /// Burstable instance types in unlimited mode, with their terms.
    pub(super) unlimited: BTreeMap<TypeName, BurstableTerms>,
    pub(super) billing: BillingTerms,
    /// Hourly price of a hibernated VM's disk, by instance type; empty if such disks cost nothing.
    pub(super) disk_prices: BTreeMap<TypeName, Price>,
    /// Tasks whose programs save their work when they get a notice of interruption.
    pub(super) savers: BTreeSet<TaskId>,
    /// Digest of all decisions; `None` after [`RunRecord::undigested`].
    pub(super) digest: Option<DecisionDigest>,
    /// Number of finished tasks of the bag, kept as a count because callers ask for it after every step.
    pub(super) finished: usize,
    pub(super) changes: Vec<RecordChange>,
    pub(super) closed: ClosedHistories,
}

/// A host of a run, from when it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostHistory {
    /// Name of the host for people.
    pub name: String,
    /// Capacity that the host offers to VMs.
    pub offer: ResourceVector,
    /// Emulated time at which the host joined.
    pub joined: Time,
    /// Time and reason of the host's loss; `None` if the host was not lost.
    pub lost: Option<(Time, String)>,
}

/// An action of the provider on spot VMs: a preemption, hibernation, resume or recommendation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAct {
    /// Time at which the action was requested.
    pub asked: Time,
    /// Time at which the engine carried the action out.
    pub at: Time,
    /// Kind of the provider's action.
    pub action: InterruptionAction,
    /// VMs that the action was for.
    pub target: InterruptionTarget,
    /// VMs that the action affected.
    pub vms: Vec<VmId>,
    /// Reason given by the person who requested the action; `None` if no person requested the action.
    pub asked_by: Option<String>,
}

impl RunRecord {
    /// An empty record for a run of this setup with a single tenant.
    #[must_use]
    pub fn new(setup: &Setup) -> Self {
        Self::shared(setup, Tenants::default())
    }

    /// An empty record for a run of this whole setup with these tenants.
    #[must_use]
    pub fn shared(setup: &Setup, tenants: Tenants) -> Self {
        let tasks = vec![TaskHistory::default(); setup.bag.tasks.len()];
        let ProviderTerms { tariff, billing, .. } = setup.terms;
        let unlimited = setup.catalogue.types.values().filter_map(|kind| {
            let burstable = kind.burstable.filter(|burstable| burstable.surplus.is_some())?;
            Some((kind.name.clone(), burstable))
        });
        let (service, unlimited) = (ServiceTally::new(setup), unlimited.collect());
        let kinds = setup.catalogue.types.values().filter(|kind| kind.burstable.is_some());
        let burstable = kinds.map(|kind| kind.name.clone()).collect();
        let priced = setup.catalogue.types.values().filter(|_| billing.stopped_disk.is_some());
        let disk_prices =
            priced.map(|kind| (kind.name.clone(), billing.disk_price(kind.memory))).collect();
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
            disk_prices,
            savers,
            service,
            digest,
            ..Self::default()
        }
    }

    /// Makes the record keep no digest of decisions.
    #[must_use]
    pub fn undigested(self) -> Self {
        Self { digest: None, ..self }
    }

    /// Makes the record forget ended VMs and acts of the provider, so that its size stays that of the present system.
    /// The record then has no digest, and no account of a batch service.
    #[must_use]
    pub fn forgetting(self) -> Self {
        Self { forgets: true, digest: None, ..self }
    }

    /// Makes the record ignore attempts at tasks and jobs. Jobs still have their spells.
    #[must_use]
    pub fn without_attempts(self) -> Self {
        Self { skips_attempts: true, ..self }
    }

    /// Removes the VMs for which `of_no_concern` is true. Those for which other VMs had to leave move to `takers`.
    pub fn leave_out(&mut self, of_no_concern: impl Fn(VmId) -> bool) {
        let displaced = self.vms.values().flat_map(|vm| &vm.displaced);
        let takers: BTreeSet<VmId> = displaced.map(|how| how.by).collect();
        let out = self.vms.extract_if(.., |vm, _| of_no_concern(*vm));
        self.takers.extend(out.filter(|(vm, _)| takers.contains(vm)));
    }

    /// Marks the record as that of a live run at this speed-up.
    #[must_use]
    pub fn at(self, speedup: Speedup) -> Self {
        Self { speedup: Some(speedup), ..self }
    }

    /// Changes made by the last step, in order.
    #[must_use]
    pub fn changes(&self) -> &[RecordChange] {
        &self.changes
    }

    /// The histories of everything that ended in the last step.
    #[must_use]
    pub const fn closed(&self) -> &ClosedHistories {
        &self.closed
    }

    /// The VM with this id, which may have ended in the last step; `None` if the record does not have it.
    #[must_use]
    pub fn vm(&self, id: VmId) -> Option<&VmHistory> {
        self.vms.get(&id).or_else(|| self.closed.vms.iter().find(|vm| vm.id == id))
    }

    /// Attempts at a task of the bag or a parallel job, which may have ended in the last step; `None` if the record does not have
    /// it.
    #[must_use]
    pub fn task(&self, id: TaskId) -> Option<&TaskHistory> {
        let ended = || self.closed.jobs.iter().find(|job| job.id == id).map(|job| &job.task);
        let job = || self.jobs.get(id).map(|job| &job.task);
        self.tasks.get(id.get() as usize).or_else(job).or_else(ended)
    }

    /// The request that got this VM, which may have ended in the last step; `None` if the record has no such request.
    #[must_use]
    pub fn request(&self, vm: VmId) -> Option<&RequestHistory> {
        let over = || self.closed.requests.iter().find(|request| request.vm == vm);
        self.requests.get(&vm).or_else(over)
    }

    /// Adds the next step of the run to the record.
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
            step.decisions.iter().for_each(|decision| digest.add_decision(now, decision));
        }
        faults::see(&mut self.faults, step);
        self.add_event(step);
        if self.skips_attempts {
            step.effects.iter().for_each(|effect| self.add_effect(step, effect));
        } else {
            self.see_with_attempts(step);
        }
        for notice in &step.notices {
            self.add_notice(notice);
        }
        if step.event == Event::InstantOver {
            self.instant(step);
        }
    }

    /// Adds the effects of a step, and the effects of its decisions on attempts.
    fn see_with_attempts(&mut self, step: &Step) {
        let done = carried_out(step);
        let stopped_first = self.stops_of_before(&done);
        self.stop(step, &done, &stopped_first, true);
        for effect in &step.effects {
            self.attempt_effect(step.at, effect, &done);
            self.add_effect(step, effect);
        }
        self.stop(step, &done, &stopped_first, false);
        for decision in done {
            match *decision {
                Decision::SetMode { task, mode, .. } => self.has_mode(step.at, task, mode),
                Decision::Terminate { reason: Some(reason), .. } => self.counts.given_back(reason),
                Decision::SetVcpuUse { vm, used, surplus } => {
                    let change = (step.at, used, surplus.is_some());
                    self.on_vm(vm, |vm| vm.declared_uses.push(change));
                }
                _ => {}
            }
        }
    }

    fn add_event(&mut self, step: &Step) {
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

    fn add_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::LaunchRefused { vm, .. } => {
                self.counts.launches_refused += 1;
                self.request_is_over(*vm);
            }
            // In unlimited mode a machine reports another balance than the VM's, which the notice
            // has.
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

    fn add_effect(&mut self, step: &Step, effect: &Effect) {
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

/// The decisions of a step that were carried out.
#[must_use]
pub fn carried_out(step: &Step) -> Vec<&Decision> {
    let refused = |n: usize| step.effects.iter().any(|e| e.refuses_decision(n));
    step.decisions.iter().enumerate().filter(|&(n, _)| !refused(n)).map(|(_, d)| d).collect()
}

/// A customer's request, from its arrival to its end; the rest is in the history of the request's VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHistory {
    /// Number of the request.
    pub request: RequestId,
    /// Type, market and requested duration.
    pub asks: VmRequest,
    /// Time of the request's arrival.
    pub arrived: Time,
    /// VM that the request got, or would have got if it had been granted.
    pub vm: VmId,
    /// Whether the request got the VM.
    pub is_granted: bool,
}
