//! The state machine itself: events in, steps and commands out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dormouse_cloud::{Interruptions, Market, Provider};
use dormouse_policies::{Decision, Notice, Scheduler};
use dormouse_units::{HostId, Money, TaskId, Time, TypeName, VmId};

use crate::carry_out::Refused;
use crate::machine::StartTask;
use crate::tasks::{TaskRecord, TaskState};
use crate::timers::{Timer, Timers};
use crate::{Command, Counts, DecisionDigest, Effect, Event, Setup, Step, VmEnd};

/// What the engine remembers of a VM beside what the provider does.
#[derive(Clone, Debug, Default)]
pub(crate) struct VmRecord {
    /// The host has made it.
    pub(crate) created: bool,
    /// Its boot time is over.
    pub(crate) boot_over: bool,
    /// When its current hibernation or resume was asked for.
    pub(crate) asked: Time,
    /// The tasks sent to it that haven't ended: at most one per vCPU.
    pub(crate) tasks: Vec<TaskId>,
    /// Tasks sent to it between a hibernation's asking and its effect: they start at the resume.
    pub(crate) frozen_starts: Vec<StartTask>,
    /// What it was promised and got of the processor.
    pub(crate) usage: VmUse,
}

/// CPU time a VM was promised and got, real microseconds; zeros in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmUse {
    /// What it was promised.
    pub real_promised_us: u64,
    /// What it got.
    pub real_received_us: u64,
}

/// One run: provider, scheduler, tasks, timers.
#[derive(Debug)]
pub struct Run {
    pub(crate) setup: Setup,
    pub(crate) provider: Provider,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) interruptions: Interruptions,
    pub(crate) timers: Timers,
    pub(crate) tasks: Vec<TaskRecord>,
    pub(crate) vms: BTreeMap<VmId, VmRecord>,
    /// VMs asked for and not granted.
    pub(crate) refused: BTreeSet<VmId>,
    pub(crate) unfinished: usize,
    pub(crate) counts: Counts,
    /// Effects and commands of the step under way.
    pub(crate) effects: Vec<Effect>,
    pub(crate) commands: Vec<Command>,
    digest: DecisionDigest,
    next_seq: u64,
    begun: bool,
    over: Option<Time>,
    cancelled: Option<String>,
}

impl Run {
    /// A run of this setup under this scheduler, before its first event.
    #[must_use]
    pub fn new(setup: Setup, scheduler: Box<dyn Scheduler>) -> Self {
        let spot: Vec<TypeName> = setup
            .catalogue
            .types
            .values()
            .filter(|t| t.limit(Market::Spot) > 0)
            .map(|t| t.name.clone())
            .collect();
        Self {
            provider: Provider::new(setup.catalogue.clone()),
            interruptions: Interruptions::new(&setup.interruptions, &spot, setup.seed),
            tasks: vec![TaskRecord::default(); setup.bag.tasks.len()],
            unfinished: setup.bag.tasks.len(),
            setup,
            scheduler,
            timers: Timers::default(),
            vms: BTreeMap::new(),
            refused: BTreeSet::new(),
            counts: Counts::default(),
            effects: Vec::new(),
            commands: Vec::new(),
            digest: DecisionDigest::default(),
            next_seq: 0,
            begun: false,
            over: None,
            cancelled: None,
        }
    }

