//! The owner of a VM: takes what comes one after the other.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use dormouse_proto::v1::{CreateVm, SetMode, StartTask, StopTask, VmRef, report};
use dormouse_units::{Bytes, Credits, Ppm, Time};
use dormouse_vm::{CreditSpec, MachineSpec, Model};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    task::spawn_blocking,
    time::sleep_until,
};

use super::{
    accounts::Share,
    attempt::{Attempt, Phase},
    clock::{Asked, VmClock},
    lane::Lane,
};
use crate::{
    agent::{
        gate::Gate,
        host::{Host, limit},
        launch::Birth,
        report::{Key, explain, report, took, vm_destroyed, vm_failed},
        snapshot::{Snapshot, SnapshotError},
        threads::urgent,
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
}

/// What comes to an owner: commands, and what its threads have done.
#[derive(Debug)]
pub(crate) enum Message {
    Ask(Ask, Asked),
    Launched(Key, Result<Birth, String>),
    /// The process has ended.
    Ended(Key),
    /// It is this attempt's turn at CRIU.
    DumpTurn(Key, OwnedSemaphorePermit),
    Dumped(Key, Result<Snapshot, SnapshotError>),
    /// The coordinator has the checkpoint of this number (its size), or has not.
    Stored(Key, u32, Result<u64, String>),
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
    /// What should be: who sits where, and how far each should be by now.
    pub(crate) model: Model,
    pub(crate) clock: VmClock,
    pub(crate) groups: Arc<cgroup::Vm>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) attempts: Vec<Attempt>,
    /// Of the threads at work on it.
    pub(crate) gate: Arc<Gate>,
    /// A freeze that waits for CRIU to let a task go, and what was asked after it.
    queue: VecDeque<(Ask, Asked)>,
    /// Launches that came to their end while it was frozen: heard at the thaw.
    pub(crate) held: Vec<(Key, Result<Birth, String>)>,
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
        let made = {
            let host = Arc::clone(host);
            spawn_blocking(move || host.prepared.tree.create_vm(u64::from(id), vcpus, memory)).await
        };
        let groups = made.map_err(|e| explain(&e))?.map_err(|e| explain(&e))?;
        let credits = create.burstable.map(|b| CreditSpec {
            baseline: Ppm::new(b.baseline_ppm),
            earned_per_hour: Credits::from_vcpu_micros(b.emulated_earned_us_per_hour),
            initial: Credits::from_vcpu_micros(b.emulated_initial_us),
            cap: Credits::from_vcpu_micros(b.emulated_cap_us),
        });
        Ok(Self {
            host: Arc::clone(host),
            id,
            model: Model::new(
                Time::ZERO,
                MachineSpec { vcpus, memory: Bytes::new(memory.unwrap_or(u64::MAX)), credits },
            ),
            clock: VmClock::new(host.dilation, asked),
            groups: Arc::new(groups),
            lanes: (0..vcpus).map(|_| Lane::default()).collect(),
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
            }
            self.work_off().await;
        }
    }

    /// Whether a freeze waits.
    pub(crate) fn is_waited_for(&self) -> bool {
        !self.queue.is_empty()
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
                Ask::Stop(stop) => self.stop(stop),
                Ask::SetMode(set) => self.set_mode(set),
                // It does not wait for its turn.
                Ask::Destroy => {}
            }
        }
    }

    /// The next moment at which something is due by itself.
    fn next_wake(&self) -> Option<Instant> {
        if self.model.machine().is_frozen() {
            return None;
        }
        let attempts = self.attempts.iter().filter_map(|a| match a.phase {
            Phase::Waiting { until } => Some(until),
            Phase::Running | Phase::Dying => a.look,
            _ => None,
        });
        attempts.chain(self.model_wakes_at()).min()
    }

    fn on_time(&mut self) {
        self.let_happen();
        let now = Instant::now();
        let all: Vec<Key> = self.attempts.iter().map(|a| a.key).collect();
        for key in all {
            let Some(attempt) = self.attempt(key) else { continue };
            match attempt.phase {
                Phase::Waiting { until } if until <= now => self.slot_stays_occupied(key),
                Phase::Running if attempt.look.is_some_and(|at| at <= now) => self.look(key),
                Phase::Dying if attempt.look.is_some_and(|at| at <= now) => {
                    self.outlives_its_kill(key);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn attempt(&mut self, key: Key) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|a| a.key == key)
    }

    /// Takes an attempt out of the books.
    pub(crate) fn remove(&mut self, key: Key) -> Option<Attempt> {
        let place = self.attempts.iter().position(|a| a.key == key)?;
        Some(self.attempts.remove(place))
    }

    async fn freeze(&mut self, asked: &Asked) {
        if self.model.machine().is_frozen() {
            self.host.report(report(report::Report::VmFrozen(took(self.id, Duration::ZERO))));
            return;
        }
        let groups = Arc::clone(&self.groups);
        match urgent(move || groups.freeze(limit::FREEZE)).await {
            Ok(Ok(_)) => {
                self.let_happen();
                let now = self.pass();
                self.model.freeze(now);
                let at = self.clock.decided(asked);
                self.clock.freeze(at);
                self.frozen_at = Some(Instant::now());
                let took = took(self.id, asked.came.elapsed());
                self.host.report(report(report::Report::VmFrozen(took)));
                self.report_share();
            }
            Ok(Err(error)) => self.not_frozen(&error),
            Err(error) => self.not_frozen(&error),
        }
    }

    /// A freeze that failed leaves it thawed.
    fn not_frozen(&mut self, error: &dyn std::error::Error) {
        self.gate.open();
        self.fail(error);
    }

    async fn thaw(&mut self, asked: &Asked) {
        let groups = Arc::clone(&self.groups);
        match urgent(move || groups.thaw(limit::FREEZE)).await {
            Ok(Ok(_)) => {
                self.gate.open();
                let at = self.clock.decided(asked);
                self.clock.thaw(at);
                let now = self.pass();
                self.model.thaw(now);
                let stood = self.frozen_at.take().map_or(Duration::ZERO, |at| at.elapsed());
                for attempt in &mut self.attempts {
                    attempt.was_frozen(stood);
                }
                self.refresh_all();
                self.look_again();
                let took = took(self.id, asked.came.elapsed());
                self.host.report(report(report::Report::VmThawed(took)));
                self.report_credits();
                for (key, result) in std::mem::take(&mut self.held) {
                    self.launched(key, result);
                }
            }
            Ok(Err(error)) => self.fail(&error),
            Err(error) => self.fail(&error),
        }
    }

    /// The VM cannot go on; the coordinator will have it destroyed.
    pub(crate) fn fail(&mut self, error: &dyn std::error::Error) {
        let why = explain(error);
        tracing::error!(vm = self.id, why, "the VM has failed");
        if !std::mem::replace(&mut self.failed, true) {
            self.host.report(vm_failed(self.id, why));
        }
    }
}
