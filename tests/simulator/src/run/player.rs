//! The player of one run: it drives coordinators and workers, and causes the faults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dormouse_coordinator::{CoordinatorError, WorkerDesk};
use dormouse_log::LogError;
use dormouse_model::{Event, Step};
use tokio::time::Instant;

use super::Played;
use super::callers::{PresentDesk, call};
use super::coordinator::{BEGINNING, Host, Process, speedup, start};
use super::end_facts::end_facts;
use super::unfinished::{unfinished, waits_only_for};
use super::workers::Slot;
use crate::death::Death;
use crate::disk::{DamagedCheckpoint, SimulatedDisk, rot_checkpoint};
use crate::draw::Draw;
use crate::faults::{Fault, Millis};
use crate::invariant::Invariant;
use crate::network::Network;
use crate::oracle::{
    HeldUp, Oracle, WorkerEndFacts, accounts, bills, clock, credits, ending, leftovers::leftovers,
    worker_end,
};
use crate::plan::Plan;
use crate::stage::Stage;
use crate::witness::Witness;
use crate::worker::Leftovers;

/// How late, in real time, a report may reach the log without a fault: the same tolerance as for real runs.
const LATENESS: Duration = Duration::from_secs(1);
/// Interval at which the player looks at workers.
const LOOK: Duration = Duration::from_millis(250);
/// Time after the end of its run for which a worker may still be there.
const CLEAN_UP: Duration = Duration::from_secs(60);
/// Number of failed starts of coordinators in a row after which the player gives up.
const FAILED_STARTS: u32 = 20;

/// The longest pause of a worker between two attempts to reach its coordinator.
const REDIAL: Duration = Duration::from_secs(1);

/// The player of one plan.
#[derive(Debug)]
pub(super) struct Player<'a> {
    plan: &'a Plan,
    stage: Stage,
    witness: Witness,
    folder: PathBuf,
    host: Host,
    network: Network,
    desk: PresentDesk,
    chance: Draw,
    coordinator: Option<Process>,
    /// When the next coordinator is started; `None`: no start is due.
    starts: Option<Instant>,
    failed_starts: u32,
    /// Time until a coordinator that has ended by itself is started again: after an error of the disk, or (next field)
    /// a pause by its user.
    down_for_disk: Option<Millis>,
    down_for_pause: Option<Millis>,
    /// The time at which the disk becomes as fast again as before the coordinator's process was suspended.
    goes_on: Option<Instant>,
    slots: Vec<Slot>,
    /// Index of the next fault.
    next: usize,
    over: Option<Instant>,
    /// How far a run's clock may be ahead, since its wall clock was set forward.
    ahead: Duration,
    /// The times in which messages of workers were delayed.
    held_up: HeldUp,
    /// Workers that are suspended, by their index, and until when.
    standing: BTreeMap<usize, Instant>,
    /// Generation of the present coordinator, or of the last one.
    generation: u64,
    /// Generation of the coordinator that the run's user has paused.
    paused: Option<u64>,
    /// Whether the run's user has ended the run.
    is_cancelled: bool,
    /// The error messages with which coordinators ended that were not killed.
    coordinator_ends: Vec<String>,
    played: Played,
}

impl<'a> Player<'a> {
    pub(super) fn new(plan: &'a Plan, stage: Stage, witness: Witness, folder: &Path) -> Self {
        let folder = folder.join("run");
        let disk = SimulatedDisk::new(stage.clone());
        let host = Host {
            disk,
            since: Instant::now(),
            wall: Arc::new(AtomicU64::new(BEGINNING)),
            slow: Arc::new(AtomicU64::new(plan.slow_sync * 1_000)),
        };
        let slowest_upload = Duration::from_millis(plan.slow_upload);
        let network = Network::new(stage.clone(), plan.seed, slowest_upload);
        stage.with_oracle(|oracle| oracle.stores_in(folder.join("checkpoints")));
        let slot = |planned: &crate::plan::PlannedWorker| {
            Slot::new(planned.clone(), stage.instant(planned.comes))
        };
        Self {
            slots: plan.workers.iter().map(slot).collect(),
            starts: Some(Instant::now()),
            chance: Draw::new(plan.seed, "simulator: player", 1),
            plan,
            stage,
            witness,
            folder,
            host,
            network,
            desk: PresentDesk::default(),
            coordinator: None,
            failed_starts: 0,
            down_for_disk: None,
            down_for_pause: None,
            goes_on: None,
            next: 0,
            over: None,
            ahead: Duration::ZERO,
            held_up: HeldUp::default(),
            standing: BTreeMap::new(),
            generation: 0,
            paused: None,
            is_cancelled: false,
            coordinator_ends: Vec::new(),
            played: Played::default(),
        }
    }

