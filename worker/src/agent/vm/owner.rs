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
use dormouse_vm::{CreditSpec, MachineSpec, Model};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::spawn_blocking,
    time::sleep_until,
};

use super::{
    attempt::{Attempt, Phase},
    clock::{Asked, VmClock},
    job::{self, Left, Pace},
    lane::Lane,
    launches::Born,
    slots::{Seat, Slots},
    task::Share,
};
use crate::{
    agent::{
        gate::Gate,
        host::Host,
        report::{Key, explain, report, vm_destroyed, vm_failed},
        snapshot::{Snapshot, SnapshotError},
    },
    cgroup,
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
    Launched(Key, Result<Born, String>),
    /// The process has ended.
    Ended(Key),
    /// It is this attempt's turn at CRIU.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<Snapshot, SnapshotError>),
    /// The coordinator has the checkpoint of this number (its size), or has not.
    Stored(Key, u32, Result<u64, String>),
    /// A job is to go on elsewhere.
    Left(Key, Left),
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
    /// Who really is where.
    pub(crate) slots: Slots,
    /// In the order they came.
    pub(crate) attempts: Vec<Attempt>,
    /// Of the threads at work on it.
    pub(crate) gate: Arc<Gate>,
    /// A freeze that waits for CRIU to let a task go, and what was asked after it.
    queue: VecDeque<(Ask, Asked)>,
    /// Launches that came to their end while it was frozen: heard at the thaw.
    pub(crate) held: Vec<(Key, Result<Born, String>)>,
    /// To itself.
    pub(crate) tell: mpsc::UnboundedSender<Message>,
    /// Of the attempts that are over.
    pub(crate) share: Share,
    pub(crate) frozen_at: Option<Instant>,
    failed: bool,
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
            owner.destroy(&mut inbox).await;
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
            slots: Slots::new(vcpus),
            attempts: Vec::new(),
            gate: Gate::new(),
            queue: VecDeque::new(),
            held: Vec::new(),
            tell,
            share: Share::default(),
            frozen_at: None,
            failed: false,
        })
    }

    /// Lives until it is to be destroyed.
    async fn live(&mut self, inbox: &mut mpsc::UnboundedReceiver<Message>) {
        loop {
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
                Some(Message::Ask(Ask::Destroy, _)) | None => return,
                Some(Message::Ask(ask, asked)) => self.queue.push_back((ask, asked)),
                Some(Message::Launched(key, result)) => self.hear_launched(key, result),
                Some(Message::Ended(key)) => self.process_ended(key),
                Some(Message::DumpTurn(key, permit)) => self.dump_turn(key, permit),
                Some(Message::Dumped(key, result)) => self.dumped(key, result),
                Some(Message::Stored(key, number, result)) => self.stored(key, number, result),
                Some(Message::Left(key, left)) => self.left(key, left),
            }
            self.work_off().await;
        }
    }

    /// Whether a freeze waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.model.machine().is_frozen()
    }

    /// Obeys what can be obeyed now, in order.
    async fn work_off(&mut self) {
        while let Some((ask, _)) = self.queue.front() {
            if matches!(ask, Ask::Freeze) {
                self.gate.shut();
                // It is let go in a moment; frozen, it would not be.
                if self.gate.is_held() {
                    break;
                }
            }
            let Some((ask, asked)) = self.queue.pop_front() else { break };
            match ask {
                Ask::Freeze => self.freeze(&asked).await,
                Ask::Thaw => self.thaw(&asked).await,
                Ask::Start(start) => self.start(*start, &asked),
                Ask::Stop(stop) => self.obey_stop(stop, &asked),
                Ask::SetMode(set) => self.set_mode(set),
                Ask::SetSupply(set) => self.set_supply(set, &asked),
                Ask::Promote(of) => self.promote(of, &asked).await,
                Ask::Move(to) => self.obey_move(to, &asked),
                Ask::CheckpointNow(of) => self.checkpoint_now(of),
                // It does not wait for its turn.
                Ask::Destroy => {}
            }
            // What is over may be due sooner now.
            self.conclude_early(Instant::now());
        }
    }

    /// The next moment at which something is due by itself.
    fn next_wake(&mut self) -> Option<Instant> {
        if self.is_frozen() {
            return None;
        }
        let model = self.model_wakes_at();
        let attempts = self.attempts.iter().filter_map(|a| match a.phase {
            Phase::Waiting { until } => until,
            Phase::Running | Phase::Dying => a.look,
            _ => None,
        });
        attempts.chain(model).chain(self.jobs_wake_at()).min()
    }

    fn on_time(&mut self) {
        self.let_happen();
        let now = Instant::now();
        let all: Vec<Key> = self.attempts.iter().map(|a| a.key).collect();
        for key in all {
            let Some(attempt) = self.attempt(key) else { continue };
            match attempt.phase {
                Phase::Waiting { until: Some(until) } if until <= now => {
                    self.slot_stays_occupied(key);
                }
                Phase::Running if attempt.look.is_some_and(|at| at <= now) => self.look(key),
                Phase::Dying if attempt.look.is_some_and(|at| at <= now) => {
                    self.outlives_its_kill(key);
                }
                _ => {}
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
        let all: Vec<u32> = (0..self.vcpus()).collect();
        self.slots.of(key, &all)
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
