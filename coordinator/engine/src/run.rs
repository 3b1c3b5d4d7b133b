//! The state machine itself: events in, steps and commands out.

use std::collections::{BTreeSet, VecDeque};

use dormouse_cloud::{Burstable, Interruptions, Market, Provider, Surplus};
use dormouse_model::{
    Command, Decision, Effect, Event, Notice, Setup, StartTask, Step, Tenants, VmEnd, Work,
};
use dormouse_policies::{CheckpointPlanning, Checkpointing, Policy};
use dormouse_units::{
    Bytes, Cpus, HostId, Money, Ppm, Seats, TaskId, Tier, Time, TypeName, VmId, Window,
};
use thin_vec::ThinVec;

use crate::answers::Answers;
use crate::refused_launches::RefusedLaunches;
use crate::requests::Requests;
use crate::seating::Seating;
use crate::tasks::{TaskRecord, TaskState, Tasks};
use crate::tenants::Tenant;
use crate::timers::{Due, Timers};
use crate::workflow::Workflow;
use crate::{Counts, DecisionDigest};

/// What the engine remembers of a VM beside what the provider does.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmRecord {
    /// The host has made it.
    pub(crate) created: bool,
    /// The VM's boot time is over.
    pub(crate) boot_over: bool,
    /// When its current hibernation or resume was asked for.
    pub(crate) asked: Time,
    /// Whether the provider hibernated the VM while it booted, so that it hibernates as soon as
    /// it has booted.
    pub(crate) hibernates_once_booted: bool,
    /// It is told to freeze once the checkpoints are taken that it was told to take.
    pub(crate) freezes: bool,
    /// The tasks sent to it that haven't ended.
    pub(crate) seating: Seating,
    /// The VM's vCPUs have a background seat, too, and it runs parallel jobs.
    pub(crate) two_tier: bool,
    /// Memory of its type.
    pub(crate) memory: Bytes,
    /// How VMs of its type earn credits, if they do.
    pub(crate) burstable: Option<Burstable>,
    /// The account of credits of a VM in unlimited mode.
    pub(crate) surplus: Option<Box<Surplus>>,
    /// Tasks sent to it between a hibernation's asking and its effect: they start at the resume.
    pub(crate) frozen_starts: ThinVec<StartTask>,
    /// What it was promised and got of the processor.
    pub(crate) usage: VmUse,
    /// The processors that it has been said to have, where spot VMs are in the background.
    pub(crate) processors: ThinVec<u32>,
    /// The share of its processor that each vCPU has; none, where spot VMs have processors of their own.
    pub(crate) supply: ThinVec<Ppm>,
}

/// Memory of steps that are over, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Spare {
    notices: VecDeque<Notice>,
    pub(crate) wanted: Vec<Decision>,
    pub(crate) unheard: Vec<Notice>,
}

/// CPU time a VM was promised and got, real microseconds; zeros in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmUse {
    /// CPU time that it should have had.
    pub real_promised_us: u64,
    /// CPU time that it has had.
    pub real_received_us: u64,
}

/// One run: provider, tenants, tasks, timers.
#[derive(Debug)]
pub struct Run {
    pub(crate) setup: Setup,
    pub(crate) provider: Provider,
    /// Who shares it.
    pub(crate) sharing: Tenants,
    pub(crate) tenants: Vec<Tenant>,
    /// When parallel jobs are checkpointed, if they are.
    pub(crate) job_checkpointing: Option<Box<dyn Checkpointing>>,
    pub(crate) interruptions: Interruptions,
    pub(crate) timers: Timers,
    pub(crate) tasks: Tasks,
    pub(crate) workflow: Workflow,
    /// Boxed, as a VM that stays for long keeps a place for each that came after it.
    pub(crate) vms: Window<Box<VmRecord>, VmId>,
    /// The living VMs that are in unlimited mode.
    pub(crate) unlimited: BTreeSet<VmId>,
    pub(crate) refused: RefusedLaunches,
    /// Nothing more will be submitted.
    pub(crate) all_submitted: bool,
    pub(crate) requests: Requests,
    pub(crate) counts: Counts,
    /// Effects and commands of the step under way.
    pub(crate) effects: Vec<Effect>,
    pub(crate) commands: Vec<Command>,
    pub(crate) spare: Spare,
    /// Answers of schedulers that are programs of their own.
    pub(crate) answers: Answers,
    /// Digest of all decisions; `None` after `undigested()`.
    pub(crate) digest: Option<DecisionDigest>,
    next_seq: u64,
    /// What is yet to be told of hosts that were lost while nobody conducted the run.
    pub(crate) unheard: VecDeque<Notice>,
    pub(crate) begun: bool,
    pub(crate) over: Option<Time>,
    cancelled: Option<String>,
}