    /// Plays the plan to its end, or to the first violation.
    pub(super) async fn play(mut self) -> Played {
        if let Some(callers) = &self.plan.callers {
            tokio::spawn(call(callers.clone(), self.desk.clone(), self.stage.clone()));
        }
        let deadline = self.stage.instant(self.plan.patience());
        while self.stage.violation().is_none() && !self.played.is_refused {
            if Instant::now() >= deadline {
                self.is_late();
                break;
            }
            if self.is_all_over() {
                self.finish();
                break;
            }
            let wakes = self.wakes().min(deadline);
            let stage = self.stage.clone();
            tokio::select! {
                biased;
                () = stage.crashed() => self.crash(),
                ended = ended(&mut self.coordinator) => self.ended(ended),
                () = tokio::time::sleep_until(wakes) => self.tick(),
            }
        }
        if let Some(process) = self.coordinator.take() {
            self.stage.coordinator_ends("the simulation ends");
            process.kill();
        }
        self.write_seals();
        self.played.workers = self.slots.iter().map(|slot| slot.started).sum();
        self.played
    }

    fn wakes(&self) -> Instant {
        let fault = self.plan.faults.get(self.next).map(|it| self.stage.instant(it.at));
        let fault = fault.filter(|_| self.over.is_none());
        let slots = self.slots.iter().filter_map(Slot::due).filter(|_| self.over.is_none());
        let all = slots.chain(fault).chain(self.starts).chain(self.goes_on);
        all.fold(Instant::now() + LOOK, Instant::min)
    }

    /// Does everything that is due at this time.
    fn tick(&mut self) {
        let now = Instant::now();
        self.stage.look();
        if self.host.disk.has_damaged_log()
            && self.coordinator.as_ref().is_some_and(Process::has_begun)
        {
            let why = "a coordinator goes on with a log that is not as it was sealed";
            self.stage.violated(Invariant::LogGrows, why.to_owned());
        }
        self.look_at_clock();
        self.look_at_pauses();
        self.look_at_workers();
        for slot in &mut self.slots {
            if self.over.is_none() {
                slot.come(&self.network, &self.witness, &self.stage);
            }
        }
        if self.goes_on.is_some_and(|at| at <= now) {
            self.disk_is_quick_again();
        }
        if self.starts.is_some_and(|at| at <= now) {
            self.start();
        }
        while self.over.is_none()
            && let Some(next) = self.plan.faults.get(self.next)
            && self.stage.instant(next.at) <= now
        {
            self.next += 1;
            self.stage.note(format_args!("fault {}: {:?}", next.fault.name(), next.fault));
            self.happen(&next.fault);
        }
        if self.over.is_some_and(|over| now > over + CLEAN_UP) {
            let state = format!("the run is over, and workers are still there: {}", self.state());
            self.stage.violated(Invariant::NothingLeft, state);
        }
    }

    /// Checks which workers are suspended by a fault of the experiment.
    fn look_at_pauses(&mut self) {
        for (name, us) in self.stage.with_oracle(Oracle::take_paused) {
            let place = self.slots.iter().position(|slot| slot.name() == name);
            // It may have begun since this was looked at last.
            let since = self.stage.now_us().saturating_sub(micros(LOOK));
            let again = Duration::from_millis(2 * self.plan.lost_after) + REDIAL + LOOK;
            self.held_up.add(place, since, Duration::from_micros(us) + again);
            if let Some(place) = place {
                self.stands_still(place, Duration::from_micros(us));
            }
        }
    }

