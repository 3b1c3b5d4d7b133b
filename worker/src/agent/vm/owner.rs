//! The owner of a VM: takes what comes one after the other.

mod checkpoints;
mod effects;
mod ends;
mod hangs;
mod hibernation;
mod jobs;
mod last_saves;
mod launches;
mod metadata;
mod notices;
mod quotas;
mod starts;
mod stops;
mod tasks;
mod unsaved;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use dormouse_proto::v1::CreateVm;
use dormouse_units::{Bytes, Credits, Ppm, Time};
use dormouse_vm::{
    CreditSpec, MachineSpec, Model,
    life::{AttemptTable, Event, Limits, Seat},
};
use ractor::ActorRef;
use tokio::time::Instant;

use super::{
    account::Share,
    attempt::Attempt,
    clock::{CommandStamp, VmClock},
    effect_queue::EffectQueue,
    job::Pace,
    lane::Lane,
    message::{Ask, Message},
    metadata::VmMetadata,
    resources::VmResources,
};
use crate::{
    agent::{
        gate::Gate,
        host::limit,
        machine::{LifeContext, VmMachine},
        report::{Key, explain, vm_failed},
    },
    cgroup,
};

/// The state of the owner of one VM.
#[derive(Debug)]
pub(crate) struct Owner {
    context: Arc<LifeContext>,
    id: u32,
    /// Every vCPU has a background beside its foreground.
    two_tier: bool,
    /// The share of a host core that a vCPU is, where jobs may run.
    core_ppm: Option<u32>,
    /// What should be of tasks of one process: who sits where, and how far each should be by now.
    model: Model,
    /// What should be of jobs.
    pace: Pace,
    clock: VmClock,
    /// All there is of it, whatever becomes of its owner.
    remains: Arc<VmResources>,
    machine: Arc<dyn VmMachine>,
    lanes: Vec<Lane>,
    /// The stages of the attempts' lives, and who really is where.
    lives: AttemptTable,
    /// The time at which it was made.
    made: Instant,
    /// What the lives want done.
    effects: EffectQueue,
    /// In the order they came.
    attempts: Vec<Attempt>,
    /// The gate of the threads at work on the VM.
    gate: Arc<Gate>,
    /// What was asked after a freeze that waits for CRIU to let a task go.
    queue: VecDeque<(Ask, CommandStamp)>,
    /// The time at which what is obeyed was asked.
    commanded: CommandStamp,
    /// The owner's own actor, for messages to itself.
    tell: ActorRef<Message>,
    /// The CPU time, promised and received, of the attempts that are over.
    share: Share,
    frozen_at: Option<Instant>,
    /// What its programs read of it, where it has an endpoint for that.
    metadata: Option<VmMetadata>,
    failed: bool,
    is_destroyed: bool,
}

impl Owner {
    /// Makes the VM; why it can't be made.
    pub(crate) async fn create(
        context: &Arc<LifeContext>,
        create: &CreateVm,
        asked: &CommandStamp,
        remains: &Arc<VmResources>,
        tell: &ActorRef<Message>,
    ) -> Result<Self, String> {
        let (id, vcpus, core_ppm) = (create.vm, create.vcpus, create.core_ppm);
        if vcpus == 0 || core_ppm == Some(0) {
            return Err("a VM has to have vCPUs, each with some share of a core".to_owned());
        }
        let machine = context.machine.create_vm(create, remains.gate()).await?;
        remains.made(&machine);
        let credits = create.burstable.map(|b| CreditSpec {
            baseline: Ppm::new(b.baseline_ppm),
            earned_per_hour: Credits::from_vcpu_micros(b.emulated_earned_us_per_hour),
            initial: Credits::from_vcpu_micros(b.emulated_initial_us),
            cap: Credits::from_vcpu_micros(b.emulated_cap_us),
        });
        // There is one account of a VM's credits: that of whatever it is for.
        let (of_tasks, of_jobs) = match core_ppm {
            None => (credits, None),
            Some(_) => (None, credits),
        };
        let memory = Bytes::new(create.memory_bytes.unwrap_or(u64::MAX));
        let spec = MachineSpec { vcpus, memory, credits: of_tasks };
        let mut pace = Pace::new(context.speedup, of_jobs);
        pace.begin(asked);
        Ok(Self {
            context: Arc::clone(context),
            id,
            two_tier: create.two_tier,
            core_ppm,
            model: Model::new(Time::ZERO, spec),
            pace,
            clock: VmClock::new(context.speedup, asked),
            remains: Arc::clone(remains),
            lanes: (0..vcpus).map(|_| Lane::default()).collect(),
            lives: AttemptTable::new(vcpus, Limits { kill: limit::KILL, checkpoints: true }),
            made: Instant::now(),
            effects: EffectQueue::default(),
            attempts: Vec::new(),
            gate: Arc::clone(remains.gate()),
            queue: VecDeque::new(),
            commanded: *asked,
            tell: tell.clone(),
            share: Share::default(),
            frozen_at: None,
            metadata: VmMetadata::begin(context, create, asked, &machine).await,
            machine,
            failed: false,
            is_destroyed: false,
        })
    }

