//! A run under a virtual clock: the same engine and the same VM state machine,
//! with modelled machines and no waiting.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use dormouse_cloud::{Burstable, Host};
use dormouse_engine::{Command, Event, Report, Run, StartTask, Step};
use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Ppm, TaskId, Time, VmId};
use dormouse_vm::{CreditSpec, Hold, MachineSpec, Mode, Model, Tier, Work, WorkEvent};

/// A host that holds whatever the provider's limits allow.
pub const BOUNDLESS: Host = Host { vcpus: u32::MAX, memory: Bytes::new(u64::MAX) };

/// Why a virtual run ended without finishing its tasks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StuckError {
    /// Nothing will ever happen again.
    #[error("{unfinished} tasks are left and nothing will ever happen again")]
    Stuck {
        /// Tasks left.
        unfinished: usize,
    },
    /// It went on for longer than any sensible run.
    #[error("{unfinished} tasks are left at the time limit of {limit}")]
    Limit {
        /// Tasks left.
        unfinished: usize,
        /// The limit.
        limit: Time,
    },
}

/// What a run of the model begins with: these hosts join, and it begins.
#[must_use]
pub fn beginning(hosts: &[Host]) -> Vec<(Time, Event)> {
    let join = |(n, &offer): (u32, &Host)| {
        let (host, name) = (HostId::new(n), format!("model-{n}"));
        (Time::ZERO, Event::HostJoined { host, name, offer })
    };
    (0..).zip(hosts).map(join).chain([(Time::ZERO, Event::Begin)]).collect()
}

/// Plays a run to its end. What comes from outside and not from machines (hosts, the beginning,
/// the user's end) is in `outside`, in order of time: among equals it comes first, but the user's
/// end last. `see` is shown every step as it is made.
///
/// # Errors
///
/// The run ended with tasks left; it was cancelled then, and its log says why.
pub fn play(
    run: &mut Run,
    outside: Vec<(Time, Event)>,
    limit: Time,
    mut see: impl FnMut(&Step),
) -> Result<(), StuckError> {
    let mut world = World::default();
    let mut outside = outside.into_iter().peekable();
    loop {
        while let Some((now, event)) = world.reports.pop() {
            world.feed(run, now, event, &mut see);
        }
        if run.over().is_some() {
            return Ok(());
        }
        let next = world.next(run);
        let is_due = |at: Time, event: &Event| match (&next, event) {
            (None, _) => true,
            (Some(next), Event::Cancel { .. }) => at < next.at,
            (Some(next), _) => at <= next.at,
        };
        if let Some((at, event)) = outside.next_if(|(at, event)| is_due(*at, event)) {
            let now = at.max(world.now);
            world.feed(run, now, event, &mut see);
            continue;
        }
        let unfinished = run.unfinished();
        let nothing_more = outside.peek().is_none();
        let failed = match next {
            None => StuckError::Stuck { unfinished },
            Some(_) if nothing_more && run.is_stuck() && world.is_idle() => {
                StuckError::Stuck { unfinished }
            }
            Some(Next { at, .. }) if at > limit => StuckError::Limit { unfinished, limit },
            Some(Next { at, vm: None }) => {
                world.feed(run, at, Event::Tick, &mut see);
                continue;
            }
            Some(Next { at, vm: Some(vm) }) => {
                world.step(at, vm);
                continue;
            }
        };
        let why = failed.to_string();
        let now = world.now;
        world.feed(run, now, Event::Cancel { why }, &mut see);
        return Err(failed);
    }
}

/// What happens next, and where: on a VM, or in the run itself.
struct Next {
    at: Time,
    vm: Option<VmId>,
}

/// All modelled machines and what they have yet to report.
#[derive(Default)]
struct World {
    now: Time,
    vms: BTreeMap<VmId, (HostId, Model)>,
    /// When each VM has something to do; entries may be out of date.
    agenda: BinaryHeap<Reverse<(Time, VmId)>>,
    reports: Reports,
    checkpoints: BTreeMap<TaskId, CheckpointSeq>,
}

/// Reports to be fed, in order of time and of making.
#[derive(Default)]
struct Reports(std::collections::VecDeque<(Time, Event)>);

impl Reports {
    fn push(&mut self, now: Time, host: HostId, report: Report) {
        self.0.push_back((now, Event::Machine { host, number: 0, report }));
    }

    fn pop(&mut self) -> Option<(Time, Event)> {
        self.0.pop_front()
    }
}

impl World {
    fn feed(&mut self, run: &mut Run, now: Time, event: Event, see: &mut impl FnMut(&Step)) {
        self.now = now;
        if let Event::HostLost { host: lost, .. } = &event {
            self.vms.retain(|_, (host, _)| host != lost);
        }
        let (step, commands) = run.handle(now, event);
        see(&step);
        for command in commands {
            self.obey(now, command);
        }
    }

    fn is_idle(&self) -> bool {
        self.vms.values().all(|(_, model)| model.machine().seats().is_empty())
    }

    /// The earliest of the run's own wake-up and the VMs' events; the run's first among equals.
    fn next(&mut self, run: &Run) -> Option<Next> {
        let vm = loop {
            let Some(&Reverse((at, vm))) = self.agenda.peek() else { break None };
            let real = self.vms.get(&vm).and_then(|(_, model)| model.next_at());
            if real == Some(at) {
                break Some(Next { at, vm: Some(vm) });
            }
            self.agenda.pop();
        };
        let own = run.next_wakeup().map(|at| Next { at: at.max(self.now), vm: None });
        match (own, vm) {
            (Some(own), Some(vm)) => Some(if vm.at < own.at { vm } else { own }),
            (own, vm) => own.or(vm),
        }
    }

