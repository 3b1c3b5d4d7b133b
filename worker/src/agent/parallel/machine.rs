//! The owner of a machine: takes what comes one after the other.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    CreateVm, MoveTask, Plan, StartTask, TaskMoved, TaskPromoted, TaskRef, TaskStarted, VmRef,
    report,
};
use dormouse_tasks::ideal::{self, Change};
use tokio::{sync::mpsc, task::spawn_blocking, time::timeout};

use super::{
    birth::{self, Birth, Order},
    departures::Left,
    job::{Job, Key, Later, Phase, Tier},
    ledger::Ledger,
    meter::Meter,
    pace::{Owed, Pace, Quotas},
    ranks,
    seats::{Seat, Seats},
};
use crate::{
    agent::{
        destroy, fault,
        gate::Gate,
        host::{Host, limit, tick},
        report::{explain, key, micros, report, task, vm_destroyed, vm_failed},
        threads::{outcome, urgent},
        vm::Asked,
        watch::watch,
    },
    cgroup::{self, Slot},
};

/// How often the processes' doings are counted: what one does after the last time before its
/// end is not.
const COUNT_EVERY: Duration = Duration::from_millis(250);

/// How often every job is compared with what it should have done.
const PACE_EVERY: Duration = Duration::from_millis(25);

/// The period of a processor's quota, in microseconds, or the shortest that its share allows.
///
/// A process that wakes has the quota of a whole period at once where it is alone, and waits for
/// the next period where its neighbour has used up this one: the longer a period, the more the
/// speed of a processor differs from its share, and the more the foreground loses.
const PERIOD_US: u64 = 5_000;

/// What a machine is asked to do.
#[derive(Debug)]
pub(crate) enum Ask {
    Start(Box<StartTask>),
    Promote(TaskRef),
    Move(MoveTask),
    Kill(Key),
    Destroy,
}

/// What comes to an owner: commands, and what its threads have done.
#[derive(Debug)]
pub(crate) enum Message {
    Ask(Ask, Asked),
    Launched(Key, Result<Birth, String>),
    /// The job's parent has ended.
    Ended(Key),
    Left(Key, Left),
}

/// One machine.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) host: Arc<Host>,
    pub(crate) id: u32,
    pub(crate) groups: Arc<cgroup::Vm>,
    /// Of the threads at work on it.
    pub(crate) gate: Arc<Gate>,
    cores: Arc<Vec<usize>>,
    processors: u32,
    /// The share of a host core that a processor is.
    pub(crate) core_ppm: u32,
    /// Of the kernel's clock.
    pub(crate) tick: Duration,
    pub(crate) seats: Seats,
    /// In the order they came.
    pub(crate) jobs: Vec<Job>,
    pub(crate) pace: Pace,
    /// To itself.
    pub(crate) tell: mpsc::UnboundedSender<Message>,
    /// It is to go.
    destroy: bool,
    failed: bool,
}

/// Creates the machine and owns it until it is destroyed.
pub(crate) async fn own(
    host: Arc<Host>,
    create: CreateVm,
    tell: mpsc::UnboundedSender<Message>,
    mut inbox: mpsc::UnboundedReceiver<Message>,
) {
    let id = create.vm;
    match Owner::create(&host, &create, tell).await {
        Ok(mut owner) => {
            host.report(report(report::Report::VmCreated(VmRef { vm: id })));
            owner.live(&mut inbox).await;
            owner.destroy(&mut inbox).await;
        }
        Err(why) => {
            host.report(vm_failed(id, why));
            // Until it is destroyed there is nobody to run anything.
            while let Some(message) = inbox.recv().await {
                if matches!(message, Message::Ask(Ask::Destroy, _)) {
                    break;
                }
            }
            host.report(vm_destroyed(id));
        }
    }
}