impl Run {
    /// A run of this setup under this policy, before its first event.
    #[must_use]
    pub fn new(setup: Setup, policy: Box<dyn Policy>) -> Self {
        Self::of_tenants(setup, vec![(Work::All, policy)])
    }

    /// A run that these policies share, each with this part of its work. The parts are disjoint.
    #[must_use]
    pub fn of_tenants(setup: Setup, policies: Vec<(Work, Box<dyn Policy>)>) -> Self {
        let (works, policies): (Vec<_>, Vec<_>) = policies.into_iter().unzip();
        let sharing: Tenants = works.into_iter().collect();
        let spot: Vec<TypeName> = setup
            .catalogue
            .types
            .values()
            .filter(|t| t.limit(Market::Spot) > 0)
            .map(|t| t.name.clone())
            .collect();
        // Only schedulers of bags hear of prices.
        let watched = setup.terms.prices.keys().filter(|_| !setup.bag.tasks.is_empty()).cloned();
        Self {
            provider: Provider::new(setup.catalogue.clone(), &setup.terms)
                .filling(setup.memory_filled())
                .seeded(setup.seed)
                .watched(watched),
            interruptions: Interruptions::new(&setup.interruptions, &spot, setup.seed)
                .recommended(setup.terms.rebalance_lead),
            tasks: Tasks::waiting(setup.bag.tasks.len()),
            workflow: Workflow::new(&setup.bag.tasks),
            all_submitted: setup.jobs.is_none(),
            requests: Requests::expected(setup.requests),
            tenants: Tenant::all(&sharing, policies, &setup.checkpoint, &setup.terms.prices),
            sharing,
            job_checkpointing: setup.checkpoint_of_jobs().map(|of| of.build(&setup.terms.prices)),
            setup,
            timers: Timers::default(),
            vms: Window::default(),
            unlimited: BTreeSet::new(),
            refused: RefusedLaunches::default(),
            counts: Counts::default(),
            effects: Vec::new(),
            commands: Vec::new(),
            spare: Spare::default(),
            answers: Answers::default(),
            digest: Some(DecisionDigest::default()),
            next_seq: 0,
            unheard: VecDeque::new(),
            begun: false,
            over: None,
            cancelled: None,
        }
    }

    /// Makes no digest of its decisions: for runs of which only the outcome is kept.
    #[must_use]
    pub fn undigested(mut self) -> Self {
        self.digest = None;
        self
    }

    /// Takes one event and gives the step it makes and the commands to send once
    /// the step is durable. `now` never runs backwards.
    pub fn handle(&mut self, now: Time, event: Event) -> (Step, Vec<Command>) {
        let (mut step, mut commands) = (Step::blank(), Vec::new());
        self.handle_into(now, event, &mut step, &mut commands);
        (step, commands)
    }

    /// As [`Self::handle`], in place of a step and commands that nobody keeps: their memory is used
    /// again.
    #[inline]
    pub fn handle_into(
        &mut self,
        now: Time,
        event: Event,
        step: &mut Step,
        commands: &mut Vec<Command>,
    ) {
        // Where the event is made: it need not be handed on.
        step.begin(self.next_seq, now, event);
        self.take_in(now, step, commands);
    }

