//! The owner of a VM: takes what comes one after the other.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{
    CreateVm, MoveTask, SetMode, SetSupply, StartTask, StopTask, TaskRef, VmRef, report,
};
use dormouse_units::{Bytes, Credits, Ppm, Time};
use dormouse_vm::{
    CreditSpec, MachineSpec, Model,
    life::{Effect, Event, LaunchError, Limits, Lives, Seat},
};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::spawn_blocking,
    time::sleep_until,
};

use super::{
    attempt::Attempt,
    clock::{Asked, VmClock},
    job::{self, Leaving, Pace},
    lane::Lane,
    launches::Born,
    task::Share,
};
use crate::{
    agent::{
        gate::Gate,
        host::{Host, limit},
        report::{Key, explain, report, vm_destroyed, vm_failed},
        snapshot::{Snapshot, SnapshotError},
    },
    cgroup,
    process::Task,
};

/// What a VM is asked to do.
#[derive(Debug)]
pub(crate) enum Ask {
    Freeze,
    Thaw,
    Destroy,
    Start(Box<StartTask>),
    Stop(StopTask),
    SetMode(SetMode),
    SetSupply(SetSupply),
    Promote(TaskRef),
    Move(MoveTask),
    CheckpointNow(TaskRef),
}

/// What comes to an owner: commands, and what its threads have done.
#[derive(Debug)]
pub(crate) enum Message {
    Ask(Ask, Asked),
    Launched(Key, Result<Born, LaunchError>),
    /// The process has ended.
    Ended(Key),
    /// It is this attempt's turn at CRIU.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<Snapshot, SnapshotError>),
    /// The coordinator has the checkpoint of this number (its size), or has not.
    Stored(Key, u32, Result<u64, String>),
    /// A job is to go on elsewhere.
    Left(Key, Leaving),
}

impl Message {
    pub(crate) fn ask(ask: Ask) -> Self {
        Self::Ask(ask, Asked::now())
    }
}

/// One VM.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) host: Arc<Host>,
    pub(crate) id: u32,
    /// Every vCPU has a background beside its foreground.
    pub(crate) two_tier: bool,
    /// The share of a host core that a vCPU is, where jobs may run.
    pub(crate) core_ppm: Option<u32>,
    /// What should be of tasks of one process: who sits where, and how far each should be by now.
    pub(crate) model: Model,
    /// What should be of jobs.
    pub(crate) pace: Pace,
    pub(crate) clock: VmClock,
    pub(crate) groups: Arc<cgroup::Vm>,
    pub(crate) lanes: Vec<Lane>,
    /// Where each attempt is in its life, and who really is where.
    pub(crate) lives: Lives,
    /// When it was made.
    pub(crate) made: Instant,
    /// What the lives want done, in this order.
    pub(crate) to_do: VecDeque<Effect>,
    /// What is to be done before that: what is being done has led to it.
    pub(crate) fresh: Vec<Effect>,
    pub(crate) is_doing: bool,
    /// In the order they came.
    pub(crate) attempts: Vec<Attempt>,
    /// Of the threads at work on it.
    pub(crate) gate: Arc<Gate>,
    /// What was asked after a freeze that waits for CRIU to let a task go.
    queue: VecDeque<(Ask, Asked)>,
    /// When what is obeyed was asked.
    pub(crate) commanded: Asked,
    /// Processes that were killed with the VM.
    pub(crate) dead: Vec<Arc<Task>>,
    /// To itself.
    pub(crate) tell: mpsc::UnboundedSender<Message>,
    /// Of the attempts that are over.
    pub(crate) share: Share,
    pub(crate) frozen_at: Option<Instant>,
    failed: bool,
    is_destroyed: bool,
}

