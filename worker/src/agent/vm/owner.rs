//! The owner of a VM, which handles messages one after the other.

mod cell;
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
    CreditSpec, MachineSpec, VmModel,
    life::{AttemptLimits, AttemptSeat, AttemptTable, VmEvent},
};
use ractor::ActorRef;
use tokio::time::Instant;

use self::cell::VmCell;
use super::{
    account::CpuAccount,
    attempt::VmAttempt,
    clock::{CommandStamp, VmClock},
    effect_queue::EffectQueue,
    job::JobPace,
    lane::VcpuBinding,
    message::{OwnerMessage, VmCommand},
    metadata::VmMetadata,
    resources::VmResources,
};
use crate::{
    agent::{
        gate::VmGate,
        host::limit,
        machine::{LifeContext, VmMachine, lane_count},
        report::{Key, explain_error, vm_failed},
    },
    cgroup,
};

/// State of one VM's actor: what its attempts should be doing by the model, and what they really do.
///
/// Use: [`VmOwner::create_vm`], then [`VmOwner::handle_message`] for each message, and a wake-up at
/// [`VmOwner::next_wake`], until [`VmOwner::is_over`].
#[derive(Debug)]
pub(crate) struct VmOwner {
    context: Arc<LifeContext>,
    id: u32,
    /// True if every vCPU has a background beside its foreground.
    two_tier: bool,
    /// Share of a host core per vCPU, in ppm; `None`: no parallel jobs may run on the VM.
    core_ppm: Option<u32>,
    /// Model of the VM's single-process tasks: their seats, and the progress that they should have made.
    model: VmModel,
    /// Model that the VM's parallel jobs are compared with.
    pace: JobPace,
    clock: VmClock,
    /// Processes and groups of the VM, which outlive the owner.
    remains: Arc<VmResources>,
    machine: Arc<dyn VmMachine>,
    lanes: Vec<VcpuBinding>,
    /// Stages of the attempts, and their real slots.
    lives: AttemptTable,
    /// When the VM was created.
    made: Instant,
    /// Effects that are to be carried out.
    effects: EffectQueue,
    /// Attempts in order of their arrival.
    attempts: Vec<VmAttempt>,
    /// Gate that keeps the worker's threads from working on the VM while it freezes or ends.
    gate: Arc<VmGate>,
    /// Commands that wait until a freeze is done; the freeze waits until CRIU has released a task.
    queue: VecDeque<(VmCommand, CommandStamp)>,
    /// Stamp (time of decision and of arrival) of the command under way.
    commanded: CommandStamp,
    /// The owner's own actor, for messages to itself.
    tell: ActorRef<OwnerMessage>,
    /// Promised and received CPU time of the attempts that have ended.
    share: CpuAccount,
    frozen_at: Option<Instant>,
    /// Metadata for the VM's programs, if the VM has a metadata endpoint.
    metadata: Option<VmMetadata>,
    /// The processes that no task owns; `None`: the VM has no cell.
    cell: Option<VmCell>,
    failed: bool,
    is_destroyed: bool,
}