    /// Takes in the event of a step of which no more is known.
    fn take_in(&mut self, now: Time, step: &mut Step, commands: &mut Vec<Command>) {
        self.next_seq += 1;
        self.tasks.begin_step();
        commands.clear();
        let followed = self.begin_followed(step);
        let Step { event, notices: heard, decisions, .. } = step;

        let mut notices = std::mem::take(&mut self.spare.notices);
        if matches!(event, Event::Begin) && !self.begun {
            self.begun = true;
            let prices = self.provider.watched_prices(now);
            notices.extend(prices.into_iter().map(|(kind, price)| Notice::Price { kind, price }));
            notices.push_back(Notice::Begin);
            self.begin_workflow(&mut notices);
        }
        if let Event::Cancel { why } = event {
            self.cancelled.get_or_insert_with(|| why.clone());
        }
        self.hear(now, event, &mut notices);
        // Nothing is decided before the run goes on.
        let is_unheard = match event {
            Event::HostLost { unheard, .. } => *unheard,
            Event::HostJoined { .. } => !self.unheard.is_empty(),
            _ => false,
        };
        if is_unheard {
            self.unheard.append(&mut notices);
        }

        self.tell(now, &mut notices, heard, decisions);
        if matches!(event, Event::InstantOver) {
            for tenant in 0..self.tenants.len() {
                self.tell_instant(now, tenant, &mut notices, (&mut *heard, &mut *decisions));
            }
        }
        self.end_what_is_done(now);
        if !is_unheard && self.refused.take_gave_back() && self.over.is_none() {
            // Whoever was refused hears that there is room, as when a host comes.
            notices.push_back(Notice::HostJoined);
            self.tell(now, &mut notices, heard, decisions);
        }
        if !is_unheard {
            let freed = self.refused.take_freed_types();
            if !freed.is_empty() && self.over.is_none() {
                notices.extend(freed.into_iter().map(|kind| Notice::Available { kind }));
                self.tell(now, &mut notices, heard, decisions);
            }
        }
        self.spare.notices = notices;
        if !is_unheard {
            for vm in self.provider.placed() {
                self.boot(now, vm);
            }
            self.give_back(now);
            self.supply();
        }
        if !self.unlimited.is_empty() {
            self.note_use(now);
        }
        self.forget_requests();
        std::mem::swap(&mut self.effects, &mut step.effects);
        std::mem::swap(&mut self.commands, commands);
        self.answers.take_given(&mut step.answers);
        if let Some(followed) = followed {
            self.end_followed(&followed, step);
        }
    }

    /// Ends the run if all work is done, or it was cancelled. Where others go on, a tenant whose work
    /// is done gives its VMs back: nobody is charged for what others do.
    fn end_what_is_done(&mut self, now: Time) {
        if self.over.is_some() {
            return;
        }
        // What has happened is heard of before the end.
        let done = |run: &Self, t: &Tenant| {
            run.begun && t.instant().is_none() && run.is_all_done(t.work())
        };
        let tenants = self.tenants.len();
        let is_waited_for = |t: &&Tenant| t.work() != Work::Requests || tenants == 1;
        let complete = self.tenants.iter().filter(is_waited_for).all(|tenant| done(self, tenant));
        if complete || self.cancelled.is_some() {
            self.end_vms(now, VmEnd::RunOver, |_| true);
            self.over = Some(now);
            self.effects.push(Effect::Over { complete });
            return;
        }
        for tenant in (0..tenants).filter(|_| tenants > 1) {
            if !self.tenants[tenant].is_done && done(self, &self.tenants[tenant]) {
                self.tenants[tenant].is_done = true;
                let numbers = self.tenants[tenant].numbers();
                self.end_vms(now, VmEnd::WorkDone, |vm| numbers.owns(vm));
            }
        }
    }

    /// Whether all of this work is there and has finished.
    fn is_all_done(&self, work: Work) -> bool {
        match work {
            Work::Requests => self.requests.are_over(),
            _ => (!work.has_jobs() || self.all_submitted) && self.unfinished_of(work) == 0,
        }
    }

    fn end_vms(&mut self, now: Time, why: VmEnd, of: impl Fn(VmId) -> bool) {
        let alive = self.provider.alive().filter(|(id, _)| of(*id));
        let alive: Vec<_> = alive.map(|(id, vm)| (id, vm.host)).collect();
        for (vm, host) in alive {
            self.end_vm(now, vm, why);
            self.commands.push(Command::DestroyVm { host, vm });
        }
    }

    /// A VM is gone: charging ends, and the tasks on it are nowhere.
    pub(crate) fn end_vm(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.charge_surplus(now, vm);
        self.provider.terminated(now, vm, why.by());
        self.vm_ended(now, vm, why);
    }