impl Owner {
    async fn create(
        host: &Arc<Host>,
        create: &CreateVm,
        tell: mpsc::UnboundedSender<Message>,
    ) -> Result<Self, String> {
        let (id, processors, core_ppm) = (create.vm, create.vcpus, create.core_ppm.unwrap_or(0));
        if processors == 0 || core_ppm == 0 {
            return Err("a VM has vCPUs, and they some of a core".to_owned());
        }
        let cores = ranks::cores().map_err(|e| explain(&e))?;
        let made = {
            let host = Arc::clone(host);
            spawn_blocking(move || {
                // One more for the jobs' parents, without a quota: they only wait.
                let groups = host.prepared.tree.create_vm(u64::from(id), processors + 1, None)?;
                let groups = groups.with_period(PERIOD_US);
                (0..processors).try_for_each(|p| groups.set_quota(p, Some(core_ppm)))?;
                Ok::<_, cgroup::Error>(groups)
            })
            .await
        };
        let groups = made.map_err(|e| explain(&e))?.map_err(|e| explain(&e))?;
        Ok(Self {
            host: Arc::clone(host),
            id,
            groups: Arc::new(groups),
            gate: Gate::new(),
            cores: Arc::new(cores),
            processors,
            core_ppm,
            tick: tick(),
            seats: Seats::new(processors),
            jobs: Vec::new(),
            pace: Pace::new(host.dilation.emulated_us_per_second()),
            tell,
            destroy: false,
            failed: false,
        })
    }

    /// Lives until it is to be destroyed.
    async fn live(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        let mut count_at = Instant::now() + COUNT_EVERY;
        let mut pace_at = Instant::now() + PACE_EVERY;
        loop {
            // The reference is not to go on past a command that has come.
            while !self.destroy
                && let Ok(message) = inbox.try_recv()
            {
                self.hear(message).await;
            }
            if self.destroy {
                return;
            }
            let now = Instant::now();
            if now >= pace_at {
                self.pay(now);
                self.conclude_early(now);
                pace_at = now + PACE_EVERY;
            }
            if now >= count_at {
                self.turn_meters();
                count_at = now + COUNT_EVERY;
            }
            let left = pace_at.min(count_at).saturating_duration_since(Instant::now());
            match timeout(left, inbox.recv()).await {
                Err(_) => {}
                Ok(None) => return,
                Ok(Some(message)) => self.hear(message).await,
            }
        }
    }

    async fn hear(&mut self, message: Message) {
        match message {
            Message::Ask(ask, asked) => self.obey(ask, asked).await,
            Message::Launched(key, born) => self.launched(key, born),
            Message::Ended(key) => self.ended(key),
            Message::Left(key, left) => self.left(key, left),
        }
    }

    async fn obey(&mut self, ask: Ask, asked: Asked) {
        match ask {
            Ask::Start(start) => self.start(*start, &asked),
            Ask::Promote(of) => {
                let (key, at) = (key(Some(of)), self.pace.decided(&asked));
                self.pace.change(at, Change::Promote(key));
                self.promote(key, asked.decided()).await;
            }
            Ask::Move(MoveTask { task, vcpus: on }) => {
                let (key, at) = (key(task), self.pace.decided(&asked));
                if self.seats.are_valid(&on) {
                    self.pace.change(at, Change::Stand(key));
                    if let Some(job) = self.job(key) {
                        job.left_at = at;
                    }
                    self.move_to(key, on, asked.decided());
                } else {
                    let why = self.no_place(&on);
                    self.broken(&why);
                }
            }
            Ask::Kill(key) => {
                let at = self.pace.decided(&asked);
                self.pace.change(at, Change::Kill(key));
                self.kill(key);
            }
            Ask::Destroy => self.destroy = true,
        }
        // What is over may be due sooner now.
        self.conclude_early(Instant::now());
    }

