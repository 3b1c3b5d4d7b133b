//! The state machine itself: events in, steps and commands out.

mod calls;
mod carry_out;
mod checkpoints;
mod ends;
mod followers;
mod hear;
mod interruptions;
mod programs;
mod reports;
mod requested;
mod seats;
mod stuck;
mod supply;
mod surplus;
mod telling;
mod views;

use std::collections::VecDeque;

use dormouse_cloud::{ComingInterruptions, Market, Provider};
use dormouse_model::{Command, Decision, Effect, Event, Notice, Setup, Step, TenantWork, Tenants};
use dormouse_policies::{CheckpointPlanning, Checkpointing, Policy};
use dormouse_units::{HostId, Time, TypeName, VmId, Window};

use crate::answers::ProgramAnswers;
use crate::refused_launches::RefusedLaunches;
use crate::requests::OpenRequests;
use crate::supplies::VmSupplies;
use crate::surpluses::SurplusAccounts;
use crate::tasks::TaskTable;
use crate::tenants::RunTenant;
use crate::timers::{DueEvent, TimerQueue};
use crate::vm_record::VmRecord;
use crate::workflow::WorkflowProgress;
use crate::{DecisionDigest, RunCounts};

pub use views::TenantView;

/// Buffers of earlier steps, reused to avoid allocations.
#[derive(Debug, Default)]
struct SpareBuffers {
    notices: VecDeque<Notice>,
    wanted: Vec<Decision>,
    unheard: Vec<Notice>,
}

/// One run: provider, tenants, tasks and timers. A pure state machine: [`Run::handle_event`] takes events with their
/// times and returns steps and commands.
///
/// Use: make it with [`Run::new`] or [`Run::of_tenants`], then hand it every event in order of time: hosts and
/// [`Event::Begin`] first, [`Event::Tick`] whenever [`Run::next_wakeup`] is due, until [`Run::over_at`] says that it
/// is over.
#[derive(Debug)]
pub struct Run {
    setup: Setup,
    provider: Provider,
    /// The tenants and the part of the work that each has.
    sharing: Tenants,
    tenants: Vec<RunTenant>,
    /// Checkpointing scheme of parallel jobs; `None`: they have no checkpoints.
    job_checkpointing: Option<Box<dyn Checkpointing>>,
    interruptions: ComingInterruptions,
    timers: TimerQueue,
    tasks: TaskTable,
    workflow: WorkflowProgress,
    /// Records of the VMs. Boxed, since a VM that lives long keeps an empty place for each VM after it.
    vms: Window<Box<VmRecord>, VmId>,
    surpluses: SurplusAccounts,
    supplies: VmSupplies,
    refused: RefusedLaunches,
    /// True if nothing more will be submitted.
    all_submitted: bool,
    requests: OpenRequests,
    counts: RunCounts,
    /// Effects of the step under way.
    effects: Vec<Effect>,
    commands: Vec<Command>,
    spare: SpareBuffers,
    /// Answers of the schedulers that are programs.
    answers: ProgramAnswers,
    /// Digest of all decisions; `None` after [`Run::without_digest`].
    digest: Option<DecisionDigest>,
    next_seq: u64,
    /// Notices of hosts that were lost while the coordinator was away; schedulers have not got them yet.
    unheard: VecDeque<Notice>,
    begun: bool,
    over: Option<Time>,
    cancelled: Option<String>,
}

impl Run {
    /// Makes a run of this setup under one policy, before its first event.
    #[must_use]
    pub fn new(setup: Setup, policy: Box<dyn Policy>) -> Self {
        Self::of_tenants(setup, vec![(TenantWork::All, policy)])
    }

    /// Makes a run that several policies share, each with its part of the work; the parts must be disjoint.
    #[must_use]
    pub fn of_tenants(setup: Setup, policies: Vec<(TenantWork, Box<dyn Policy>)>) -> Self {
        let (works, policies): (Vec<_>, Vec<_>) = policies.into_iter().unzip();
        let sharing: Tenants = works.into_iter().collect();
        let spot: Vec<TypeName> = setup
            .catalogue
            .types
            .values()
            .filter(|t| t.vm_limit(Market::Spot) > 0)
            .map(|t| t.name.clone())
            .collect();
        // Only schedulers of bags hear of prices.
        let watched = setup.terms.prices.keys().filter(|_| !setup.bag.tasks.is_empty()).cloned();
        Self {
            provider: Provider::new(setup.catalogue.clone(), &setup.terms)
                .with_filling(setup.memory_filled())
                .with_seed(setup.seed)
                .watch_kinds(watched),
            interruptions: ComingInterruptions::new(&setup.interruptions, &spot, setup.seed)
                .with_recommendations(setup.terms.rebalance_rule()),
            tasks: TaskTable::all_waiting(setup.bag.tasks.len()),
            workflow: WorkflowProgress::new(&setup.bag.tasks),
            all_submitted: setup.jobs.is_none(),
            requests: OpenRequests::expect_requests(setup.requests),
            tenants: RunTenant::make_all(
                &sharing,
                policies,
                &setup.checkpoint,
                &setup.terms.prices,
            ),
            sharing,
            job_checkpointing: setup.checkpoint_of_jobs().map(|of| of.build(&setup.terms.prices)),
            setup,
            timers: TimerQueue::default(),
            vms: Window::default(),
            surpluses: SurplusAccounts::default(),
            supplies: VmSupplies::default(),
            refused: RefusedLaunches::default(),
            counts: RunCounts::default(),
            effects: Vec::new(),
            commands: Vec::new(),
            spare: SpareBuffers::default(),
            answers: ProgramAnswers::default(),
            digest: Some(DecisionDigest::default()),
            next_seq: 0,
            unheard: VecDeque::new(),
            begun: false,
            over: None,
            cancelled: None,
        }
    }

