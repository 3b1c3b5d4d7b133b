//! The tenants that share a run: each is a policy with its own work, which doesn't know of the others and has its own
//! numbers of VMs and wake-ups.

use std::collections::BTreeMap;

use dormouse_cloud::PriceTrace;
use dormouse_model::{CheckpointConfig, Decision, Notice, TenantNumbers, TenantWork, Tenants};
use dormouse_policies::{CheckpointPlanning, Checkpointing, Delivery, GivenUp, Policy};
use dormouse_units::{Money, TenantId, Time, TypeName};

/// One of the tenants that share a run: its policy, its work and its costs.
#[derive(Debug)]
pub(crate) struct RunTenant {
    policy: Box<dyn Policy>,
    hearing: Delivery,
    is_outside: bool,
    /// Notices that the tenant gets at the end of the instant, if it gets all notices of an instant together.
    unheard: Vec<Notice>,
    /// Instant of the notices in `unheard`; `None` if there are no such notices.
    instant: Option<Time>,
    /// Checkpointing scheme of the bag's tasks.
    checkpointing: Box<dyn Checkpointing>,
    work: TenantWork,
    numbers: TenantNumbers,
    /// Time at which the latest of the tenant's tasks finished.
    last_finish: Time,
    /// True if the tenant's only machine, for parallel jobs, was refused, the tenant will ask again, and no room was
    /// freed since.
    waits_for_machine: bool,
    /// Money owed for forgotten VMs.
    settled: Money,
    /// True if all of the tenant's work was done and its VMs were given back.
    is_done: bool,
}

impl RunTenant {
    /// Makes the tenants of a run; `policies` are in order of tenants.
    pub(crate) fn make_all(
        tenants: &Tenants,
        policies: Vec<Box<dyn Policy>>,
        checkpoints: &CheckpointConfig,
        prices: &BTreeMap<TypeName, PriceTrace>,
    ) -> Vec<Self> {
        let all = tenants.tenant_ids().zip(tenants.all_work()).zip(policies);
        let tenant = |((id, work), policy): ((TenantId, &TenantWork), Box<dyn Policy>)| Self {
            hearing: policy.hearing(),
            is_outside: policy.is_outside(),
            policy,
            unheard: Vec::new(),
            instant: None,
            checkpointing: match work.has_bag() {
                true => checkpoints.build(prices),
                // Parallel jobs have none.
                false => CheckpointConfig::NONE.build(prices),
            },
            work: *work,
            numbers: tenants.tenant_numbers(id),
            last_finish: Time::ZERO,
            waits_for_machine: false,
            settled: Money::ZERO,
            is_done: false,
        };
        all.map(tenant).collect()
    }

    /// Returns the numbering of the tenant's VMs and wake-ups, which converts its numbers to the run's and back.
    pub(crate) const fn numbers(&self) -> TenantNumbers {
        self.numbers
    }

    /// Returns the tenant's part of the run's work.
    pub(crate) const fn work(&self) -> TenantWork {
        self.work
    }

    /// Returns whether the tenant gets all notices of an instant together.
    pub(crate) const fn hears_instants(&self) -> bool {
        matches!(self.hearing, Delivery::EndOfInstant)
    }

    /// Returns the instant whose notices the tenant hasn't got yet; `None` if it has got all notices.
    pub(crate) const fn pending_instant(&self) -> Option<Time> {
        self.instant
    }

    /// Returns whether the scheduler is a program, whose answers are recorded.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// Returns the checkpointing scheme of the bag's tasks.
    pub(crate) fn checkpointing(&mut self) -> &mut dyn Checkpointing {
        self.checkpointing.as_mut()
    }

    /// Replaces the checkpointing scheme of the bag's tasks.
    pub(crate) fn use_checkpointing(&mut self, scheme: Box<dyn Checkpointing>) {
        self.checkpointing = scheme;
    }

    /// Records that one of the tenant's tasks or VM requests has ended.
    pub(crate) fn count_finished(&mut self, now: Time) {
        self.last_finish = self.last_finish.max(now);
    }

    /// Returns the time at which the latest of the tenant's tasks finished.
    pub(crate) const fn last_finish(&self) -> Time {
        self.last_finish
    }

    /// Returns whether the tenant's only machine was refused, and no room was freed since.
    pub(crate) const fn waits_for_machine(&self) -> bool {
        self.waits_for_machine
    }

    /// Records that room was freed, in which the tenant's machine may fit.
    pub(crate) const fn may_find_room(&mut self) {
        self.waits_for_machine = false;
    }

    /// Adds the money owed for a VM that is forgotten.
    pub(crate) fn add_settled(&mut self, owed: Money) {
        self.settled += owed;
    }

    /// Returns the money owed for forgotten VMs.
    pub(crate) const fn settled_money(&self) -> Money {
        self.settled
    }

    /// Returns whether all of the tenant's work was done and its VMs were given back.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Records that all work of the tenant is done.
    pub(crate) const fn end_work(&mut self) {
        self.is_done = true;
    }