    fn start(&mut self, start: StartTask, asked: &Asked) {
        let seats = start.seats.unwrap_or_default();
        let tier = match seats.tier() {
            dormouse_proto::v1::Tier::Foreground => Tier::Foreground,
            dormouse_proto::v1::Tier::Background => Tier::Background,
        };
        let (key, at, on) = (key(start.task), self.pace.decided(asked), seats.vcpus);
        let name = self.host.task_name(key.0);
        let (Ok(name), true) = (name, self.seats.are_valid(&on)) else {
            return self.say_failed(key, self.no_place(&on));
        };
        let Some(program) = start.plan.and_then(|plan| program(plan, on.len())) else {
            let why = "a VM for parallel jobs runs nothing whose plan is none for its processes";
            return self.say_failed(key, why.to_owned());
        };
        let foreground = tier == Tier::Foreground;
        self.pace.change(at, Change::Start { key, program, on: on.clone(), foreground });
        self.jobs.push(Job {
            key,
            name,
            args: start.program.unwrap_or_default().args,
            asked: asked.decided(),
            on,
            tier,
            phase: Phase::Waiting,
            process: None,
            page: None,
            ranks: Vec::new(),
            meter: Meter::default(),
            ledger: Ledger::default(),
            moving: None,
            left_at: Duration::ZERO,
            later: None,
        });
        self.launch_ready();
    }

    /// Why a job can't be on these processors.
    fn no_place(&self, on: &[u32]) -> String {
        let last = self.processors - 1;
        format!("{on:?} are no processors for a job: there are 0 to {last}, each of them once")
    }

    /// Swaps the priorities of the two slots on each of the job's processors.
    async fn promote(&mut self, key: Key, asked: Instant) {
        let Some(job) = self.job(key) else { return };
        job.tier = Tier::Foreground;
        if job.phase == Phase::Waiting {
            return self.launch_ready();
        }
        match self.seats.promote(key) {
            Ok(turned) => {
                for (processor, slot) in turned {
                    // It may wait for a slot to be empty: not on a thread that others need.
                    let groups = Arc::clone(&self.groups);
                    match urgent(move || groups.promote(processor, slot, limit::KILL)).await {
                        Ok(promoted) => self.note(promoted),
                        Err(error) => self.broken(&explain(&error)),
                    }
                }
                self.turn_meters();
                let (task, real_took_us) = (task(self.id, key), micros(asked.elapsed()));
                let promoted = TaskPromoted { task, real_took_us };
                self.host.report(report(report::Report::TaskPromoted(promoted)));
            }
            Err(processor) => {
                let why = format!("the foreground of processor {processor} is somebody else's");
                self.broken(&why);
            }
        }
    }

    /// Begins the launch of every job whose slots are free.
    pub(crate) fn launch_ready(&mut self) {
        let waiting: Vec<Key> =
            self.jobs.iter().filter(|j| j.phase == Phase::Waiting).map(|j| j.key).collect();
        if self.destroy {
            return;
        }
        for key in waiting {
            let Some(job) = self.jobs.iter_mut().find(|job| job.key == key) else { continue };
            if !self.seats.are_free(&job.on, job.tier) {
                continue;
            }
            self.seats.take(key, &job.on, job.tier);
            let seats = self.seats.of(key, &job.on);
            job.ledger.come(charged_ns(&self.groups, &seats));
            job.phase = Phase::Launching;
            let order = Order {
                key,
                name: job.name.clone(),
                args: job.args.clone(),
                groups: Arc::clone(&self.groups),
                cores: Arc::clone(&self.cores),
                lane: self.processors,
                seats,
                restore: job.moving.as_ref().is_some_and(|moving| moving.lost.is_none()),
            };
            let launching = birth::launch(Arc::clone(&self.host), self.gate.pass(), order);
            let tell = self.tell.clone();
            tokio::spawn(async move {
                // The owner is gone only when the machine is.
                let _ = tell.send(Message::Launched(key, outcome(launching).await));
            });
        }
        self.turn_meters();
    }

