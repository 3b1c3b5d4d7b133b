//! Who shares a run: its tenants, each a policy with work of its own that knows of nobody else.
//!
//! Every policy numbers its VMs and its wake-ups from zero, as if it were alone. The run's numbers
//! of them are others: the k-th of tenant t of n is number k · n + t. So no two tenants can have
//! the same, a VM's number says whose it is, and a run of one tenant has its policy's numbers.

use std::collections::BTreeMap;

use dormouse_cloud::{Action, PriceTrace, Target};
use dormouse_model::{CheckpointConfig, Decision, Effect, Event, Notice, Step};
use dormouse_policies::{CheckpointPlanning, Checkpointing, GivenUp, Hearing, Policy};
use dormouse_units::{Money, RequestId, TaskId, Time, TypeName, VmId};

/// One of those who share a run.
#[derive(Debug)]
pub(crate) struct Tenant {
    policy: Box<dyn Policy>,
    hearing: Hearing,
    is_outside: bool,
    /// What it has yet to hear at the end of an instant, if it hears of whole instants.
    unheard: Vec<Notice>,
    /// Instant whose notices `unheard` buffers.
    instant: Option<Time>,
    /// When tasks of its bag are checkpointed.
    pub(crate) checkpointing: Box<dyn Checkpointing>,
    work: Work,
    numbers: Numbers,
    /// When the last of its tasks finished.
    pub(crate) last_finish: Time,
    /// The tenant's only machine, for parallel jobs, was refused, it will ask again, and there is
    /// no more room than there was.
    pub(crate) waits_for_machine: bool,
    /// What was owed for VMs that are forgotten.
    pub(crate) settled: Money,
    /// All its work was done, and its VMs were given back.
    pub(crate) is_done: bool,
}

/// What of a run's work a tenant has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The tasks that are there from the beginning.
    Bag,
    /// The parallel jobs that are submitted while it runs.
    Jobs,
    /// The VMs that customers of the provider request while it runs. They are there for others: where
    /// there are any, the run does not wait for the last request.
    Requests,
    /// Bag and jobs: it is alone.
    All,
}

impl Work {
    /// How it is called in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bag => "bag",
            Self::Jobs => "jobs",
            Self::Requests => "requests",
            Self::All => "all",
        }
    }

    pub(crate) const fn has_bag(self) -> bool {
        matches!(self, Self::Bag | Self::All)
    }

    pub(crate) const fn has_jobs(self) -> bool {
        matches!(self, Self::Jobs | Self::All)
    }
}

/// A tenant's numbers of VMs and wake-ups among those of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    tenant: u32,
    tenants: u32,
}

impl Numbers {
    const fn new(tenant: u32, tenants: u32) -> Self {
        Self { tenant, tenants }
    }

    const fn is_alone(self) -> bool {
        self.tenants == 1
    }

    /// The run's number of the tenant's own. One that is too large for the run to have is its
    /// largest: taken once, it is refused.
    const fn outside(self, own: VmId) -> VmId {
        match own.get().checked_mul(self.tenants) {
            Some(first) if first <= u32::MAX - self.tenant => VmId::new(first + self.tenant),
            _ => {
                // The largest that is the tenant's.
                let above = (u32::MAX % self.tenants + self.tenants - self.tenant) % self.tenants;
                VmId::new(u32::MAX - above)
            }
        }
    }

    const fn own(self, outside: VmId) -> VmId {
        VmId::new(outside.get() / self.tenants)
    }

    fn token_outside(self, own: u64) -> u64 {
        let (tenant, tenants) = (u64::from(self.tenant), u64::from(self.tenants));
        let outside = own.checked_mul(tenants).and_then(|first| first.checked_add(tenant));
        // The largest that is the tenant's.
        outside.unwrap_or(u64::MAX - (u64::MAX % tenants + tenants - tenant) % tenants)
    }

    fn token_own(self, outside: u64) -> u64 {
        outside / u64::from(self.tenants)
    }
}

impl Tenant {
    /// These policies, each with this work, share a run.
    pub(crate) fn all(
        policies: Vec<(Work, Box<dyn Policy>)>,
        checkpoints: &CheckpointConfig,
        prices: &BTreeMap<TypeName, PriceTrace>,
    ) -> Vec<Self> {
        let tenants = u32::try_from(policies.len()).unwrap_or(u32::MAX);
        let tenant = |(tenant, (work, policy)): (u32, (Work, Box<dyn Policy>))| Self {
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
            work,
            numbers: Numbers::new(tenant, tenants),
            last_finish: Time::ZERO,
            waits_for_machine: false,
            settled: Money::ZERO,
            is_done: false,
        };
        (0..).zip(policies).map(tenant).collect()
    }

