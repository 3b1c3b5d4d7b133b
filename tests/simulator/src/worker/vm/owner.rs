//! The owner of a VM: takes what comes one after the other.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use dormouse_proto::v1::{CreateVm, Report, VmFailed, VmRef, report};
use dormouse_units::{Bytes, Credits, Ppm, Time};
use dormouse_vm::{
    CreditSpec, MachineSpec, Model,
    life::{AttemptTable, Effect, Event, Key, Limits},
};
use dormouse_worker::agent::in_process::{Ask, CommandStamp, Pace, VmClock, refused};
use tokio::{
    sync::{OwnedSemaphorePermit, mpsc},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{agenda::Agenda, attempt::Attempt};
use crate::worker::{chance::Chance, host::Host, uplink::Uplink};

/// Time that a killed process may take to be gone.
const KILL: Duration = Duration::from_secs(10);
/// Time that it takes to make a VM, usually.
const MAKE: Duration = Duration::from_millis(5);

/// Messages to an owner: commands, and the ends of its transfers and waits.
#[derive(Debug)]
pub(in crate::worker) enum Message {
    Ask(Ask, CommandStamp),
    /// The checkpoint from which an attempt is to go on is here, if there is one.
    Brought(Key, Result<(), String>),
    /// The attempt's turn at CRIU has come, to be restored.
    BirthTurn(Key, OwnedSemaphorePermit),
    /// The attempt's turn at CRIU has come, to be dumped.
    DumpTurn(Key, OwnedSemaphorePermit),
    /// The job's turn at CRIU has come, to go elsewhere.
    LeaveTurn(Key, OwnedSemaphorePermit),
    /// The coordinator has the checkpoint of this number (its size), or has not.
    Stored(Key, u32, Result<u64, String>),
}

/// The messages of an owner: how it and its tasks send some, and where they come.
type Mailbox = (mpsc::UnboundedSender<Message>, mpsc::UnboundedReceiver<Message>);

/// The state of the owner of one VM.
#[derive(Debug)]
pub(super) struct Owner<U> {
    pub(super) host: Arc<Host<U>>,
    pub(super) id: u32,
    pub(super) two_tier: bool,
    /// The share of a host core that a vCPU is, where jobs may run.
    pub(super) core_ppm: Option<u32>,
    /// The reference of jobs.
    pub(super) pace: Pace,
    /// The reference of tasks: who sits where, and how far each should be by now.
    pub(super) model: Model,
    pub(super) clock: VmClock,
    /// The lives of the attempts, and who is where.
    pub(super) lives: AttemptTable,
    pub(super) made: Instant,
    pub(super) attempts: Vec<Attempt>,
    pub(super) agenda: Agenda,
    pub(super) chance: Chance,
    pub(super) tell: mpsc::UnboundedSender<Message>,
    /// Effects that the lives want, in this order.
    pub(super) to_do: VecDeque<Effect>,
    /// Effects that come before those: what is being done has led to them.
    pub(super) fresh: Vec<Effect>,
    pub(super) is_doing: bool,
    /// Times of the command that is obeyed.
    pub(super) commanded: CommandStamp,
    /// Nothing may begin: the VM is frozen, or about to be.
    pub(super) is_shut: bool,
    /// Number of processes that CRIU holds.
    pub(super) held: u32,
    pub(super) frozen_at: Option<Instant>,
    /// The CPU time of the attempts that are over, in microseconds.
    pub(super) share_us: u64,
    /// Ends what transfers are under way for the VM.
    pub(super) gone: CancellationToken,
    queue: VecDeque<(Ask, CommandStamp)>,
    failed: bool,
    is_destroyed: bool,
}

/// Owns a VM from its creation until nothing is left of it.
pub(in crate::worker) async fn own_vm<U: Uplink>(
    host: Arc<Host<U>>,
    create: CreateVm,
    asked: CommandStamp,
    (tell, mut messages): Mailbox,
) {
    let id = create.vm;
    let mut chance = host.plan.chance("vm", host.incarnation ^ u64::from(id));
    sleep(chance.time(MAKE)).await;
    let fails = chance.happens(host.plan.rates.create);
    let why = if create.vcpus == 0 { Some("a VM has vCPUs") } else { None };
    if let Some(why) = why.or(fails.then_some("its groups can't be made")) {
        host.say(report::Report::VmFailed(VmFailed { vm: id, why: why.to_owned() }));
        return without_owner(&host, id, &mut messages).await;
    }
    let mut owner = Owner::new(Arc::clone(&host), &create, &asked, chance, tell);
    host.shared.has_vm(id, true);
    host.say(report::Report::VmCreated(VmRef { vm: id }));
    while !owner.lives.is_over() {
        let wake = owner.next_wake();
        tokio::select! {
            biased;
            message = messages.recv() => match message {
                Some(message) => owner.hear(message).await,
                None => break,
            },
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                owner.on_time().await;
            }
        }
    }
    host.shared.has_vm(id, false);
}