    /// As [`Run::end_vm`] for a VM the provider already counts as terminated.
    pub(crate) fn vm_ended(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.interruptions.vm_ended(vm);
        self.unlimited.remove(&vm);
        self.there_is_room();
        let sharing = &self.sharing;
        if sharing.are_several() {
            self.refused.vm_ended(|refused| sharing.owner(*refused) != sharing.owner(vm));
        }
        self.place_came_free(vm);
        if let Some(record) = self.vms.get_mut(vm) {
            record.frozen_starts.clear();
        }
        let left = self.vms.get_mut(vm).map(|record| record.seating.clear()).unwrap_or_default();
        for task in left {
            self.set_state(task, TaskState::Waiting);
        }
        self.request_is_over(now, vm);
        let cost = self.provider.vm(vm).map_or(Money::ZERO, |v| v.owed(now));
        self.effects.push(Effect::VmEnded { vm, why, cost });
    }

    /// A VM has left its place, for good or for now: where its type is scarce, whoever was refused one
    /// hears that there is one more.
    pub(crate) fn place_came_free(&mut self, vm: VmId) {
        let spot = self.provider.vm(vm).filter(|vm| vm.market == Market::Spot);
        let kind = spot.map(|vm| &vm.kind).filter(|kind| self.provider.is_scarce(kind));
        if let Some(kind) = kind {
            self.refused.place_came_free(kind);
        }
    }

    /// There is more room on a host than there was: who asked for a machine in vain may get it.
    pub(crate) fn there_is_room(&mut self) {
        self.tenants.iter_mut().for_each(|tenant| tenant.waits_for_machine = false);
    }