    /// What of the run's work it has.
    pub(crate) const fn work(&self) -> Work {
        self.work
    }

    /// Whether it hears of whole instants.
    pub(crate) const fn hears_instants(&self) -> bool {
        matches!(self.hearing, Hearing::Instants)
    }

    /// The instant of which it has yet to hear.
    pub(crate) const fn instant(&self) -> Option<Time> {
        self.instant
    }

    /// Whether it is a program of its own, whose answers are recorded.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// Why it can't decide any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.policy.failure()
    }

    /// Keeps what it is to be told at the end of the instant, if it can decide anything on it: a
    /// program can on everything.
    pub(crate) fn keep(&mut self, now: Time, notice: Notice) {
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

    /// What its policy has given up.
    pub(crate) fn given_up(&self) -> Option<GivenUp> {
        self.policy.given_up()
    }

    /// Tells its policy what happened, in the policy's own numbers; what is decided is in the run's.
    pub(crate) fn tell(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        if self.numbers.is_alone() {
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
        if numbers.is_alone() {
            return self.policy.hear_again(now, heard, decided);
        }
        let heard: Vec<Notice> = heard.iter().map(|notice| own_notice(numbers, notice)).collect();
        let mut decided = decided.to_vec();
        decided.iter_mut().for_each(|decision| make_own(numbers, decision));
        self.policy.hear_again(now, &heard, &decided);
    }
}

fn own_notice(numbers: Numbers, notice: &Notice) -> Notice {
    let mut own = notice.clone();
    if let Some(vm) = own.vm_mut() {
        *vm = numbers.own(*vm);
    }
    if let Some(token) = own.token_mut() {
        *token = numbers.token_own(*token);
    }
    own
}

fn make_own(numbers: Numbers, decision: &mut Decision) {
    if let Some(vm) = decision.vm_mut() {
        *vm = numbers.own(*vm);
    }
    if let Decision::Wake { token, .. } = decision {
        *token = numbers.token_own(*token);
    }
}

fn make_outside(numbers: Numbers, decision: &mut Decision) {
    if let Some(vm) = decision.vm_mut() {
        *vm = numbers.outside(*vm);
    }
    if let Decision::Wake { token, .. } = decision {
        *token = numbers.token_outside(*token);
    }
}

/// Whom a notice is for, of so many tenants; `None`: for all.
pub(crate) fn addressee(notice: &mut Notice, tenants: &[Tenant]) -> Option<usize> {
    let count = tenants.len();
    match notice {
        _ if count == 1 => Some(0),
        Notice::Begin | Notice::HostJoined => None,
        Notice::Price { .. } | Notice::TaskDue { .. } => {
            tenants.iter().position(|tenant| tenant.work.has_bag())
        }
        Notice::Submitted { .. } => tenants.iter().position(|tenant| tenant.work.has_jobs()),
        Notice::Requested { .. } => tenants.iter().position(|t| t.work == Work::Requests),
        other => match other.token_mut() {
            Some(token) => usize::try_from(*token % count as u64).ok(),
            None => other.vm_mut().map(|vm| owner(*vm, count)),
        },
    }
}

/// The index of the tenant that owns a VM, among so many tenants.
pub(crate) const fn owner(vm: VmId, tenants: usize) -> usize {
    vm.get() as usize % tenants
}

/// What work the tenant has whose VM this is, where each of these is one's, and the tenant's own number
/// of it; `None`: there are no tenants.
#[must_use]
pub fn whose(vm: VmId, of: &[Work]) -> Option<(Work, VmId)> {
    let tenants = u32::try_from(of.len()).ok().filter(|tenants| *tenants > 0)?;
    let work = *of.get(owner(vm, of.len()))?;
    Some((work, VmId::new(vm.get() / tenants)))
}

/// The VM of a request, which as its tenant numbers it has the request's number; `None`: no tenant has
/// requests.
#[must_use]
pub fn vm_of_request(request: RequestId, of: &[Work]) -> Option<VmId> {
    let tenant = of.iter().position(|work| *work == Work::Requests)?;
    let (tenant, tenants) = (u32::try_from(tenant).ok()?, u32::try_from(of.len()).ok()?);
    Some(Numbers::new(tenant, tenants).outside(VmId::new(request.get())))
}

/// Whether a VM is of the tenant that has this work, where each of these is one's.
#[must_use]
pub fn is_of(vm: VmId, of: &[Work], work: Work) -> bool {
    of.len() < 2 || of.get(owner(vm, of.len())) == Some(&work)
}

/// A step as one tenant of a run saw it, with its own numbers of VMs and wake-ups: what others
/// heard, decided and reported is left out, and for what happened to others time just passed. Where
/// there is one tenant it is the step.
#[must_use]
pub fn seen_by(step: &Step, of: &[Work], tenant: usize) -> Step {
    let (Ok(count), Ok(n)) = (u32::try_from(of.len()), u32::try_from(tenant)) else {
        return step.clone();
    };
    told_to(step, of, tenant, Numbers::new(n, count))
}

/// The same with the run's numbers of VMs and wake-ups, for those who know of all tenants.
#[must_use]
pub fn part_of(step: &Step, of: &[Work], tenant: usize) -> Step {
    told_to(step, of, tenant, Numbers::new(0, 1))
}

fn told_to(step: &Step, of: &[Work], tenant: usize, numbers: Numbers) -> Step {
    let (Ok(count), Ok(n)) = (u32::try_from(of.len()), u32::try_from(tenant)) else {
        return step.clone();
    };
    if count < 2 {
        return step.clone();
    }
    let is_own = |vm: VmId| owner(vm, of.len()) == tenant;
    let is_own_token = |token: u64| token % u64::from(count) == u64::from(n);
    let has_bag = of.get(tenant).is_some_and(|work| work.has_bag());
    let has_jobs = of.get(tenant).is_some_and(|work| work.has_jobs());
    let has_requests = of.get(tenant) == Some(&Work::Requests);
    let event = match step.event.clone() {
        Event::Machine { report, .. } if !is_own(report.vm()) => Event::Tick,
        Event::Machine { host, number, mut report } => {
            let vm = report.vm_mut();
            *vm = numbers.own(*vm);
            Event::Machine { host, number, report }
        }
        Event::Submitted { .. } | Event::Closed | Event::AllSubmitted if !has_jobs => Event::Tick,
        Event::Requested { .. } | Event::AllRequested if !has_requests => Event::Tick,
        Event::Interrupt { target: Target::Vm(vm), .. } if !is_own(vm) => Event::Tick,
        Event::Interrupt { target: Target::Vm(vm), action, why } => {
            Event::Interrupt { target: Target::Vm(numbers.own(vm)), action, why }
        }
        event => event,
    };
    let heard = |notice: &Notice| {
        let hears = match notice.clone() {
            Notice::Begin | Notice::HostJoined | Notice::Available { .. } => true,
            Notice::Price { .. } | Notice::TaskDue { .. } => has_bag,
            Notice::Submitted { .. } => has_jobs,
            Notice::Requested { .. } => has_requests,
            mut other => match other.token_mut() {
                Some(token) => is_own_token(*token),
                None => other.vm_mut().is_some_and(|vm| is_own(*vm)),
            },
        };
        hears.then(|| own_notice(numbers, notice))
    };
    let (mut decisions, mut places) = (Vec::new(), Vec::new());
    for decision in &step.decisions {
        let mut own = decision.clone();
        let is_its = match &mut own {
            Decision::Wake { token, .. } => {
                let is_its = is_own_token(*token);
                *token = numbers.token_own(*token);
                is_its
            }
            other => other.vm_mut().is_some_and(|vm| {
                let is_its = is_own(*vm);
                *vm = numbers.own(*vm);
                is_its
            }),
        };
        // Where it is among the tenant's own.
        places.push(is_its.then_some(decisions.len()));
        decisions.extend(is_its.then_some(own));
    }
    let effect = |effect: &Effect| {
        let mut own = effect.clone();
        let is_its = match &mut own {
            Effect::VmLaunched { vm, .. }
            | Effect::VmReady { vm }
            | Effect::VmHibernated { vm, .. }
            | Effect::VmResumed { vm, .. }
            | Effect::VmEnded { vm, .. }
            | Effect::Placed { vm, .. }
            | Effect::Supplied { vm, .. }
            | Effect::TaskSent { vm, .. }
            | Effect::CheckpointAsked { vm, .. } => {
                let is_its = is_own(*vm);
                *vm = numbers.own(*vm);
                is_its
            }
            Effect::Moot { index, .. } | Effect::Rejected { index, .. } => {
                let place = places.get(*index).copied().flatten();
                *index = place.unwrap_or_default();
                place.is_some()
            }
            Effect::Interrupted { target, vms, left, .. } => {
                for vms in [vms, left] {
                    vms.retain(|vm| is_own(*vm));
                    vms.iter_mut().for_each(|vm| *vm = numbers.own(*vm));
                }
                match target {
                    Target::Type(_) | Target::Zone(_) | Target::All => true,
                    Target::Vm(vm) => {
                        let is_its = is_own(*vm);
                        *vm = numbers.own(*vm);
                        is_its
                    }
                }
            }
            Effect::RestoreFellBack { task, .. } => vm_of(step, *task).is_some_and(is_own),
            Effect::SurplusCharged { vm, .. }
            | Effect::Outbid { vm }
            | Effect::Reclaimed { vm }
            | Effect::GivenBack { vm } => {
                let is_its = is_own(*vm);
                *vm = numbers.own(*vm);
                is_its
            }
            Effect::Displaced { vm, by, action } => {
                let (is_its, foreign) = (is_own(*vm), !is_own(*by));
                (*vm, *by) = (numbers.own(*vm), numbers.own(*by));
                // For whom the provider takes it away is not its owner's to know.
                if foreign && !numbers.is_alone() {
                    own = taken_away(step.at, *vm, *action);
                }
                is_its
            }
            Effect::PriceChanged { .. }
            | Effect::AvailabilityChanged { .. }
            | Effect::Stale
            | Effect::Over { .. } => true,
        };
        is_its.then_some(own)
    };
    Step {
        seq: step.seq,
        at: step.at,
        event,
        notices: step.notices.iter().filter_map(heard).collect(),
        effects: step.effects.iter().filter_map(effect).collect(),
        decisions,
        // Who saw a part of a run can't ask its programs again.
        answers: Vec::new(),
    }
}

/// The VM of a task that begins with another checkpoint than it was to: its attempt there failed or
/// begins, and the step says so.
fn vm_of(step: &Step, task: TaskId) -> Option<VmId> {
    let sent = step.effects.iter().find_map(|effect| match effect {
        Effect::TaskSent { task: of, vm, .. } if *of == task => Some(*vm),
        _ => None,
    });
    let reported = || match &step.event {
        Event::Machine { report, .. } => Some(report.vm()),
        _ => None,
    };
    sent.or_else(reported)
}

/// The provider takes a VM away.
fn taken_away(asked: Time, vm: VmId, action: Action) -> Effect {
    let target = Target::Vm(vm);
    Effect::Interrupted { asked, action, target, vms: vec![vm], left: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tenants_have_a_number_and_each_gets_its_own_back() {
        let mut seen = std::collections::BTreeSet::new();
        for tenant in 0..3 {
            let numbers = Numbers::new(tenant, 3);
            for own in (0..50).map(VmId::new) {
                let outside = numbers.outside(own);
                assert!(seen.insert(outside), "{outside} twice");
                assert_eq!((numbers.own(outside), owner(outside, 3)), (own, tenant as usize));
                let token = numbers.token_outside(own.get().into());
                assert_eq!(numbers.token_own(token), u64::from(own.get()));
            }
            // Of those that are too large the number is not kept, but whose they are.
            let (vm, token) =
                (numbers.outside(VmId::new(u32::MAX)), numbers.token_outside(u64::MAX));
            assert_eq!((owner(vm, 3), token % 3), (tenant as usize, u64::from(tenant)));
        }
        assert_eq!(Numbers::new(0, 1).outside(VmId::new(7)), VmId::new(7), "alone");
    }

    #[test]
    fn a_part_of_a_run_has_the_runs_numbers_and_nothing_of_others() {
        let ready = |vm| Notice::VmReady { vm: VmId::new(vm) };
        let (at, event) = (Time::ZERO, Event::Tick);
        let effects = vec![Effect::VmReady { vm: VmId::new(2) }];
        let step = |notices: &[u32], effects: &[Effect]| Step {
            seq: 7,
            at,
            event: event.clone(),
            notices: notices.iter().map(|vm| ready(*vm)).collect(),
            decisions: Vec::new(),
            answers: Vec::new(),
            effects: effects.to_vec(),
        };
        let (all, of) = (step(&[1, 2, 3], &effects), [Work::Bag, Work::Jobs]);
        assert_eq!(part_of(&all, &of, 0), step(&[2], &effects));
        assert_eq!(part_of(&all, &of, 1), step(&[1, 3], &[]));
        let own = [Effect::VmReady { vm: VmId::new(1) }];
        assert_eq!(seen_by(&all, &of, 0), step(&[1], &own));
    }
}