impl VmOwner {
    /// Creates the VM; the error says why it can't be created.
    pub(crate) async fn create_vm(
        context: &Arc<LifeContext>,
        create: &CreateVm,
        asked: &CommandStamp,
        remains: &Arc<VmResources>,
        tell: &ActorRef<OwnerMessage>,
    ) -> Result<Self, String> {
        let (id, vcpus, core_ppm) = (create.vm, lane_count(create), create.core_ppm);
        if vcpus == 0 || core_ppm == Some(0) {
            return Err("a VM has to have vCPUs, each with some share of a core".to_owned());
        }
        let machine = context.machine.create_vm(create).await?;
        remains.machine_made(&machine);
        let credits = create.burstable.map(|b| CreditSpec {
            baseline: Ppm::new(b.baseline_ppm),
            earned_per_hour: Credits::from_vcpu_micros(b.emulated_earned_us_per_hour),
            initial: Credits::from_vcpu_micros(b.emulated_initial_us),
            cap: Credits::from_vcpu_micros(b.emulated_cap_us),
        });
        // There is one account of a VM's credits: that of whatever it is for.
        let (of_tasks, of_jobs, of_cell) = match (core_ppm, &create.cell) {
            (_, Some(_)) => (None, None, credits),
            (None, None) => (credits, None, None),
            (Some(_), None) => (None, credits, None),
        };
        let cell = VmCell::of_vm(context, create, of_cell)?;
        let memory = Bytes::new(create.memory_bytes.unwrap_or(u64::MAX));
        let spec = MachineSpec { vcpus, memory, credits: of_tasks };
        let mut pace = JobPace::new(context.speedup, of_jobs);
        pace.begin_pace(asked);
        let mut owner = Self {
            context: Arc::clone(context),
            id,
            two_tier: create.two_tier,
            core_ppm,
            model: VmModel::new(Time::ZERO, spec),
            pace,
            clock: VmClock::new(context.speedup, asked),
            remains: Arc::clone(remains),
            lanes: (0..vcpus).map(|_| VcpuBinding::default()).collect(),
            lives: AttemptTable::new(vcpus, AttemptLimits { kill: limit::KILL, checkpoints: true }),
            made: Instant::now(),
            effects: EffectQueue::default(),
            attempts: Vec::new(),
            gate: Arc::clone(remains.vm_gate()),
            queue: VecDeque::new(),
            commanded: *asked,
            tell: tell.clone(),
            share: CpuAccount::default(),
            frozen_at: None,
            metadata: VmMetadata::begin_metadata(context, create, asked, &machine).await,
            machine,
            cell,
            failed: false,
            is_destroyed: false,
        };
        owner.prepare_cell();
        Ok(owner)
    }

    /// Handles a message, as far as that can be done now.
    pub(crate) async fn handle_message(&mut self, message: OwnerMessage) {
        match message {
            OwnerMessage::Ask(VmCommand::Destroy, _) if !self.is_destroyed => {
                self.is_destroyed = true;
                self.queue.clear();
                self.say_unsaved();
                if !self.begin_shutdown() {
                    self.apply_event(VmEvent::Destroy);
                }
            }
            OwnerMessage::Ask(..) if self.is_destroyed => {}
            // It does not wait for what else is asked: it would come too late.
            OwnerMessage::Ask(VmCommand::Announce(said), asked) => {
                self.announce_event(&said, &asked);
            }
            OwnerMessage::Ask(VmCommand::SetNetwork(of), _) => self.set_network(&of),
            OwnerMessage::Ask(ask, asked) => self.queue.push_back((ask, asked)),
            OwnerMessage::Launched(key, result) => self.hear_launched(key, result),
            OwnerMessage::CellBegan(result) => self.cell_began(result),
            OwnerMessage::CellRelayed(opened) => self.cell_relayed(opened),
            OwnerMessage::CellEnded => self.cell_ended(),
            OwnerMessage::Ended(key) => self.apply_event(VmEvent::ProcessEnded(key)),
            OwnerMessage::OwnKept(key, kept) => self.hear_own_kept(key, kept),
            OwnerMessage::DumpTurn(key, permit) => self.take_turn(key, permit),
            OwnerMessage::Dumped(key, result) => self.hear_dumped(key, result),
            OwnerMessage::Stored(key, number, result) => self.hear_stored(key, number, result),
            OwnerMessage::Left(key, left) => self.hear_left(key, left),
            OwnerMessage::Wake => self.on_time(),
            // The actor's own.
            OwnerMessage::Create(..) | OwnerMessage::Due => {}
        }
        self.work_off().await;
    }

    /// Returns whether nothing is left of the VM.
    pub(crate) fn is_over(&self) -> bool {
        self.lives.is_over()
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.model.machine().is_frozen()
    }

