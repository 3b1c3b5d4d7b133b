//! The world a scheduler lives in, in virtual time: dormouse-cloud's provider, and machines that
//! compute, checkpoint, freeze and die. Every decision is checked as it is carried out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use dormouse_cloud::{
    Action, Catalogue, EndedBy, Host, InterruptionModel, Interruptions, Market, Provider, Terms,
    VmState,
};
use dormouse_units::{Bytes, Credits, HostId, Money, Ppm, Span, TaskId, Time, VmId};

use crate::{Bag, CheckpointBudget, Decision, Notice, Policy, StartReason};
use dormouse_units::{Mode, Seats, Stream};

/// What goes wrong besides interruptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    /// Of 100 attempts, how many fail half-way.
    pub(crate) failing: usize,
    /// Of 100 launches, how many are refused.
    pub(crate) refusing: usize,
    /// Hosts lost, with their VMs, and when.
    pub(crate) lost_hosts: Vec<(u32, Time)>,
    /// vCPUs of each of three hosts; many if zero.
    pub(crate) host_vcpus: u32,
    /// The scheduler bursts whatever the credits are.
    pub(crate) careless: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) makespan: Time,
    pub(crate) cost: Money,
    pub(crate) finished: usize,
    pub(crate) hibernations: usize,
    pub(crate) resumes: usize,
    pub(crate) on_demand_launched: usize,
    pub(crate) migrated: usize,
    pub(crate) stolen: usize,
    pub(crate) decisions: Vec<(Time, Decision)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Booted(VmId),
    Step(TaskId, u64),
    Fails(TaskId, u64),
    Killed(VmId),
    HostLost(u32),
    Wake(u64),
    Interruption,
}

/// A stretch of an attempt: computing up to a part of the work, or writing that checkpoint.
#[derive(Clone, Copy, Debug)]
enum Stretch {
    Compute { from: Ppm, to: Ppm, whole: Span },
    Write(Ppm),
}

#[derive(Debug)]
struct Attempt {
    vm: VmId,
    mode: Mode,
    /// Sets this attempt's events apart from those of others and of its own past.
    life: u64,
    left: VecDeque<(Span, Stretch)>,
    since: Time,
    frozen: bool,
    /// Being checkpointed to leave.
    leaving: bool,
}

struct Account {
    balance: Credits,
    at: Time,
}

pub(crate) struct World<'a> {
    now: Time,
    bag: &'a Bag,
    catalogue: &'a Catalogue,
    budget: &'a CheckpointBudget,
    provider: Provider,
    interruptions: Interruptions,
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
    serial: u64,
    notices: VecDeque<Notice>,
    attempts: BTreeMap<TaskId, Attempt>,
    done: Vec<Ppm>,
    finished: Vec<bool>,
    doomed: BTreeMap<VmId, Time>,
    accounts: BTreeMap<VmId, Account>,
    trouble: Trouble,
    random: Stream,
    outcome: Outcome,
}

impl<'a> World<'a> {
    pub(crate) fn new(
        bag: &'a Bag,
        catalogue: &'a Catalogue,
        budget: &'a CheckpointBudget,
        models: &[InterruptionModel],
        trouble: Trouble,
        seed: u64,
    ) -> Self {
        let mut provider = Provider::new(catalogue.clone(), &Terms::default());
        let vcpus = if trouble.host_vcpus == 0 { 1 << 20 } else { trouble.host_vcpus };
        for host in 0..3 {
            provider.host_joined(HostId::new(host), Host::new(vcpus, Bytes::new(1 << 60)));
        }
        let spot = catalogue.types.values().filter(|t| t.spot.is_some()).map(|t| t.name.clone());
        let interruptions = Interruptions::new(models, &spot.collect::<Vec<_>>(), seed);
        let mut world = Self {
            now: Time::ZERO,
            bag,
            catalogue,
            budget,
            provider,
            interruptions,
            heap: BinaryHeap::new(),
            serial: 0,
            notices: VecDeque::from([Notice::Begin]),
            attempts: BTreeMap::new(),
            done: vec![Ppm::ZERO; bag.tasks.len()],
            finished: vec![false; bag.tasks.len()],
            doomed: BTreeMap::new(),
            accounts: BTreeMap::new(),
            random: Stream::new(seed, "trouble", 0),
            outcome: Outcome::default(),
            trouble,
        };
        for (host, at) in world.trouble.lost_hosts.clone() {
            world.at(at, Event::HostLost(host));
        }
        world.next_interruption();
        world
    }