    /// Turns off the digest of decisions, for runs of which only the outcome is kept.
    #[must_use]
    pub fn without_digest(mut self) -> Self {
        self.digest = None;
        self
    }

    /// Handles one event; returns the step that it makes, and the commands to send once the step is durable. `now`
    /// must not go back.
    pub fn handle_event(&mut self, now: Time, event: Event) -> (Step, Vec<Command>) {
        let (mut step, mut commands) = (Step::blank(), Vec::new());
        self.handle_into(now, event, &mut step, &mut commands);
        (step, commands)
    }

    /// Handles one event as [`Run::handle_event`] does, and writes the step and commands over those given, whose
    /// memory is reused.
    #[inline]
    pub fn handle_into(
        &mut self,
        now: Time,
        event: Event,
        step: &mut Step,
        commands: &mut Vec<Command>,
    ) {
        // Where the event is made: it need not be handed on.
        step.begin_step(self.next_seq, now, event);
        self.take_in(now, step, commands);
    }

    /// Handles the event of a step that has only its event so far.
    fn take_in(&mut self, now: Time, step: &mut Step, commands: &mut Vec<Command>) {
        self.next_seq += 1;
        self.tasks.begin_step();
        commands.clear();
        let followed = self.answers.begin_followed(step);
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
        self.apply_event(now, event, &mut notices);
        // Nothing is decided before the run goes on.
        let is_unheard = match event {
            Event::HostLost { unheard, .. } => *unheard,
            Event::HostJoined { .. } => !self.unheard.is_empty(),
            _ => false,
        };
        if is_unheard {
            self.unheard.append(&mut notices);
        }

        self.tell_tenants(now, &mut notices, heard, decisions);
        if let Event::Called { call, .. } = event {
            self.take_call(now, call, &mut notices, (&mut *heard, &mut *decisions));
        }
        if matches!(event, Event::InstantOver) {
            for tenant in 0..self.tenants.len() {
                self.tell_instant(now, tenant, &mut notices, (&mut *heard, &mut *decisions));
            }
        }
        self.end_what_is_done(now);
        if !is_unheard && self.refused.take_gave_back() && self.over.is_none() {
            // Whoever was refused hears that there is room, as when a host comes.
            notices.push_back(Notice::HostJoined);
            self.tell_tenants(now, &mut notices, heard, decisions);
        }
        if !is_unheard {
            let freed = self.refused.take_freed_types();
            if !freed.is_empty() && self.over.is_none() {
                notices.extend(freed.into_iter().map(|kind| Notice::Available { kind }));
                self.tell_tenants(now, &mut notices, heard, decisions);
            }
        }
        self.spare.notices = notices;
        if !is_unheard {
            for vm in self.provider.take_placed() {
                self.boot_vm(now, vm);
            }
            self.give_back(now);
            self.update_supplies();
        }
        if !self.surpluses.is_empty() {
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

    /// Returns the time at which the next [`Event::Tick`] is due; `None` once the run is over.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.begun || self.over.is_some() {
            return None;
        }
        let own = Time::sooner_of(self.timers.next_at(), self.interruptions.next_at());
        let provider = &self.provider;
        Time::sooner_of(
            own,
            Time::sooner_of(provider.next_price_change(), provider.next_availability()),
        )
    }

    /// Returns the instant whose notices a policy hasn't got yet; it gets them at [`Event::InstantOver`], after all else of the
    /// instant. `None` if there is no such instant.
    #[must_use]
    pub fn pending_instant(&self) -> Option<Time> {
        if self.over.is_some() {
            return None;
        }
        self.tenants.iter().filter_map(RunTenant::pending_instant).min()
    }

    /// Takes the first event that is due by `now`: a change of prices or capacity, a timer, or an interruption. At
    /// equal times prices change first, so that other events have the new price.
    fn next_due(&mut self, now: Time) -> Option<DueEvent> {
        let (timer, interruption) = (self.timers.next_at(), self.interruptions.next_at());
        let first = Time::sooner_of(timer, interruption).unwrap_or(now);
        if self.provider.next_price_change().is_some_and(|at| at <= now.min(first)) {
            return Some(DueEvent::Prices);
        }
        if self.provider.next_availability().is_some_and(|at| at <= now.min(first)) {
            return Some(DueEvent::Availability);
        }
        match (timer, interruption) {
            (Some(timer), Some(interruption)) if interruption < timer => {
                self.interruptions.pop_due(now).map(DueEvent::Interruption)
            }
            (None, Some(_)) => self.interruptions.pop_due(now).map(DueEvent::Interruption),
            _ => self.timers.pop_due(now).map(DueEvent::Timer),
        }
    }

    /// Returns the tenant that owns a VM.
    fn owner_mut(&mut self, vm: VmId) -> &mut RunTenant {
        &mut self.tenants[self.sharing.vm_owner(vm).get() as usize]
    }

    fn host_of(&self, vm: VmId) -> Option<HostId> {
        self.provider.find_vm(vm).filter(|v| v.is_alive()).map(|v| v.host)
    }
}