    fn launched(&mut self, key: Key, born: Result<Birth, String>) {
        let whose = task(self.id, key);
        let Some(job) = self.job(key) else { return };
        let birth = match (born, &mut job.moving) {
            (Ok(birth), _) => birth,
            // The checkpoint is of no use: it begins again where it should go on.
            (Err(why), Some(moving)) if moving.lost.is_none() => {
                moving.lost = Some(why);
                job.phase = Phase::Waiting;
                self.seats.leave(key);
                return self.launch_ready();
            }
            (Err(why), _) => return self.fail_job(key, why),
        };
        job.phase = Phase::Running;
        job.ranks = birth.ranks;
        job.page = Some(birth.page);
        let process = Arc::new(birth.process);
        job.process = Some(Arc::clone(&process));
        let said = match job.moving.take() {
            Some(moving) => report::Report::TaskMoved(TaskMoved {
                task: whose,
                done_ppm: job.done_ppm(),
                lost: moving.lost,
                real_took_us: micros(birth.at.saturating_duration_since(moving.asked)),
                real_dump_us: micros(moving.dump),
                real_restore_us: micros(birth.restore),
                bytes: moving.bytes,
            }),
            None => {
                let real_took_us = micros(birth.at.saturating_duration_since(job.asked));
                let started = TaskStarted { task: whose, done_ppm: 0, real_took_us };
                report::Report::TaskStarted(started)
            }
        };
        let later = job.later.take();
        if let report::Report::TaskMoved(moved) = &said {
            // As the report has it: who counts from there comes to the same.
            let at = job.left_at + Duration::from_micros(moved.real_took_us);
            let (on, anew) = (job.on.clone(), moved.lost.is_some());
            self.pace.change(at, Change::GoOn { key, on, anew });
        }
        self.host.report(report(said));
        let tell = self.tell.clone();
        if let Err(error) = watch(&process, move || {
            let _ = tell.send(Message::Ended(key));
        }) {
            // Out of descriptors: nobody would notice its end.
            self.broken(&explain(&error));
        }
        self.turn_meters();
        match later {
            Some(Later::Kill) => self.kill(key),
            Some(Later::Move { on, asked }) => self.move_to(key, on, asked),
            None => {}
        }
    }