    /// Runs to the end, which is when nothing will happen any more.
    pub(crate) fn run(mut self, scheduler: &mut dyn Policy) -> Outcome {
        let mut events = 0;
        loop {
            while let Some(notice) = self.notices.pop_front() {
                let mut decisions = Vec::new();
                scheduler.handle(self.now, std::slice::from_ref(&notice), &mut decisions);
                for decision in decisions {
                    self.outcome.decisions.push((self.now, decision.clone()));
                    self.carry_out(decision);
                }
            }
            if self.finished.iter().all(|&f| f) {
                break;
            }
            let Some(Reverse((at, _, event))) = self.heap.pop() else { break };
            events += 1;
            assert!(events < 200_000, "no end in sight at {at}");
            assert!(at >= self.now);
            self.now = at;
            self.happen(event);
        }
        if self.finished.iter().all(|&f| f) {
            let alive: Vec<_> = self.provider.alive().collect();
            assert!(alive.is_empty(), "kept after the last task: {alive:?}");
        }
        self.outcome.finished = self.finished.iter().filter(|&&f| f).count();
        self.outcome.cost = self.provider.owed(self.now);
        self.outcome
    }

    fn at(&mut self, at: Time, event: Event) {
        self.serial += 1;
        self.heap.push(Reverse((at, self.serial, event)));
    }