/// Answers for a VM that could not be made, until it is destroyed.
async fn without_owner<U: Uplink>(
    host: &Host<U>,
    id: u32,
    messages: &mut mpsc::UnboundedReceiver<Message>,
) {
    while let Some(message) = messages.recv().await {
        match message {
            Message::Ask(Ask::Destroy, _) => {
                return host.say(report::Report::VmDestroyed(VmRef { vm: id }));
            }
            Message::Ask(Ask::Start(start), _) => {
                host.report(refused(&start, "the VM could not be created".to_owned()));
            }
            _ => {}
        }
    }
}

impl<U: Uplink> Owner<U> {
    fn new(
        host: Arc<Host<U>>,
        create: &CreateVm,
        asked: &CommandStamp,
        chance: Chance,
        tell: mpsc::UnboundedSender<Message>,
    ) -> Self {
        let credits = create.burstable.map(|b| CreditSpec {
            baseline: Ppm::new(b.baseline_ppm),
            earned_per_hour: Credits::from_vcpu_micros(b.emulated_earned_us_per_hour),
            initial: Credits::from_vcpu_micros(b.emulated_initial_us),
            cap: Credits::from_vcpu_micros(b.emulated_cap_us),
        });
        // There is one account of a VM's credits: that of whatever it is for.
        let (credits, of_jobs) = match create.core_ppm {
            None => (credits, None),
            Some(_) => (None, credits),
        };
        let mut pace = Pace::new(host.speedup, of_jobs);
        pace.begin(asked);
        let memory = Bytes::new(create.memory_bytes.unwrap_or(u64::MAX));
        let spec = MachineSpec { vcpus: create.vcpus, memory, credits };
        Self {
            id: create.vm,
            two_tier: create.two_tier,
            core_ppm: create.core_ppm,
            pace,
            model: Model::new(Time::ZERO, spec),
            clock: VmClock::new(host.speedup, asked),
            lives: AttemptTable::new(create.vcpus, Limits { kill: KILL, checkpoints: true }),
            made: Instant::now(),
            attempts: Vec::new(),
            agenda: Agenda::default(),
            chance,
            tell,
            to_do: VecDeque::new(),
            fresh: Vec::new(),
            is_doing: false,
            commanded: *asked,
            is_shut: false,
            held: 0,
            frozen_at: None,
            share_us: 0,
            gone: CancellationToken::new(),
            queue: VecDeque::new(),
            failed: false,
            is_destroyed: false,
            host,
        }
    }

    async fn hear(&mut self, message: Message) {
        match message {
            Message::Ask(Ask::Destroy, _) if !self.is_destroyed => {
                self.is_destroyed = true;
                self.queue.clear();
                self.happen(Event::Destroy);
            }
            Message::Ask(..) if self.is_destroyed => {}
            // Programs that could hear of it are not simulated.
            Message::Ask(Ask::Announce(_), _) => {}
            Message::Ask(ask, asked) => self.queue.push_back((ask, asked)),
            Message::Brought(key, result) => self.brought(key, result),
            Message::BirthTurn(key, permit) => self.take_birth_turn(key, permit),
            Message::LeaveTurn(key, permit) => self.take_leave_turn(key, permit),
            Message::DumpTurn(key, permit) => self.take_dump_turn(key, permit),
            Message::Stored(key, number, result) => self.hear_stored(key, number, result),
        }
        self.work_off().await;
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
                Ask::Stop(stop) => self.obey_stop(&stop, &asked),
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
            self.conclude_early();
            self.do_all().await;
        }
    }

    /// The next moment at which something is due by itself.
    fn next_wake(&mut self) -> Option<Instant> {
        let agenda = self.agenda.next_at();
        if self.lives.is_frozen() || self.is_destroyed {
            return agenda;
        }
        let lives = self.lives.next_at().map(|at| self.made + at);
        let model = self.model_wakes_at();
        let jobs = self.jobs_wake_at();
        agenda.into_iter().chain(lives).chain(model).chain(jobs).min()
    }

    async fn on_time(&mut self) {
        if !self.is_destroyed {
            self.let_happen();
            self.happen(Event::Tick);
            self.see_to_processes();
            self.see_to_jobs();
        }
        while let Some(work) = self.agenda.take_due() {
            self.come(work);
            self.do_all().await;
        }
        self.work_off().await;
    }

    /// Has the attempts hear of an event, and does what is to be done then, as far as that is done at once.
    pub(super) fn happen(&mut self, event: Event) {
        let effects = self.lives.handle(self.made.elapsed(), event);
        self.fresh.extend(effects);
        self.do_at_once();
    }

    pub(super) fn attempt(&mut self, key: Key) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|attempt| attempt.key == key)
    }

    pub(super) fn seen(&self, key: Key) -> Option<&Attempt> {
        self.attempts.iter().find(|attempt| attempt.key == key)
    }

    /// Notes that the VM has failed, and reports it the first time.
    pub(super) fn broken(&mut self, why: &str) {
        if !std::mem::replace(&mut self.failed, true) {
            self.host.say(report::Report::VmFailed(VmFailed { vm: self.id, why: why.to_owned() }));
        }
    }

    pub(super) fn say(&self, report: report::Report) {
        self.host.report(Report { report: Some(report) });
    }
}
