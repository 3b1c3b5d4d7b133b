//! Those who share a run: each a policy with work of its own that knows of nobody else, and hears and decides in its
//! own numbers of VMs and wake-ups.

use std::collections::BTreeMap;

use dormouse_cloud::PriceTrace;
use dormouse_model::{CheckpointConfig, Decision, Notice, TenantNumbers, TenantWork, Tenants};
use dormouse_policies::{CheckpointPlanning, Checkpointing, Delivery, GivenUp, Policy};
use dormouse_units::{Money, TenantId, Time, TypeName};

/// One of those who share a run.
#[derive(Debug)]
pub(crate) struct RunTenant {
    policy: Box<dyn Policy>,
    hearing: Delivery,
    is_outside: bool,
    /// What it has yet to hear at the end of an instant, if it hears of whole instants.
    unheard: Vec<Notice>,
    /// Instant whose notices `unheard` buffers.
    instant: Option<Time>,
    /// When tasks of its bag are checkpointed.
    checkpointing: Box<dyn Checkpointing>,
    work: TenantWork,
    numbers: TenantNumbers,
    /// When the last of its tasks finished.
    last_finish: Time,
    /// The tenant's only machine, for parallel jobs, was refused, it will ask again, and there is
    /// no more room than there was.
    waits_for_machine: bool,
    /// What was owed for VMs that are forgotten.
    settled: Money,
    /// All its work was done, and its VMs were given back.
    is_done: bool,
}

impl RunTenant {
    /// These policies share a run, each with the work of the tenant at its place.
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

    /// The numbers of its VMs and wake-ups, and those of the run.
    pub(crate) const fn numbers(&self) -> TenantNumbers {
        self.numbers
    }

    /// What of the run's work it has.
    pub(crate) const fn work(&self) -> TenantWork {
        self.work
    }

    /// Whether it hears of whole instants.
    pub(crate) const fn hears_instants(&self) -> bool {
        matches!(self.hearing, Delivery::EndOfInstant)
    }

    /// The instant of which it has yet to hear.
    pub(crate) const fn pending_instant(&self) -> Option<Time> {
        self.instant
    }

    /// Whether it is a program of its own, whose answers are recorded.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// The scheme of the tasks of its bag.
    pub(crate) fn checkpointing(&mut self) -> &mut dyn Checkpointing {
        self.checkpointing.as_mut()
    }

    /// Gives the tasks of its bag another scheme.
    pub(crate) fn use_checkpointing(&mut self, scheme: Box<dyn Checkpointing>) {
        self.checkpointing = scheme;
    }

    /// Notes that one of its tasks, or requests, has come to its end.
    pub(crate) fn count_finished(&mut self, now: Time) {
        self.last_finish = self.last_finish.max(now);
    }

    /// When the last of its tasks finished.
    pub(crate) const fn last_finish(&self) -> Time {
        self.last_finish
    }

    /// Whether its only machine was refused, and there is no more room than there was.
    pub(crate) const fn waits_for_machine(&self) -> bool {
        self.waits_for_machine
    }

    /// Notes that there is more room than there was: its machine may find some.
    pub(crate) const fn may_find_room(&mut self) {
        self.waits_for_machine = false;
    }

    /// Adds what was owed for a VM that is forgotten.
    pub(crate) fn add_settled(&mut self, owed: Money) {
        self.settled += owed;
    }

    /// What was owed for VMs that are forgotten.
    pub(crate) const fn settled_money(&self) -> Money {
        self.settled
    }

    /// Whether all its work was done, and its VMs were given back.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_done
    }

    /// Notes that all its work is done.
    pub(crate) const fn end_work(&mut self) {
        self.is_done = true;
    }

    /// Why it can't decide any more.
    pub(crate) fn failure_reason(&self) -> Option<&str> {
        self.policy.failure()
    }

    /// Keeps what it is to be told at the end of the instant, if it can decide anything on it: a
    /// program can on everything.
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

    /// What it has yet to hear, submissions last; nothing is left then. `empty` is kept in its place.
    pub(crate) fn take_unheard(&mut self, empty: Vec<Notice>) -> Vec<Notice> {
        self.instant = None;
        let mut unheard = std::mem::replace(&mut self.unheard, empty);
        unheard.sort_by_key(|notice| matches!(notice, Notice::Submitted { .. }));
        unheard
    }

    /// Whether its policy waits for another price.
    pub(crate) fn waits_for_price(&self) -> bool {
        self.policy.waits_for_price()
    }

    /// Its policy, to be told of calls of the provider's API.
    pub(crate) fn policy(&mut self) -> &mut dyn Policy {
        self.policy.as_mut()
    }

    /// What its policy has given up.
    pub(crate) fn given_up(&self) -> Option<GivenUp> {
        self.policy.given_up()
    }

    /// Tells its policy what happened, in the policy's own numbers; what is decided is in the run's.
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

    /// Tells a program again what it heard before its run was broken off, and what it decided then:
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

/// Whom a notice is for, of these tenants; `None`: for all.
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