    /// Returns why the tenant's policy can't decide any more; `None`: it can.
    pub(crate) fn failure_reason(&self) -> Option<&str> {
        self.policy.failure()
    }

    /// Keeps a notice for the end of its instant. Drops notices on which the policy never decides anything; a scheduler
    /// program gets all.
    pub(crate) fn keep_notice(&mut self, now: Time, notice: Notice) {
        match &notice {
            // What a program waits for nobody knows.
            Notice::LaunchRefused { .. } => self.waits_for_machine = !self.is_outside,
            Notice::VmReady { .. } => self.waits_for_machine = false,
            _ => {}
        }
        use Notice::{
            Begin, HostJoined, LaunchRefused, Submitted, TaskFailed, TaskFinished, VmLost, VmReady,
            Wake,
        };
        let can_decide = matches!(
            notice,
            Begin
                | HostJoined
                | Submitted { .. }
                | VmReady { .. }
                | VmLost { .. }
                | LaunchRefused { .. }
                | TaskFinished { .. }
                | TaskFailed { .. }
                | Wake { .. }
        );
        if can_decide || self.is_outside {
            self.unheard.push(notice);
            self.instant = Some(now);
        }
    }

    /// Takes the notices of the instant, submissions last; `empty` becomes the new buffer.
    pub(crate) fn take_unheard(&mut self, empty: Vec<Notice>) -> Vec<Notice> {
        self.instant = None;
        let mut unheard = std::mem::replace(&mut self.unheard, empty);
        unheard.sort_by_key(|notice| matches!(notice, Notice::Submitted { .. }));
        unheard
    }

    /// Returns whether the tenant's policy waits for a change of a price.
    pub(crate) fn waits_for_price(&self) -> bool {
        self.policy.waits_for_price()
    }

    /// Returns the tenant's policy, to hand it a call of the provider's API.
    pub(crate) fn policy(&mut self) -> &mut dyn Policy {
        self.policy.as_mut()
    }

    /// Returns the part of its work that the tenant's policy has given up; `None` if it has given up nothing.
    pub(crate) fn given_up(&self) -> Option<GivenUp> {
        self.policy.given_up()
    }

    /// Passes these notices to the tenant's policy in the tenant's own numbers; appends the decisions to `out` in the
    /// run's numbers.
    pub(crate) fn tell_policy(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        if self.numbers.are_same() {
            return self.policy.handle(now, heard, out);
        }
        let numbers = self.numbers;
        let heard: Vec<Notice> = heard.iter().map(|notice| own_notice(numbers, notice)).collect();
        self.policy.handle(now, &heard, out);
        for decision in out {
            make_outside(numbers, decision);
        }
    }

    /// Repeats to a scheduler program the notices that it got before the coordinator was away, with its decisions;
    /// `decided` is in the run's numbers.
    pub(crate) fn tell_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let numbers = self.numbers;
        if numbers.are_same() {
            return self.policy.hear_again(now, heard, decided);
        }
        let heard: Vec<Notice> = heard.iter().map(|notice| own_notice(numbers, notice)).collect();
        let mut decided = decided.to_vec();
        decided.iter_mut().for_each(|decision| make_own(numbers, decision));
        self.policy.hear_again(now, &heard, &decided);
    }
}

pub(crate) fn own_notice(numbers: TenantNumbers, notice: &Notice) -> Notice {
    let mut own = notice.clone();
    if let Some(vm) = own.vm_mut() {
        *vm = numbers.own_vm(*vm);
    }
    if let Some(token) = own.token_mut() {
        *token = numbers.own_wake(*token);
    }
    own
}

fn make_own(numbers: TenantNumbers, decision: &mut Decision) {
    if let Some(vm) = decision.vm_mut() {
        *vm = numbers.own_vm(*vm);
    }
    if let Decision::Wake { token, .. } = decision {
        *token = numbers.own_wake(*token);
    }
}

fn make_outside(numbers: TenantNumbers, decision: &mut Decision) {
    if let Some(vm) = decision.vm_mut() {
        *vm = numbers.run_vm(*vm);
    }
    if let Decision::Wake { token, .. } = decision {
        *token = numbers.run_wake(*token);
    }
}

/// Returns the tenant that a notice is for, and puts the notice in that tenant's numbers; `None`: the notice is for all
/// tenants.
pub(crate) fn notice_addressee(notice: &mut Notice, tenants: &Tenants) -> Option<TenantId> {
    match notice {
        _ if !tenants.are_several() => tenants.tenant_ids().next(),
        Notice::Begin | Notice::HostJoined => None,
        Notice::Price { .. } | Notice::TaskDue { .. } => tenants.with_bag(),
        Notice::Submitted { .. } => tenants.with_jobs(),
        Notice::Requested { .. } => tenants.find_tenant(TenantWork::Requests),
        other => match other.token_mut() {
            Some(token) => Some(tenants.wake_owner(*token)),
            None => other.vm_mut().map(|vm| tenants.vm_owner(*vm)),
        },
    }
}