    /// Lets a VM do what it has to do at `now`.
    fn step(&mut self, now: Time, vm: VmId) {
        self.now = now;
        let Some((host, model)) = self.vms.get_mut(&vm) else { return };
        let host = *host;
        let before = model.machine().seats().to_vec();
        for event in model.step(now) {
            let report = match event {
                // Nobody tells a modelled task when to stand still.
                WorkEvent::Due { .. } => continue,
                WorkEvent::Finished { task, attempt } => {
                    model.stop(now, task, attempt);
                    Report::TaskFinished { vm, task, attempt, verified: true, real_cpu_us: 0 }
                }
                WorkEvent::Checkpointed { task, attempt, done } => {
                    let seq = self.checkpoints.entry(task).or_default();
                    *seq = seq.next();
                    let memory = before
                        .iter()
                        .find(|s| s.task == task && s.attempt == attempt)
                        .map_or(Bytes::ZERO, |s| s.memory);
                    Report::CheckpointTaken {
                        vm,
                        task,
                        attempt,
                        checkpoint: *seq,
                        done,
                        bytes: memory,
                        real_held_us: 0,
                        real_dump_us: 0,
                        real_owed_us: 0,
                        real_criu_us: 0,
                    }
                }
                WorkEvent::CreditsTurned(balance) => Report::Credits { vm, balance },
            };
            self.reports.push(now, host, report);
        }
        self.after_change(now, vm);
    }

    /// Reports the credits of a burstable VM whose use changed, and looks at what it does next.
    fn after_change(&mut self, now: Time, vm: VmId) {
        let Some((host, model)) = self.vms.get(&vm) else { return };
        if let Some(balance) = model.machine().credits() {
            self.reports.push(now, *host, Report::Credits { vm, balance });
        }
        if let Some(at) = model.next_at() {
            self.agenda.push(Reverse((at, vm)));
        }
    }

    fn obey(&mut self, now: Time, command: Command) {
        match command {
            Command::CreateVm { host, vm, vcpus, memory, burstable, .. } => {
                let credits = burstable.map(credit_spec);
                let model = Model::new(now, MachineSpec { vcpus, memory, credits });
                self.vms.insert(vm, (host, model));
                self.reports.push(now, host, Report::VmCreated { vm });
            }
            Command::DestroyVm { host, vm } => {
                self.vms.remove(&vm);
                self.reports.push(now, host, Report::VmDestroyed { vm });
            }
            Command::FreezeVm { host, vm } => {
                if let Some((_, model)) = self.vms.get_mut(&vm) {
                    model.freeze(now);
                    self.reports.push(now, host, Report::VmFrozen { vm, real_took_us: 0 });
                }
            }
            Command::ThawVm { host, vm } => {
                if let Some((_, model)) = self.vms.get_mut(&vm) {
                    model.thaw(now);
                    self.reports.push(now, host, Report::VmThawed { vm, real_took_us: 0 });
                    self.after_change(now, vm);
                }
            }
            Command::StartTask(start) => self.start(now, &start),
            Command::StopTask { host, vm, task, attempt, keep } => {
                self.stop(now, host, vm, task, attempt, keep);
            }
            Command::SetMode { vm, task, attempt, mode, .. } => {
                if let Some((_, model)) = self.vms.get_mut(&vm) {
                    model.set_mode(now, task, attempt, vm_mode(mode));
                    self.after_change(now, vm);
                }
            }
        }
    }

    fn start(&mut self, now: Time, start: &StartTask) {
        let StartTask { host, vm, task, attempt, .. } = *start;
        let Some((_, model)) = self.vms.get_mut(&vm) else { return };
        let done = start.from.map(|(_, done)| done).unwrap_or_default();
        let plan = start.checkpoints;
        let work = Work {
            task,
            attempt,
            memory: start.memory,
            runtime: start.runtime,
            done,
            mode: vm_mode(start.mode),
            tier: Tier::Foreground,
            checkpoints: (1..=plan.count).filter_map(|k| plan.due(k)).collect(),
            checkpoint_cost: plan.cost,
            hold: Hold::WhenDue,
        };
        let report = match model.start(now, &work) {
            Ok(_) => Report::TaskStarted { vm, task, attempt, done, real_took_us: 0 },
            Err(no) => {
                Report::TaskFailed { vm, task, attempt, why: no.to_string(), real_cpu_us: 0 }
            }
        };
        self.reports.push(now, host, report);
        self.after_change(now, vm);
    }

    /// A model stops a task without taking time for a checkpoint: the policies that are
    /// modelled here stop tasks of running VMs only to go on elsewhere, which costs them there.
    fn stop(
        &mut self,
        now: Time,
        host: HostId,
        vm: VmId,
        task: TaskId,
        attempt: Attempt,
        keep: bool,
    ) {
        let Some((_, model)) = self.vms.get_mut(&vm) else { return };
        let Some(done) = model.stop(now, task, attempt) else { return };
        let kept = keep.then(|| {
            let seq = self.checkpoints.entry(task).or_default();
            *seq = seq.next();
            (*seq, done)
        });
        let kept: Option<(CheckpointSeq, Ppm)> = kept;
        self.reports.push(
            now,
            host,
            Report::TaskStopped { vm, task, attempt, kept, real_cpu_us: 0 },
        );
        self.after_change(now, vm);
    }
}

fn vm_mode(mode: dormouse_policies::Mode) -> Mode {
    match mode {
        dormouse_policies::Mode::Burst => Mode::Burst,
        dormouse_policies::Mode::Baseline => Mode::Baseline,
    }
}

fn credit_spec(b: Burstable) -> CreditSpec {
    CreditSpec {
        baseline: b.baseline,
        earned_per_hour: b.earned_per_hour,
        initial: b.initial,
        cap: b.cap,
    }
}