    /// Notes that a worker is suspended for this time; counts when two are at once.
    fn stands_still(&mut self, place: usize, lasts: Duration) {
        let now = Instant::now();
        self.standing.retain(|_, until| *until > now);
        self.standing.insert(place, now + lasts);
        if self.standing.len() > 1 {
            self.stage.reaches("two-pauses");
        }
    }

    /// Checks how workers have ended, and what they left behind.
    fn look_at_workers(&mut self) {
        let kinds = self.plan.setup.catalogue.types.values().map(|kind| kind.vcpus);
        let smallest = kinds.min().unwrap_or(1);
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Some((how, left)) = slot.look((&self.stage, &self.network), self.over.is_none())
            else {
                continue;
            };
            let facts = WorkerEndFacts {
                coordinators: &self.coordinator_ends,
                has_refused: self.host.disk.has_ever_refused(),
                is_paused: self.paused.is_some(),
                place,
                name: &slot.plan().name,
                millicores: slot.plan().millicores,
                held_up: &self.held_up,
                now_us: self.stage.now_us(),
                hold: Duration::from_millis(self.plan.hold),
                smallest,
                had_another: slot.started > 1,
                is_gone: self.over.is_some(),
            };
            let looked = self.stage.with_oracle(|oracle| worker_end(&facts, &how, oracle.steps()));
            if let Err((invariant, what)) = looked {
                self.stage.violated(invariant, what);
            }
            if left != Leftovers::default() {
                let why = format!("{} has ended ({how}) and has {left:?} left", slot.name());
                self.stage.violated(Invariant::NothingLeft, why);
            }
        }
    }

    /// Sets the time of disk operations back to that of the plan.
    fn disk_is_quick_again(&mut self) {
        self.goes_on = None;
        self.host.slow.store(self.plan.slow_sync * 1_000, Ordering::Relaxed);
    }

    /// Starts a coordinator; faults may hit it while it starts up.
    fn start(&mut self) {
        self.starts = None;
        // Another process does not stand still.
        self.disk_is_quick_again();
        self.write_seals();
        let generation = self.stage.coordinator_starts();
        self.generation = generation;
        self.played.coordinators += 1;
        let (stage, network) = (self.stage.clone(), self.network.clone());
        let present = self.desk.clone();
        let serves = move |desk: Arc<WorkerDesk>| {
            if stage.lives(generation) {
                present.set(Arc::clone(&desk), generation);
                network.serve(desk, generation);
            }
        };
        self.coordinator = Some(start(self.plan, &self.host, &self.folder, generation, serves));
    }

    /// Writes the log's seal to the run's folder, for programs that read it there.
    fn write_seals(&self) {
        if let Err(error) = self.host.disk.write_seals() {
            self.disk_fails(&error);
        }
    }

    /// Notes that the real disk below the simulated one has failed.
    fn disk_fails(&self, error: &std::io::Error) {
        self.stage.violated(Invariant::NoFailure, format!("the simulator's disk: {error}"));
    }

    /// Notes that the disk has damaged a stored checkpoint.
    fn is_damaged(&self, (task, number, attempt): DamagedCheckpoint) {
        self.stage.note(format_args!("{task}, {number} of {attempt} is damaged on the disk"));
        self.stage.with_oracle(|oracle| oracle.checkpoint_torn(task, number, attempt));
    }

    /// Has the log sealed again in its present state, as the error tells the user, if the disk has damaged its seal.
    /// Returns whether it was sealed.
    fn reseal(&self) -> bool {
        if !self.host.disk.has_damaged_seal() {
            return false;
        }
        self.write_seals();
        let log = self.folder.join(dormouse_log::FILE);
        let sealed = dormouse_log::reseal(&log).map_err(|error| error.to_string());
        self.stage.note(format_args!("the log is sealed as it is: {sealed:?}"));
        match sealed {
            Ok(_) => {
                if let Err(error) = self.host.disk.read_seals() {
                    self.disk_fails(&error);
                }
            }
            Err(why) => self.stage.violated(Invariant::NoFailure, why),
        }
        true
    }

    /// Counts a fault of this kind that was carried out.
    fn count(&mut self, name: &'static str) {
        *self.played.faults.entry(name).or_default() += 1;
    }

    /// Checks the run's clock in the log against the time that has passed.
    fn look_at_clock(&self) {
        let speedup = speedup(self.plan);
        let passed = Duration::from_micros(self.stage.now_us()) + self.ahead;
        let looked = self.stage.with_oracle(|oracle| clock(speedup, passed, oracle.steps()));
        if let Err((invariant, what)) = looked {
            self.stage.violated(invariant, what);
        }
    }

    /// Checks that the store has the checkpoints that the log names.
    fn look_at_store(&self) {
        let store = self.folder.join("checkpoints");
        if let Err((invariant, what)) = self.stage.with_oracle(|oracle| oracle.stored(&store)) {
            self.stage.violated(invariant, what);
        }
    }

    /// Carries out the planned death of the coordinator, whose point was reached.
    fn crash(&mut self) {
        let Some(death) = self.stage.take_death() else { return };
        self.count(death.name);
        if let Some(process) = self.coordinator.take() {
            process.kill();
        }
        self.network.gone(death.power.is_some());
        self.look_at_store();
        if let Some(loss) = death.power {
            match self.host.disk.power_cut(&loss, &mut self.chance) {
                Ok(damaged) => damaged.into_iter().for_each(|which| self.is_damaged(which)),
                Err(error) => self.disk_fails(&error),
            }
        }
        self.comes_back_after(Duration::from_millis(death.down));
    }

    /// Schedules the start of the next coordinator; until then no worker is heard.
    fn comes_back_after(&mut self, down: Duration) {
        self.hold_up(None, down);
        self.starts = Some(Instant::now() + down);
    }

    /// Notes that a worker (or each, if `None`) is not heard for this time and the time until it is connected again.
    fn hold_up(&mut self, worker: Option<usize>, lasts: Duration) {
        let again = Duration::from_millis(2 * self.plan.lost_after) + REDIAL;
        self.held_up.add(worker, self.stage.now_us(), lasts + again);
    }

    /// Handles the end of the coordinator's process: the run is over, or there was an error.
    fn ended(&mut self, ended: Result<(), CoordinatorError>) {
        let process = self.coordinator.take();
        if process.is_some_and(|process| process.has_begun()) {
            self.failed_starts = 0;
        }
        match ended {
            Ok(()) => {
                self.stage.coordinator_ends("the run is over");
                self.network.gone(false);
                self.over = Some(Instant::now());
            }
            Err(error) => self.exit(&error),
        }
    }

    /// Handles an error with which the coordinator's process ended; its user starts it again.
    fn exit(&mut self, error: &CoordinatorError) {
        // Where the run's folder is differs from one run of a seed to the next.
        let why = error.to_string().replace(&*self.folder.to_string_lossy(), "RUN");
        self.stage.coordinator_ends(&why);
        if self.host.disk.has_damaged_log() && matches!(error, CoordinatorError::Log(_)) {
            self.played.is_refused = true;
            return;
        }
        self.coordinator_ends.push(error.to_string());
        self.network.gone(false);
        self.look_at_store();
        let is_explained = match error {
            CoordinatorError::Paused { .. } => self.paused == Some(self.generation),
            CoordinatorError::Log(LogError::NotAsSealed { .. }) => self.reseal(),
            CoordinatorError::Log(_) | CoordinatorError::Output { .. } => {
                self.host.disk.has_refused(self.generation)
            }
            _ => false,
        };
        self.failed_starts += 1;
        if !is_explained || self.failed_starts > FAILED_STARTS {
            self.stage.violated(Invariant::NoFailure, why);
            return;
        }
        let down = if let CoordinatorError::Paused { .. } = error {
            self.count("user-pause");
            self.down_for_pause.take()
        } else if self.host.disk.is_broken() {
            self.count("log-error");
            self.down_for_disk.take()
        } else {
            None
        };
        self.host.disk.is_mended();
        self.comes_back_after(Duration::from_millis(down.unwrap_or(1_000)));
    }

    /// Carries out a fault and counts it, unless its target does not exist. Deaths and ends of the coordinator are
    /// counted when they occur.
    fn happen(&mut self, fault: &Fault) {
        if let Some(death) = Death::from_fault(fault) {
            self.stage.arm(death);
        } else if self.hits(fault) {
            self.count(fault.name());
            self.hold_up_by(fault);
        }
    }

    /// Notes for how long a fault delays the messages of its worker, or of all workers.
    fn hold_up_by(&mut self, fault: &Fault) {
        let lasts = match fault {
            // A piece of work on the disk may have begun by its end, and takes twice as long.
            Fault::CoordinatorPause { lasts } => 3 * lasts,
            Fault::WorkerPause { lasts, .. }
            | Fault::Delay { lasts, .. }
            | Fault::Partition { lasts, .. } => *lasts,
            Fault::LateMessages { by, .. } => *by,
            Fault::Break { .. } => 0,
            _ => return,
        };
        self.hold_up(fault.worker(), Duration::from_millis(lasts));
    }

    /// Carries out a fault that is not a death of the coordinator; returns whether it has hit anything by now.
    fn hits(&mut self, fault: &Fault) -> bool {
        let until = |lasts: &Millis| self.stage.now_us() + lasts * 1_000;
        match fault {
            Fault::LogFull { lasts } => self.host.disk.log_is_full_until(until(lasts)),
            Fault::Rot => {
                let rotten = rot_checkpoint(&self.folder.join("checkpoints"), &mut self.chance);
                match rotten {
                    Ok(None) => return false,
                    Ok(Some(which)) => self.is_damaged(which),
                    Err(error) => self.disk_fails(&error),
                }
            }
            Fault::StoreFull { lasts } => self.host.disk.store_is_full_until(until(lasts)),
            Fault::LogError { after, down } => {
                self.host.disk.fails_after(*after);
                self.down_for_disk = Some(*down);
                return false;
            }
            Fault::CoordinatorPause { lasts } => {
                let lasts = Duration::from_millis(*lasts);
                let until = Instant::now() + lasts;
                // A shorter pause does not end a longer one.
                if self.goes_on.is_some_and(|goes_on| goes_on > until) || !self.network.pause(lasts)
                {
                    return false;
                }
                self.goes_on = Some(until);
                // Half of it passes before the work: none is done before the pause is over.
                let us = u64::try_from(2 * lasts.as_micros()).unwrap_or(u64::MAX);
                self.host.slow.store(us, Ordering::Relaxed);
            }
            Fault::ClockJump { by } => self.set_clock(*by),
            Fault::UserPause { down } => {
                if let Some(process) = &self.coordinator {
                    self.down_for_pause = Some(*down);
                    self.paused = Some(self.generation);
                    process.pause.cancel();
                }
                return false;
            }
            Fault::UserCancel => match &self.coordinator {
                Some(process) => {
                    self.is_cancelled = true;
                    process.cancel.cancel();
                }
                None => return false,
            },
            _ => return self.hits_worker(fault),
        }
        true
    }

    /// Carries out a fault of a worker or of its connections; returns whether the worker is there.
    fn hits_worker(&mut self, fault: &Fault) -> bool {
        let millis = |many: &Millis| Duration::from_millis(*many);
        let has_begun = self.has_begun();
        let Some(slot) = fault.worker().and_then(|worker| self.slots.get_mut(worker)) else {
            return false;
        };
        let (network, name) = (&self.network, slot.name().to_owned());
        match fault {
            Fault::WorkerKill { down, has_certificate, .. } => {
                // A run that has not begun waits for each of its workers, whose user sees to it.
                let down = if has_begun { *down } else { Some(down.unwrap_or(1_000)) };
                return slot.kill(network, down.map(Duration::from_millis), *has_certificate);
            }
            Fault::WorkerPause { worker, lasts } => {
                let stands = slot.pause(millis(lasts));
                if stands {
                    self.stands_still(*worker, millis(lasts));
                }
                return stands;
            }
            Fault::Break { hears, .. } => return network.break_up(&name, *hears),
            Fault::LateMessages { by, .. } => return network.break_late(&name, millis(by)),
            Fault::Delay { lasts, by, .. } => network.delay(&name, millis(by), millis(lasts)),
            Fault::Partition { lasts, way, .. } => network.partition(&name, *way, millis(lasts)),
            Fault::Doubled { lasts, way, .. } => network.double(&name, *way, millis(lasts)),
            _ => return false,
        }
        true
    }

    /// Moves the wall clock by this number of milliseconds.
    fn set_clock(&mut self, by: i64) {
        let by_us = by.unsigned_abs() * 1_000;
        let wall = &self.host.wall;
        let now = wall.load(Ordering::Relaxed);
        if by < 0 {
            return wall.store(now.saturating_sub(by_us), Ordering::Relaxed);
        }
        // A run's VMs go on for no longer than that without a coordinator.
        self.ahead += Duration::from_micros(by_us).min(Duration::from_millis(self.plan.hold));
        wall.store(now + by_us, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        let is_begin = |step: &Step| step.event == Event::Begin;
        self.stage.with_oracle(|oracle| oracle.steps().iter().any(is_begin))
    }

    fn is_all_over(&self) -> bool {
        self.over.is_some() && self.slots.iter().all(Slot::is_away)
    }

    /// The state of the run and what it waits for, in words, to find out why it does not end.
    fn state(&self) -> String {
        let (steps, last, left) = self.stage.with_oracle(|oracle| {
            let steps = oracle.steps();
            let last = steps.last().map(|step| format!("{:?} at {}", step.event, step.at));
            (steps.len(), last.unwrap_or_default(), unfinished(oracle.run(), steps))
        });
        let away: Vec<_> =
            self.slots.iter().filter(|slot| slot.is_away()).map(Slot::name).collect();
        let coordinator = match &self.coordinator {
            Some(process) if process.has_begun() => "there",
            Some(_) => "beginning",
            None => "away",
        };
        format!(
            "{left}; {steps} steps, the last {last}; coordinator: {coordinator}; workers away: {away:?}"
        )
    }

    /// Handles a run that is not over in time, which is excused only if a worker conceals the end of an attempt.
    fn is_late(&mut self) {
        let miscounting = self.plan.particulars().miscounting;
        self.played.is_withheld = self
            .stage
            .with_oracle(|oracle| waits_only_for(&miscounting, oracle.run(), oracle.steps()));
        if self.played.is_withheld {
            self.stage.note(format_args!("a worker keeps the end of an attempt to itself"));
        } else {
            self.stage.violated(Invariant::Progress, self.state());
        }
    }

    /// Checks the run once everything is over.
    fn finish(&mut self) {
        self.played.has_ended = true;
        let held_up = self.held_up.longest() + Duration::from_millis(2 * self.plan.slow_sync);
        let facts = end_facts(self.plan, self.is_cancelled, self.paused.is_some());
        let now_us = self.stage.now_us();
        let lateness = speedup(self.plan).to_emulated(LATENESS + held_up);
        let checked = self.stage.with_oracle(|oracle| {
            oracle.finish(now_us)?;
            ending(&facts, oracle.steps())?;
            let (setup, steps) = (&self.plan.setup, oracle.steps());
            let is_lie = |step: &Step| oracle.is_a_liars(step);
            bills(setup, steps)?;
            credits(setup, lateness, steps, is_lie)?;
            let (tenants, jobs) = (self.plan.schedulers.tenants(), self.plan.schedulers.jobs);
            accounts(setup, (&tenants, jobs), lateness, steps, is_lie)
        });
        let checked = checked.and_then(|()| leftovers(&self.folder));
        if let Err((invariant, what)) = checked {
            self.stage.violated(invariant, what);
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Waits for the end of the coordinator's process, for ever if there is none.
async fn ended(process: &mut Option<Process>) -> Result<(), CoordinatorError> {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