    /// Does what this says, as far as that can be done now.
    pub(crate) async fn hear(&mut self, message: Message) {
        match message {
            Message::Ask(Ask::Destroy, _) if !self.is_destroyed => {
                self.is_destroyed = true;
                self.queue.clear();
                self.say_unsaved();
                self.happen(Event::Destroy);
            }
            Message::Ask(..) if self.is_destroyed => {}
            // It does not wait for what else is asked: it would come too late.
            Message::Ask(Ask::Announce(said), asked) => self.announced(&said, &asked),
            Message::Ask(ask, asked) => self.queue.push_back((ask, asked)),
            Message::Launched(key, result) => self.hear_launched(key, result),
            Message::Ended(key) => self.happen(Event::ProcessEnded(key)),
            Message::OwnKept(key, kept) => self.hear_own_kept(key, kept),
            Message::DumpTurn(key, permit) => self.take_turn(key, permit),
            Message::Dumped(key, result) => self.hear_dumped(key, result),
            Message::Stored(key, number, result) => self.hear_stored(key, number, result),
            Message::Left(key, left) => self.hear_left(key, left),
            Message::Wake => self.on_time(),
            // The actor's own.
            Message::Create(..) | Message::Due => {}
        }
        self.work_off().await;
    }

    /// Whether nothing is left of the VM.
    pub(crate) fn is_over(&self) -> bool {
        self.lives.is_over()
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
                // They do not wait for their turn.
                Ask::Destroy | Ask::Announce(_) => {}
            }
            self.do_all().await;
            // What is over may be due sooner now.
            self.conclude_early(Instant::now());
            self.do_all().await;
        }
    }

    /// The next moment at which something is due by itself.
    pub(crate) fn next_wake(&mut self) -> Option<Instant> {
        if self.is_frozen() || self.is_destroyed {
            return None;
        }
        let model = self.model_wakes_at();
        let lives = &self.lives;
        let looks = self.attempts.iter().filter(|a| lives.is_running(a.key));
        let looks = looks.filter_map(|a| a.look);
        let wakes = looks.chain(model).chain(self.lives_wake_at()).chain(self.jobs_wake_at());
        wakes.chain(self.put_off_until()).min()
    }

    fn on_time(&mut self) {
        self.let_happen();
        let now = Instant::now();
        self.happen(Event::Tick);
        self.do_put_off(now);
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

    /// The seats of the processes of an attempt, wherever it is to go.
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

    /// Notes that the VM has failed, and reports it the first time.
    pub(crate) fn broken(&mut self, why: &str) {
        tracing::error!(vm = self.id, why, "the VM has failed");
        if !std::mem::replace(&mut self.failed, true) {
            self.context.report(vm_failed(self.id, why));
        }
    }

    /// The time for which it stands still so far in this freeze.
    pub(crate) fn frozen_for(&self, now: Instant) -> Duration {
        self.frozen_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }
}