    /// Takes one event and gives the step it makes and the commands to send once
    /// the step is durable. `now` never runs backwards.
    pub fn handle(&mut self, now: Time, event: Event) -> (Step, Vec<Command>) {
        let mut notices = VecDeque::new();
        if matches!(event, Event::Begin) && !self.begun {
            self.begun = true;
            notices.push_back(Notice::Begin);
        }
        if let Event::Cancel { why } = &event {
            self.cancelled.get_or_insert_with(|| why.clone());
        }
        self.hear(now, &event, &mut notices);

        let (mut heard, mut decisions, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(notice) = notices.pop_front() {
            if self.over.is_none() && self.cancelled.is_none() {
                self.scheduler.handle(now, &notice, &mut wanted);
            }
            heard.push(notice);
            for decision in wanted.drain(..) {
                self.digest.add(now, &decision);
                self.decide(now, decisions.len(), &decision, &mut notices);
                decisions.push(decision);
            }
        }
        self.end_if_done(now);

        let seq = self.next_seq;
        self.next_seq += 1;
        let effects = std::mem::take(&mut self.effects);
        let step = Step { seq, at: now, event, notices: heard, decisions, effects };
        (step, std::mem::take(&mut self.commands))
    }

    fn decide(
        &mut self,
        now: Time,
        index: usize,
        decision: &Decision,
        notices: &mut VecDeque<Notice>,
    ) {
        match self.carry_out(now, decision, notices) {
            Ok(()) => {}
            Err(Refused::Moot(why)) => self.effects.push(Effect::Moot { index, why }),
            Err(Refused::Wrong(why)) => {
                self.counts.rejected += 1;
                self.effects.push(Effect::Rejected { index, why });
            }
        }
    }

    fn end_if_done(&mut self, now: Time) {
        let complete = self.unfinished == 0 && self.begun;
        if self.over.is_some() || !(complete || self.cancelled.is_some()) {
            return;
        }
        let alive: Vec<_> = self
            .provider
            .vms()
            .filter(|(_, vm)| vm.is_alive())
            .map(|(id, vm)| (id, vm.host))
            .collect();
        for (vm, host) in alive {
            self.end_vm(now, vm, VmEnd::RunOver);
            self.commands.push(Command::DestroyVm { host, vm });
        }
        self.over = Some(now);
        self.effects.push(Effect::Over { complete });
    }

    /// A VM is gone: charging ends, and the tasks on it are nowhere.
    pub(crate) fn end_vm(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.provider.terminated(now, vm);
        self.vm_ended(now, vm, why);
    }

    /// As [`Run::end_vm`] for a VM the provider already counts as terminated.
    pub(crate) fn vm_ended(&mut self, now: Time, vm: VmId, why: VmEnd) {
        self.interruptions.vm_ended(vm);
        if let Some(record) = self.vms.get_mut(&vm) {
            record.frozen_starts.clear();
        }
        for task in self.vms.get_mut(&vm).map(|v| std::mem::take(&mut v.tasks)).unwrap_or_default()
        {
            self.set_state(task, TaskState::Waiting);
        }
        let cost = self.provider.vm(vm).map_or(Money::ZERO, |v| v.owed(now));
        self.effects.push(Effect::VmEnded { vm, why, cost });
    }

    /// The next time a [`Event::Tick`] is due; `None` once the run is over.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        if !self.begun || self.over.is_some() {
            return None;
        }
        [self.timers.next_at(), self.interruptions.next_at()].into_iter().flatten().min()
    }

    /// Pops what is due first by `now`: a timer, or an interruption to be carried out.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Due> {
        match (self.timers.next_at(), self.interruptions.next_at()) {
            (Some(timer), Some(interruption)) if interruption < timer => {
                self.interruptions.pop(now).map(Due::Interruption)
            }
            (None, Some(_)) => self.interruptions.pop(now).map(Due::Interruption),
            _ => self.timers.pop(now).map(Due::Timer),
        }
    }

    /// Whether nothing will ever happen again though tasks are left: no task runs, no
    /// VM boots or changes state, no timer is set, and no VM is left to be resumed.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        use dormouse_cloud::VmState::{Booting, Hibernated, Hibernating, Resuming};
        let changing = |vm: &dormouse_cloud::Vm| match vm.state {
            Booting | Hibernating | Resuming => true,
            Hibernated { .. } => self.interruptions.next_at().is_some(),
            _ => false,
        };
        self.begun
            && self.over.is_none()
            && self.timers.next_at().is_none()
            && self.tasks.iter().all(|t| t.vm().is_none())
            && !self.provider.vms().any(|(_, vm)| changing(vm))
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
        self.tasks.iter().map(|t| t.finished).try_fold(Time::ZERO, |latest, t| Some(latest.max(t?)))
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

    /// Every task, by id.
    #[must_use]
    pub fn tasks(&self) -> &[TaskRecord] {
        &self.tasks
    }

    /// How many tasks are not finished.
    #[must_use]
    pub const fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// How often what happened.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The digest of all decisions so far.
    #[must_use]
    pub fn digest(&self) -> String {
        self.digest.hex()
    }

    /// What each VM was promised and got of the processor.
    pub fn usage(&self) -> impl Iterator<Item = (VmId, VmUse)> + '_ {
        self.vms.iter().map(|(&id, vm)| (id, vm.usage))
    }

    /// Puts a task in a state, and keeps its VM's list in step.
    pub(crate) fn set_state(&mut self, id: TaskId, state: TaskState) {
        let Some(record) = self.tasks.get_mut(id.get() as usize) else { return };
        let before = record.vm();
        record.state = state;
        let after = record.vm();
        if before == after {
            return;
        }
        if let Some(vm) = before.and_then(|vm| self.vms.get_mut(&vm)) {
            vm.tasks.retain(|&t| t != id);
        }
        if let Some(vm) = after.and_then(|vm| self.vms.get_mut(&vm)) {
            vm.tasks.push(id);
        }
    }

    pub(crate) fn task(&mut self, id: TaskId) -> Option<&mut TaskRecord> {
        self.tasks.get_mut(id.get() as usize)
    }

    pub(crate) fn host_of(&self, vm: VmId) -> Option<HostId> {
        self.provider.vm(vm).filter(|v| v.is_alive()).map(|v| v.host)
    }
}

/// Something whose time has come.
pub(crate) enum Due {
    Timer(Timer),
    Interruption(dormouse_cloud::Interruption),
}