    /// The next time a [`Event::Tick`] is due; `None` once the run is over.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.begun || self.over.is_some() {
            return None;
        }
        let own = Time::sooner(self.timers.next_at(), self.interruptions.next_at());
        let provider = &self.provider;
        Time::sooner(own, Time::sooner(provider.next_price_change(), provider.next_availability()))
    }

    /// The instant of which a policy has yet to hear: it is told by [`Event::InstantOver`], once
    /// all else of it has been said.
    #[must_use]
    pub fn instant(&self) -> Option<Time> {
        if self.over.is_some() {
            return None;
        }
        self.tenants.iter().filter_map(Tenant::instant).min()
    }

    /// Pops what is due first by `now`: prices, what can be had, a timer, or an interruption to be carried
    /// out. What happens when a price changes costs the new one.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Due> {
        let (timer, interruption) = (self.timers.next_at(), self.interruptions.next_at());
        let first = Time::sooner(timer, interruption).unwrap_or(now);
        if self.provider.next_price_change().is_some_and(|at| at <= now.min(first)) {
            return Some(Due::Prices);
        }
        if self.provider.next_availability().is_some_and(|at| at <= now.min(first)) {
            return Some(Due::Availability);
        }
        match (timer, interruption) {
            (Some(timer), Some(interruption)) if interruption < timer => {
                self.interruptions.pop(now).map(Due::Interruption)
            }
            (None, Some(_)) => self.interruptions.pop(now).map(Due::Interruption),
            _ => self.timers.pop(now).map(Due::Timer),
        }
    }

    /// When the run was over.
    #[must_use]
    pub const fn over(&self) -> Option<Time> {
        self.over
    }

    /// Why it was ended before its time, if it was.
    #[must_use]
    pub fn cancelled(&self) -> Option<&str> {
        self.cancelled.as_deref()
    }

    /// When the last task finished, if all have.
    #[must_use]
    pub fn makespan(&self) -> Option<Time> {
        if let [alone] = self.tenants.as_slice()
            && alone.work() == Work::Requests
        {
            return Some(alone.last_finish).filter(|_| self.requests.are_over());
        }
        let with_work = self.tenants.iter().filter(|tenant| tenant.work() != Work::Requests);
        let last = with_work.map(|tenant| tenant.last_finish).max();
        last.filter(|_| self.is_all_done(Work::All))
    }

    /// Who shares it, each with its work.
    #[must_use]
    pub const fn sharing(&self) -> &Tenants {
        &self.sharing
    }

    /// The tenant that a VM is of.
    pub(crate) fn owner_mut(&mut self, vm: VmId) -> &mut Tenant {
        &mut self.tenants[self.sharing.owner(vm).get() as usize]
    }

    /// What became of the work of each tenant by now, in their order.
    pub fn tenants(&self, now: Time) -> impl Iterator<Item = TenantView> + '_ {
        self.tenants.iter().zip(self.sharing.ids()).map(move |(tenant, id)| {
            let own = move |(vm, _): &(VmId, _)| self.sharing.owner(*vm) == id;
            let vms = self.provider.vms().filter(own);
            let (work, until) = (tenant.work(), self.over.unwrap_or(now));
            TenantView {
                work,
                makespan: self.is_all_done(work).then_some(tenant.last_finish),
                unfinished: self.unfinished_of(work),
                owed: tenant.settled + vms.map(|(_, vm)| vm.owed(until)).sum(),
            }
        })
    }

    /// What is owed so far.
    #[must_use]
    pub fn owed(&self, now: Time) -> Money {
        self.provider.owed(self.over.unwrap_or(now))
    }

    /// What the run is made of.
    #[must_use]
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The provider, to look at.
    #[must_use]
    pub const fn provider(&self) -> &Provider {
        &self.provider
    }

    /// The tasks, by id.
    #[must_use]
    pub const fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The id of the next job that is submitted.
    #[must_use]
    pub fn next_task(&self) -> TaskId {
        self.tasks.next_id()
    }

    /// Whether nothing more will be submitted.
    #[must_use]
    pub const fn all_submitted(&self) -> bool {
        self.all_submitted
    }

    /// How many tasks are not finished.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.tasks.unfinished()
    }

    fn unfinished_of(&self, work: Work) -> usize {
        match work {
            Work::Bag => self.tasks.bag_unfinished(),
            Work::Jobs => self.tasks.jobs_unfinished(),
            Work::Requests => self.requests.open(),
            Work::All => self.tasks.unfinished(),
        }
    }

    /// A task has finished.
    pub(crate) fn note_finish(&mut self, now: Time, task: TaskId) {
        let of_bag = self.tasks.is_of_bag(task);
        let is_its = |tenant: &&mut Tenant| match of_bag {
            true => tenant.work().has_bag(),
            false => tenant.work().has_jobs(),
        };
        if let Some(tenant) = self.tenants.iter_mut().find(is_its) {
            tenant.last_finish = tenant.last_finish.max(now);
        }
    }

    /// How often what happened.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The digest of all decisions so far; empty of a run that is [`Self::undigested`].
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.as_ref().map(DecisionDigest::hex).unwrap_or_default()
    }

    /// What each VM was promised and got of the processor.
    pub fn usage(&self) -> impl Iterator<Item = (VmId, VmUse)> + '_ {
        self.vms.iter().map(|(id, vm)| (id, vm.usage))
    }

    /// Puts a task in a state; one that leaves its VM leaves its seats.
    pub(crate) fn set_state(&mut self, id: TaskId, state: TaskState) {
        let Some(left) = self.tasks.set_state(id, state) else { return };
        if let Some(vm) = self.vms.get_mut(left.vm) {
            vm.seating.leave(&left);
        }
    }

    /// Sends a waiting task to seats that are free.
    pub(crate) fn seat(&mut self, id: TaskId, seats: Seats) {
        self.tasks.set_state(id, TaskState::Sent(seats.vm));
        if let Some(vm) = self.vms.get_mut(seats.vm) {
            vm.seating.take(id, &seats);
        }
        if let Some(record) = self.tasks.get_mut(id) {
            record.seats = Some(seats);
        }
    }

    /// A task changes its seats on its VM.
    pub(crate) fn reseat(&mut self, id: TaskId, tier: Tier, cpus: Cpus) {
        let Some(record) = self.tasks.get_mut(id) else { return };
        let Some(old) = record.seats.take() else { return };
        let new = Seats { vm: old.vm, tier, cpus };
        if let Some(vm) = self.vms.get_mut(old.vm) {
            vm.seating.leave(&old);
            vm.seating.take(id, &new);
        }
        record.seats = Some(new);
    }

    pub(crate) fn task(&mut self, id: TaskId) -> Option<&mut TaskRecord> {
        self.tasks.get_mut(id)
    }

    pub(crate) fn host_of(&self, vm: VmId) -> Option<HostId> {
        self.provider.vm(vm).filter(|v| v.is_alive()).map(|v| v.host)
    }
}

/// What became of a tenant's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantView {
    /// What of the run's work it has.
    pub work: Work,
    /// When the last of its tasks finished, if all have.
    pub makespan: Option<Time>,
    /// Number of the tenant's tasks that have not finished.
    pub unfinished: usize,
    /// What is owed for its VMs.
    pub owed: Money,
}