    fn next_interruption(&mut self) {
        if let Some(at) = self.interruptions.next_at() {
            // A task that has not finished by then never will.
            if at < Time::ZERO + self.bag.deadline.times(20) {
                self.at(at, Event::Interruption);
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Booted(vm) => {
                if self.provider.booted(self.now, vm) {
                    let kind = &self.provider.vm(vm).expect("it has booted").kind;
                    self.interruptions.vm_started(self.now, vm, kind);
                    self.notices.push_back(Notice::VmReady { vm });
                    self.open_account(vm);
                }
            }
            Event::Step(task, life) => self.step(task, life),
            Event::Fails(task, life) => {
                if self.attempts.get(&task).is_some_and(|a| a.life == life && !a.frozen) {
                    let vm = self.end_attempt(task);
                    self.notices.push_back(Notice::TaskFailed { task, vm, why: "drawn".into() });
                }
            }
            Event::Killed(vm) => {
                if self.provider.terminated(self.now, vm, EndedBy::Provider) {
                    self.lose(vm);
                }
            }
            Event::HostLost(host) => {
                for vm in self.provider.host_lost(self.now, HostId::new(host)) {
                    self.lose(vm);
                }
                let vcpus = self.trouble.host_vcpus.max(64);
                let back = Host::new(vcpus, Bytes::new(1 << 60));
                self.provider.host_joined(HostId::new(host + 100), back);
            }
            Event::Wake(token) => self.notices.push_back(Notice::Wake { token }),
            Event::Interruption => {
                while let Some(due) = self.interruptions.pop(self.now) {
                    let hit = self.provider.hit_by(self.now, &due);
                    if due.action == Action::Hibernate {
                        let said = hit.iter().map(|&vm| Notice::VmHibernating { vm });
                        self.notices.extend(said);
                    }
                    for vm in hit {
                        self.interrupt(vm, due.action);
                    }
                }
                self.next_interruption();
            }
        }
    }

    fn interrupt(&mut self, vm: VmId, action: Action) {
        match action {
            Action::Hibernate => {
                assert!(self.provider.hibernate(vm) && self.provider.hibernated(self.now, vm));
                self.outcome.hibernations += 1;
                for task in self.on(vm) {
                    self.pause(task);
                }
                self.notices.push_back(Notice::VmHibernated { vm });
            }
            Action::Resume => {
                // Others may have its host's vCPUs by now.
                if !self.provider.resume(vm) {
                    return;
                }
                assert!(self.provider.resumed(self.now, vm));
                self.outcome.resumes += 1;
                for task in self.on(vm) {
                    self.go_on(task);
                }
                self.notices.push_back(Notice::VmResumed { vm });
            }
            // It has nothing to save.
            Action::Preempt
                if self.provider.vm(vm).is_some_and(|vm| vm.state == VmState::Booting) =>
            {
                assert!(self.provider.terminated(self.now, vm, EndedBy::Provider));
                self.lose(vm);
            }
            Action::Preempt => {
                let at = self.now + Span::from_secs(120);
                if self.doomed.insert(vm, at).is_none() {
                    self.at(at, Event::Killed(vm));
                    self.notices.push_back(Notice::VmPreempting { vm, at });
                }
            }
        }
    }

    fn lose(&mut self, vm: VmId) {
        for task in self.on(vm) {
            self.attempts.remove(&task);
        }
        self.notices.push_back(Notice::VmLost { vm });
    }

    fn on(&self, vm: VmId) -> Vec<TaskId> {
        self.attempts.iter().filter(|(_, a)| a.vm == vm).map(|(&t, _)| t).collect()
    }

    fn carry_out(&mut self, decision: Decision) {
        match decision {
            Decision::Launch { vm, kind, market, bid } => {
                if self.random.below(100) < self.trouble.refusing {
                    let why = "drawn".to_owned();
                    return self.notices.push_back(Notice::LaunchRefused { vm, why });
                }
                match self.provider.launch(self.now, vm, &kind, market, bid) {
                    Ok(launched) => {
                        self.outcome.on_demand_launched += usize::from(market == Market::OnDemand);
                        let ready_at = launched.ready_at.expect("spread names no victims");
                        self.at(ready_at, Event::Booted(vm));
                    }
                    Err(
                        refusal @ (dormouse_cloud::LaunchError::NoCapacity { .. }
                        | dormouse_cloud::LaunchError::Limit { .. }),
                    ) => {
                        let why = refusal.to_string();
                        self.notices.push_back(Notice::LaunchRefused { vm, why });
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            // The scheduler hears of things one at a time: these it will hear of next.
            Decision::Start { on: Seats { vm, .. }, .. }
            | Decision::Stop { vm, .. }
            | Decision::Terminate { vm }
                if self.will_hear_lost(vm) => {}
            Decision::Terminate { vm } => {
                assert_eq!(self.on(vm), [], "tasks on {vm} are thrown away");
                let ended = self.provider.terminated(self.now, vm, EndedBy::User);
                assert!(ended, "{vm} isn't alive");
            }
            Decision::Start { task, on, mode, reason } => self.start(task, on.vm, mode, reason),
            Decision::Stop { task, vm, .. } if self.will_hear_stopped(task, vm) => {}
            Decision::Stop { task, vm, keep } => {
                let attempt = self.attempts.get_mut(&task).expect("an attempt to stop");
                assert!(attempt.vm == vm && !(keep && attempt.leaving), "{task} isn't on {vm}");
                let frozen = attempt.frozen;
                let unheard = self.notices.contains(&Notice::VmHibernating { vm });
                assert!(!(keep && frozen) || unheard, "a frozen task can't be checkpointed");
                if keep && !frozen {
                    self.pause(task);
                    let progress = self.progress(task);
                    let memory = self.bag.tasks[task.get() as usize].memory;
                    let cost = self.budget.plan(memory, Span::ZERO).cost;
                    let attempt = self.attempts.get_mut(&task).unwrap();
                    attempt.left = VecDeque::from([(cost, Stretch::Write(progress))]);
                    attempt.leaving = true;
                    self.go_on(task);
                } else {
                    self.end_attempt(task);
                    let done = self.done[task.get() as usize];
                    self.notices.push_back(Notice::TaskStopped { task, vm, done });
                }
            }
            Decision::SetMode { .. } | Decision::Promote { .. } => {
                panic!("no scheduler here does that")
            }
            Decision::Wake { at, token } => {
                assert!(at >= self.now, "a wake-up in the past");
                self.at(at, Event::Wake(token));
            }
        }
    }

    fn start(&mut self, task: TaskId, vm: VmId, mode: Mode, reason: StartReason) {
        let bag = self.bag;
        let id = task.get() as usize;
        let spec = &bag.tasks[id];
        assert!(!self.finished[id], "{task} has finished");
        assert!(!self.attempts.contains_key(&task), "{task} is elsewhere");
        let state = self.provider.vm(vm).expect("a VM that was launched");
        let unheard = self.notices.contains(&Notice::VmHibernating { vm });
        let running = state.state == VmState::Running;
        assert!(running || unheard, "{task} started on {vm}, {:?}", state.state);
        let kind = self.catalogue.get(&state.kind).unwrap();
        let others = self.on(vm);
        assert!(others.len() < kind.vcpus as usize, "no vCPU free on {vm}");
        let memory: Bytes = others.iter().map(|t| bag.tasks[t.get() as usize].memory).sum();
        assert!(memory + spec.memory <= kind.memory, "no memory free on {vm}");
        match reason {
            StartReason::Migrated => self.outcome.migrated += 1,
            StartReason::Stolen => self.outcome.stolen += 1,
            _ => {}
        }

        let runtime = spec.runtime[&kind.name];
        let speed = match (mode, kind.burstable) {
            (Mode::Baseline, Some(burstable)) => burstable.baseline,
            _ => Ppm::ONE,
        };
        let plan = self.budget.plan(spec.memory, runtime);
        let mut at = self.done[id];
        let mut left = VecDeque::new();
        let compute = |from: Ppm, to: Ppm| {
            let part = runtime.part(to).saturating_sub(runtime.part(from));
            let whole = part.at_speed(speed).unwrap();
            (whole, Stretch::Compute { from, to, whole })
        };
        while let Some(due) = plan.next_after(at) {
            left.push_back(compute(at, due));
            left.push_back((plan.cost, Stretch::Write(due)));
            at = due;
        }
        left.push_back(compute(at, Ppm::ONE));
        self.serial += 1;
        let life = self.serial;
        let attempt =
            Attempt { vm, mode, life, left, since: self.now, frozen: true, leaving: false };
        self.settle_account(vm);
        self.attempts.insert(task, attempt);
        self.notices.push_back(Notice::TaskStarted {
            task,
            vm,
            done: self.done[id],
            since: self.now,
        });
        if self.random.below(100) < self.trouble.failing {
            let at = self.now + runtime.part(Ppm::new(500_000));
            self.at(at, Event::Fails(task, life));
        }
        if running {
            self.go_on(task);
        }
    }

    fn will_hear_lost(&self, vm: VmId) -> bool {
        let lost = |n: &Notice| match n {
            Notice::VmLost { vm: lost } | Notice::LaunchRefused { vm: lost, .. } => *lost == vm,
            _ => false,
        };
        self.notices.iter().any(lost)
    }

    fn will_hear_stopped(&self, task: TaskId, vm: VmId) -> bool {
        let stopped = |n: &Notice| matches!(*n, Notice::TaskStopped { task: t, vm: v, .. } if (t, v) == (task, vm));
        let gone = self.attempts.get(&task).is_none_or(|a| a.vm != vm);
        gone && self.notices.iter().any(stopped)
    }

    fn go_on(&mut self, task: TaskId) {
        let now = self.now;
        let attempt = self.attempts.get_mut(&task).unwrap();
        (attempt.frozen, attempt.since) = (false, now);
        let (at, life) = (now + attempt.left[0].0, attempt.life);
        self.at(at, Event::Step(task, life));
    }

    fn pause(&mut self, task: TaskId) {
        self.serial += 1;
        let attempt = self.attempts.get_mut(&task).unwrap();
        let gone = self.now.since(attempt.since);
        attempt.left[0].0 = attempt.left[0].0.saturating_sub(gone);
        (attempt.frozen, attempt.life) = (true, self.serial);
    }

    /// How far a paused attempt is.
    fn progress(&self, task: TaskId) -> Ppm {
        let (left, stretch) = self.attempts[&task].left[0];
        match stretch {
            Stretch::Write(at) => at,
            Stretch::Compute { from, to, whole } => {
                let part = whole.saturating_sub(left).fraction_of(whole);
                Ppm::new(from.get() + part.of(u64::from(to.get() - from.get())) as u32)
            }
        }
    }

    fn step(&mut self, task: TaskId, life: u64) {
        let Some(attempt) = self.attempts.get_mut(&task).filter(|a| a.life == life) else { return };
        let vm = attempt.vm;
        let (_, stretch) = attempt.left.pop_front().unwrap();
        let leaving = attempt.leaving;
        if let Stretch::Write(done) = stretch {
            self.done[task.get() as usize] = done;
            if leaving {
                self.end_attempt(task);
                return self.notices.push_back(Notice::TaskStopped { task, vm, done });
            }
            self.notices.push_back(Notice::Checkpointed { task, vm, done });
        }
        if self.attempts[&task].left.is_empty() {
            self.end_attempt(task);
            self.finished[task.get() as usize] = true;
            self.outcome.makespan = self.now;
            return self.notices.push_back(Notice::TaskFinished { task, vm });
        }
        self.go_on(task);
    }

    fn end_attempt(&mut self, task: TaskId) -> VmId {
        let vm = self.attempts[&task].vm;
        self.settle_account(vm);
        self.attempts.remove(&task);
        vm
    }

    fn open_account(&mut self, vm: VmId) {
        let kind = self.catalogue.get(&self.provider.vm(vm).unwrap().kind).unwrap();
        if let Some(burstable) = kind.burstable {
            self.accounts.insert(vm, Account { balance: burstable.initial, at: self.now });
        }
    }

    /// Books what a burstable VM earned and spent, before its use changes.
    fn settle_account(&mut self, vm: VmId) {
        let Some(account) = self.accounts.get_mut(&vm) else { return };
        let kind = self.catalogue.get(&self.provider.vm(vm).unwrap().kind).unwrap();
        let burstable = kind.burstable.unwrap();
        let time = self.now.since(account.at);
        let hourly = u128::from(burstable.earned_per_hour.as_vcpu_micros());
        let earned = (hourly * u128::from(time.as_micros()) / 3_600_000_000) as u64;
        let running = self.attempts.values().filter(|a| a.vm == vm);
        let spent = running.map(|a| match a.mode {
            Mode::Burst => time.as_micros(),
            Mode::Baseline => time.part(burstable.baseline).as_micros(),
        });
        let spent: u64 = spent.sum();
        let full = account.balance + Credits::from_vcpu_micros(earned);
        let bursting = self.attempts.values().any(|a| a.vm == vm && a.mode == Mode::Burst);
        assert!(
            self.trouble.careless || !bursting || full.as_vcpu_micros() >= spent,
            "{vm} bursts without credits"
        );
        account.balance = full.saturating_sub(Credits::from_vcpu_micros(spent)).min(burstable.cap);
        account.at = self.now;
        self.notices.push_back(Notice::Credits { vm, balance: account.balance });
    }
}