    /// Carries out effects and queued commands that are possible now, in order.
    async fn work_off(&mut self) {
        self.do_all().await;
        while self.lives.is_ready()
            && let Some((ask, asked)) = self.queue.pop_front()
        {
            self.commanded = asked;
            match ask {
                VmCommand::Freeze => self.apply_event(VmEvent::Freeze),
                VmCommand::Thaw => self.apply_event(VmEvent::Thaw),
                VmCommand::Start(start) => self.start_attempt(*start, &asked),
                VmCommand::Stop(stop) => self.obey_stop(stop, &asked),
                VmCommand::SetMode(set) => self.set_mode(set),
                VmCommand::SetSupply(set) => self.set_supply(set, &asked),
                VmCommand::Promote(of) => self.obey_promote(of, &asked),
                VmCommand::Move(to) => self.obey_move(to, &asked),
                VmCommand::CheckpointNow(of) => self.checkpoint_now(of),
                // They do not wait for their turn.
                VmCommand::Destroy | VmCommand::Announce(_) | VmCommand::SetNetwork(_) => {}
            }
            self.do_all().await;
            // What is over may be due sooner now.
            self.conclude_early(Instant::now());
            self.do_all().await;
        }
    }

    /// Returns when the owner must be woken next; `None`: nothing waits for a time.
    pub(crate) fn next_wake(&mut self) -> Option<Instant> {
        if self.is_destroyed {
            return self.cell_wakes_at();
        }
        if self.is_frozen() {
            return None;
        }
        let model = self.model_wakes_at();
        let lives = &self.lives;
        let looks = self.attempts.iter().filter(|a| lives.is_running(a.key));
        let looks = looks.filter_map(|a| a.look);
        let wakes = looks.chain(model).chain(self.lives_wake_at()).chain(self.jobs_wake_at());
        wakes.chain(self.put_off_until()).chain(self.cell_wakes_at()).min()
    }

    fn on_time(&mut self) {
        self.let_happen();
        let now = Instant::now();
        self.apply_event(VmEvent::Tick);
        self.do_put_off(now);
        let all: Vec<Key> = self.attempts.iter().map(|a| a.key).collect();
        for key in all {
            let Some(attempt) = self.find_attempt(key) else { continue };
            if self.lives.is_running(key) && attempt.look.is_some_and(|at| at <= now) {
                self.pace_task(key);
            }
        }
        self.see_to_jobs(now);
        self.see_to_cell(now);
    }

    pub(crate) fn attempt_mut(&mut self, key: Key) -> Option<&mut VmAttempt> {
        self.attempts.iter_mut().find(|a| a.key == key)
    }

    /// Returns the attempt with this key; `None`: it isn't on the VM.
    pub(crate) fn find_attempt(&self, key: Key) -> Option<&VmAttempt> {
        self.attempts.iter().find(|a| a.key == key)
    }

    /// Returns the seats of an attempt's processes, or their new seats if the attempt is to be moved.
    pub(crate) fn seats_of(&self, key: Key) -> Vec<AttemptSeat> {
        self.lives.vm_slots().all_of(key)
    }

    pub(crate) fn vcpu_count(&self) -> u32 {
        u32::try_from(self.lanes.len()).unwrap_or(u32::MAX)
    }

    /// Reports that the VM has failed; the coordinator will destroy it.
    pub(crate) fn fail_vm(&mut self, error: &dyn std::error::Error) {
        self.vm_broken(&explain_error(error));
    }

    /// Marks the VM as failed if `set`, the result of a change of a control group, is an error.
    pub(crate) fn note_set(&mut self, set: cgroup::Result<()>) {
        if let Err(error) = set {
            self.fail_vm(&error);
        }
    }

    /// Marks the VM as failed, and reports the failure if none was reported before.
    pub(crate) fn vm_broken(&mut self, why: &str) {
        tracing::error!(vm = self.id, why, "the VM has failed");
        if !std::mem::replace(&mut self.failed, true) {
            self.context.send_report(vm_failed(self.id, why));
        }
    }

    /// Returns for how long the VM has been frozen now; zero if it isn't frozen.
    pub(crate) fn frozen_for(&self, now: Instant) -> Duration {
        self.frozen_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at))
    }
}