    pub(crate) fn job(&mut self, key: Key) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.key == key)
    }

    /// The quota of every processor.
    pub(crate) fn quota(&self) -> cgroup::CpuQuota {
        cgroup::CpuQuota::from_ppm(self.core_ppm, PERIOD_US)
    }

    /// Where a job's ranks are now.
    pub(crate) fn seats_of(&self, key: Key) -> Vec<Seat> {
        let on: Vec<u32> = (0..self.processors).collect();
        self.seats.of(key, &on)
    }

    /// Counts up to now what all processes did, and from now on in the situations of now.
    pub(crate) fn turn_meters(&mut self) {
        for job in self.jobs.iter_mut().filter(|job| job.phase == Phase::Running) {
            let seats = self.seats.of(job.key, &job.on);
            job.meter.turn(&job.ranks, &seats);
        }
    }

    /// Compares all jobs with what they should have done, and sets the quotas that make up for the
    /// difference.
    fn pay(&mut self, now: Instant) {
        let jobs = &self.jobs;
        self.pace.advance(now, |key| jobs.iter().all(|job| job.key != key));
        let mut owed = vec![Owed::default(); self.processors as usize];
        for job in self.jobs.iter_mut().filter(|job| job.phase == Phase::Running) {
            let done = self.pace.ideal.done(job.key);
            // Nobody says what it should do, or some of its processes had ended when it was moved.
            if done.is_empty() || done.len() != job.ranks.len() {
                continue;
            }
            let Some(Ok(work)) = job.page.as_ref().map(|page| page.work(done.len())) else {
                continue;
            };
            job.ledger.see(work);
            let behind = job.ledger.owed(&done, self.core_ppm);
            for (seat, ns) in self.seats.of(job.key, &job.on).iter().zip(behind) {
                let ns = self.pace.early(job.key, ns, self.core_ppm);
                if let Some(owed) = owed.get_mut(seat.processor as usize) {
                    match seat.tier {
                        Tier::Foreground => owed.foreground = Some(ns),
                        Tier::Background => owed.background = Some(ns),
                    }
                }
            }
        }
        self.play_fault(&owed);
        for (processor, owed) in (0..).zip(owed) {
            let quotas = Quotas::paying(owed, self.core_ppm);
            let set = self.set_quotas(processor, quotas);
            self.note(set);
        }
    }

    /// Does what a test may want: see [`fault`].
    fn play_fault(&self, owed: &[Owed]) {
        let busy = (0..).zip(owed).find(|(_, owed)| owed.foreground.is_some());
        let Some((processor, span)) = busy.and_then(|(p, _)| Some((p, fault::lifts_quota_for()?)))
        else {
            return;
        };
        let (groups, slot) = (Arc::clone(&self.groups), self.seats.foreground(processor));
        tokio::spawn(async move {
            let lifted = groups.lift_quota_on(processor, slot);
            tokio::time::sleep(span).await;
            let back = groups.put_back_quota(processor, slot);
            tracing::warn!(?lifted, ?back, processor, "its quota was lifted, as a test wants it");
        });
    }

    fn set_quotas(&self, processor: u32, quotas: Quotas) -> cgroup::Result<()> {
        let foreground = self.seats.foreground(processor);
        let slots = match foreground {
            Slot::A => [quotas.foreground, quotas.background],
            Slot::B => [quotas.background, quotas.foreground],
        };
        self.groups.set_quotas(processor, quotas.processor, slots)
    }

    /// A group that can't be set any more: the machine is none.
    pub(crate) fn note(&mut self, set: cgroup::Result<()>) {
        if let Err(error) = set {
            self.broken(&explain(&error));
        }
    }

    fn broken(&mut self, why: &str) {
        tracing::error!(machine = self.id, why, "the machine has failed");
        if !std::mem::replace(&mut self.failed, true) {
            self.host.report(vm_failed(self.id, why));
        }
    }

    /// Kills all that runs, whatever is being done to it, and says so; what is left behind is
    /// cleared up after that.
    async fn destroy(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        self.gate.end();
        destroy::kill_everything(self.id, &self.groups, &self.gate).await;
        self.host.report(vm_destroyed(self.id));
        let mut processes: Vec<_> =
            self.jobs.iter().filter_map(|job| job.process.clone()).collect();
        // The threads at work on it come to their ends, since there is nothing left to work on.
        while self.jobs.iter().any(Job::is_busy) {
            let key = match inbox.recv().await {
                Some(Message::Launched(key, born)) => {
                    processes.extend(born.ok().map(|birth| Arc::new(birth.process)));
                    key
                }
                Some(Message::Left(key, _)) => key,
                Some(_) => continue,
                None => break,
            };
            self.jobs.retain(|job| job.key != key);
        }
        destroy::remove_groups(self.id, &self.groups, processes).await;
    }
}

/// What the counters of these slots show, in all. One that can't be read shows nothing: what its
/// processes are charged beside their work is told and not judged.
pub(crate) fn charged_ns(groups: &cgroup::Vm, seats: &[Seat]) -> u64 {
    seats.iter().filter_map(|seat| groups.slot_cpu_ns(seat.processor, seat.slot).ok()).sum()
}

/// A plan in the words of the reference, if it is one for so many processes.
fn program(plan: Plan, processes: usize) -> Option<ideal::Program> {
    let Plan { real_runtime_us, phases, usage_ppm: usage } = plan;
    let runtime = Duration::from_micros(real_runtime_us);
    let is_plan = usage.len() == processes && phases > 0 && usage.iter().all(|u| *u > 0);
    is_plan.then_some(ideal::Program { runtime, phases, usage })
}