/// Creates the VM and owns it until it is destroyed.
pub(crate) async fn own(
    host: Arc<Host>,
    create: CreateVm,
    asked: Asked,
    tell: mpsc::UnboundedSender<Message>,
    mut inbox: mpsc::UnboundedReceiver<Message>,
) {
    let id = create.vm;
    match Owner::create(&host, &create, &asked, tell).await {
        Ok(mut owner) => {
            host.report(report(report::Report::VmCreated(VmRef { vm: id })));
            owner.live(&mut inbox).await;
        }
        Err(why) => {
            host.report(vm_failed(id, why));
            // Until it is destroyed there is nobody to run anything.
            while let Some(message) = inbox.recv().await {
                match message {
                    Message::Ask(Ask::Destroy, _) => break,
                    Message::Ask(Ask::Start(start), _) => {
                        let why = "the VM could not be created".to_owned();
                        host.report(crate::agent::life::refused(&start, why));
                    }
                    _ => {}
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
        asked: &Asked,
        tell: mpsc::UnboundedSender<Message>,
    ) -> Result<Self, String> {
        let (id, vcpus, memory) = (create.vm, create.vcpus, create.memory_bytes);
        let core_ppm = create.core_ppm;
        if vcpus == 0 || core_ppm == Some(0) {
            return Err("a VM has vCPUs, and they some of a core".to_owned());
        }
        let made = {
            let host = Arc::clone(host);
            spawn_blocking(move || {
                let tree = &host.prepared.tree;
                match core_ppm {
                    None => tree.create_vm(u64::from(id), vcpus, memory),
                    Some(core_ppm) => job::create_groups(tree, id, vcpus, memory, core_ppm),
                }
            })
            .await
        };
        let groups = made.map_err(|e| explain(&e))?.map_err(|e| explain(&e))?;
        let credits = create.burstable.map(|b| CreditSpec {
            baseline: Ppm::new(b.baseline_ppm),
            earned_per_hour: Credits::from_vcpu_micros(b.emulated_earned_us_per_hour),
            initial: Credits::from_vcpu_micros(b.emulated_initial_us),
            cap: Credits::from_vcpu_micros(b.emulated_cap_us),
        });
        let spec = MachineSpec { vcpus, memory: Bytes::new(memory.unwrap_or(u64::MAX)), credits };
        Ok(Self {
            host: Arc::clone(host),
            id,
            two_tier: create.two_tier,
            core_ppm,
            model: Model::new(Time::ZERO, spec),
            pace: Pace::new(host.dilation.emulated_us_per_second()),
            clock: VmClock::new(host.dilation, asked),
            groups: Arc::new(groups),
            lanes: (0..vcpus).map(|_| Lane::default()).collect(),
            lives: Lives::new(
                vcpus,
                Limits { kill: limit::KILL, checkpoints: host.checkpointer.is_some() },
            ),
            made: Instant::now(),
            to_do: VecDeque::new(),
            fresh: Vec::new(),
            is_doing: false,
            attempts: Vec::new(),
            gate: Gate::new(),
            queue: VecDeque::new(),
            commanded: *asked,
            dead: Vec::new(),
            tell,
            share: Share::default(),
            frozen_at: None,
            failed: false,
            is_destroyed: false,
        })
    }

    /// Lives until it has been destroyed and nothing is left of it.
    async fn live(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        while !self.lives.is_over() {
            let wake = self.next_wake().map(tokio::time::Instant::from_std);
            let message = tokio::select! {
                // What should be is not to go on past a command that has come.
                biased;
                message = inbox.recv() => message,
                () = async { sleep_until(wake.unwrap_or_else(tokio::time::Instant::now)).await },
                    if wake.is_some() =>
                {
                    self.on_time();
                    continue;
                }
            };
            match message {
                None if self.is_destroyed => return,
                Some(Message::Ask(Ask::Destroy, _)) | None => {
                    self.is_destroyed = true;
                    self.queue.clear();
                    self.happen(Event::Destroy);
                }
                Some(Message::Ask(..)) if self.is_destroyed => {}
                Some(Message::Ask(ask, asked)) => self.queue.push_back((ask, asked)),
                Some(Message::Launched(key, result)) => self.hear_launched(key, result),
                Some(Message::Ended(key)) => self.happen(Event::ProcessEnded(key)),
                Some(Message::DumpTurn(key, permit)) => self.take_turn(key, permit),
                Some(Message::Dumped(key, result)) => self.hear_dumped(key, result),
                Some(Message::Stored(key, number, result)) => self.hear_stored(key, number, result),
                Some(Message::Left(key, left)) => self.hear_left(key, left),
            }
            self.work_off().await;
        }
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.model.machine().is_frozen()
    }

    /// Does what is to be done, and obeys what can be obeyed now, in order.
    async fn work_off(&mut self) {
        self.do_all().await;
        while self.lives.is_ready()
            && let Some((ask, asked)) = self.queue.pop_front()
        {
            self.commanded = asked;
            match ask {
                Ask::Freeze => self.happen(Event::Freeze),
                Ask::Thaw => self.happen(Event::Thaw),
                Ask::Start(start) => self.start(*start, &asked),
                Ask::Stop(stop) => self.obey_stop(stop, &asked),
                Ask::SetMode(set) => self.set_mode(set),
                Ask::SetSupply(set) => self.set_supply(set, &asked),
                Ask::Promote(of) => self.obey_promote(of, &asked),
                Ask::Move(to) => self.obey_move(to, &asked),
                Ask::CheckpointNow(of) => self.checkpoint_now(of),
                // It does not wait for its turn.
                Ask::Destroy => {}
            }
            self.do_all().await;
            // What is over may be due sooner now.
            self.conclude_early(Instant::now());
            self.do_all().await;
        }
    }

    /// The next moment at which something is due by itself.
    fn next_wake(&mut self) -> Option<Instant> {
        if self.is_frozen() || self.is_destroyed {
            return None;
        }
        let model = self.model_wakes_at();
        let lives = &self.lives;
        let looks = self.attempts.iter().filter(|a| lives.is_running(a.key));
        let looks = looks.filter_map(|a| a.look);
        looks.chain(model).chain(self.lives_wake_at()).chain(self.jobs_wake_at()).min()
    }

    fn on_time(&mut self) {
        self.let_happen();
        let now = Instant::now();
        self.happen(Event::Tick);
        let all: Vec<Key> = self.attempts.iter().map(|a| a.key).collect();
        for key in all {
            let Some(attempt) = self.seen(key) else { continue };
            if self.lives.is_running(key) && attempt.look.is_some_and(|at| at <= now) {
                self.look(key);
            }
        }
        self.see_to_jobs(now);
    }

    pub(crate) fn attempt(&mut self, key: Key) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|a| a.key == key)
    }

    /// An attempt, to look at.
    pub(crate) fn seen(&self, key: Key) -> Option<&Attempt> {
        self.attempts.iter().find(|a| a.key == key)
    }

    /// Where the processes of an attempt are, wherever it is to go.
    pub(crate) fn seats_of(&self, key: Key) -> Vec<Seat> {
        self.lives.slots().all_of(key)
    }

    pub(crate) fn vcpus(&self) -> u32 {
        u32::try_from(self.lanes.len()).unwrap_or(u32::MAX)
    }

    /// The VM cannot go on; the coordinator will have it destroyed.
    pub(crate) fn fail(&mut self, error: &dyn std::error::Error) {
        self.broken(&explain(error));
    }

    /// A group that can't be set any more: there is no VM.
    pub(crate) fn note(&mut self, set: cgroup::Result<()>) {
        if let Err(error) = set {
            self.fail(&error);
        }
    }

    /// See [`Self::fail`].
    pub(crate) fn broken(&mut self, why: &str) {
        tracing::error!(vm = self.id, why, "the VM has failed");
        if !std::mem::replace(&mut self.failed, true) {
            self.host.report(vm_failed(self.id, why));
        }
    }

    /// How long it stands still so far in this freeze.
    pub(crate) fn frozen_for(&self, now: Instant) -> Duration {
        self.frozen_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }
}
