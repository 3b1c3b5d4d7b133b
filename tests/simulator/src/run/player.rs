//! One run under way: its coordinators, its workers, and what goes wrong with them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dormouse_coordinator::CoordinatorError;
use dormouse_model::{Event, Step};
use dormouse_units::{Attempt, CheckpointSeq, TaskId};
use tokio::time::Instant;

use super::Played;
use super::coordinator::{BEGINNING, Host, Process, speedup, start};
use super::workers::Slot;
use crate::disk::SimulatedDisk;
use crate::draw::Draw;
use crate::faults::{CrashPoint, Fault, Millis};
use crate::invariant::Invariant;
use crate::network::Network;
use crate::oracle::{
    EndFacts, HeldUp, WorkerEndFacts, accounts, clock, ending, leftovers::leftovers, worker_end,
};
use crate::plan::{Plan, Scheduler};
use crate::stage::Stage;
use crate::witness::Witness;
use crate::worker::Leftovers;

/// How often workers are looked after.
const LOOK: Duration = Duration::from_millis(250);
/// How long after the end of its run a worker may be there.
const CLEAN_UP: Duration = Duration::from_secs(60);
/// Starts of coordinators in a row that may fail before nothing is expected any more.
const FAILED_STARTS: u32 = 20;

/// The longest pause of a worker between two attempts to reach its coordinator.
const REDIAL: Duration = Duration::from_secs(1);

/// What is to happen to a coordinator's host when the coordinator has come to its point.
#[derive(Clone, Copy, Debug)]
struct Death {
    down: Millis,
    /// Part of the unsynced writes that is kept, bytes of garbage, and whether checkpoints are torn.
    power: Option<(u32, u32, bool)>,
}

/// The player of one plan.
#[derive(Debug)]
pub(super) struct Player<'a> {
    plan: &'a Plan,
    stage: Stage,
    witness: Witness,
    folder: PathBuf,
    host: Host,
    network: Network,
    chance: Draw,
    coordinator: Option<Process>,
    /// When the next coordinator is started.
    starts: Option<Instant>,
    failed_starts: u32,
    death: Option<Death>,
    slots: Vec<Slot>,
    /// The place of the next fault.
    next: usize,
    over: Option<Instant>,
    /// What a run's clock may be ahead by, since its wall clock was set forward.
    ahead: Duration,
    /// What kept workers from being heard.
    held_up: HeldUp,
    /// The coordinator that is there, or was there last.
    generation: u64,
    /// The coordinator that its user has paused.
    paused: Option<u64>,
    /// Whether its user has ended the run.
    is_cancelled: bool,
    /// The words with which coordinators ended that were not killed.
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
        let network = Network::new(stage.clone(), plan.seed);
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
            coordinator: None,
            failed_starts: 0,
            death: None,
            next: 0,
            over: None,
            ahead: Duration::ZERO,
            held_up: HeldUp::default(),
            generation: 0,
            paused: None,
            is_cancelled: false,
            coordinator_ends: Vec::new(),
            played: Played::default(),
        }
    }

    /// Plays to the end, or to the first violation.
    pub(super) async fn play(mut self) -> Played {
        let deadline = self.stage.instant(self.plan.patience());
        while self.stage.violation().is_none() {
            if Instant::now() >= deadline {
                self.stage.violated(Invariant::Progress, self.state());
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
                () = tokio::time::sleep_until(wakes) => self.tick().await,
            }
        }
        if let Some(process) = self.coordinator.take() {
            self.stage.coordinator_ends("the simulation ends");
            process.kill();
        }
        self.played.workers = self.slots.iter().map(|slot| slot.started).sum();
        self.played
    }

    fn wakes(&self) -> Instant {
        let fault = self.plan.faults.get(self.next).map(|it| self.stage.instant(it.at));
        let fault = fault.filter(|_| self.over.is_none());
        let slots = self.slots.iter().filter_map(Slot::due).filter(|_| self.over.is_none());
        let all = slots.chain(fault).chain(self.starts);
        all.fold(Instant::now() + LOOK, Instant::min)
    }

    /// Does all that is due.
    async fn tick(&mut self) {
        let now = Instant::now();
        self.stage.look();
        self.look_at_clock();
        self.look_at_workers();
        for slot in &mut self.slots {
            if self.over.is_none() {
                slot.come(&self.network, &self.witness, &self.stage);
            }
        }
        if self.starts.is_some_and(|at| at <= now) {
            self.start().await;
        }
        while self.over.is_none()
            && let Some(next) = self.plan.faults.get(self.next)
            && self.stage.instant(next.at) <= now
        {
            self.next += 1;
            let name = next.fault.name();
            *self.played.faults.entry(name).or_default() += 1;
            self.stage.note(format_args!("fault {name}: {:?}", next.fault));
            self.happen(&next.fault);
        }
        if self.over.is_some_and(|over| now > over + CLEAN_UP) {
            let state = format!("the run is over, and workers are still there: {}", self.state());
            self.stage.violated(Invariant::NothingLeft, state);
        }
    }

    /// Looks at how workers have ended, and at what they left.
    fn look_at_workers(&mut self) {
        let kinds = self.plan.setup.catalogue.types.values().map(|kind| kind.vcpus);
        let smallest = match &self.plan.setup.jobs {
            Some(_) => self.plan.setup.space_of_jobs().processors,
            None => kinds.min().unwrap_or(1),
        };
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Some((how, left)) = slot.look(&self.stage, self.over.is_none()) else { continue };
            let facts = WorkerEndFacts {
                coordinators: &self.coordinator_ends,
                worker: (place, slot.plan()),
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

    async fn start(&mut self) {
        self.starts = None;
        let generation = self.stage.coordinator_starts();
        self.generation = generation;
        self.played.coordinators += 1;
        match start(self.plan, &self.host, &self.folder, generation).await {
            Ok(process) if self.stage.lives(generation) => {
                self.failed_starts = 0;
                let desk = Arc::clone(&process.desk);
                self.network.serve(desk, generation);
                self.coordinator = Some(process);
            }
            // It was killed while it began.
            Ok(process) => process.kill(),
            Err(error) if self.stage.lives(generation) => self.exit(&error),
            Err(_) => {}
        }
    }

    /// What the run's clock shows by the log, beside the time that has passed.
    fn look_at_clock(&self) {
        let speedup = speedup(self.plan);
        let passed = Duration::from_micros(self.stage.now_us()) + self.ahead;
        let looked = self.stage.with_oracle(|oracle| clock(speedup, passed, oracle.steps()));
        if let Err((invariant, what)) = looked {
            self.stage.violated(invariant, what);
        }
    }

    /// Looks for the checkpoints that the log has.
    fn look_at_store(&self) {
        let store = self.folder.join("checkpoints");
        if let Err((invariant, what)) = self.stage.with_oracle(|oracle| oracle.stored(&store)) {
            self.stage.violated(invariant, what);
        }
    }

    /// The coordinator has come to the point at which it was to die.
    fn crash(&mut self) {
        let death = self.death.take().unwrap_or(Death { down: 0, power: None });
        if let Some(process) = self.coordinator.take() {
            process.kill();
        }
        self.network.gone(death.power.is_some());
        self.look_at_store();
        if let Some((kept, garbage, tears)) = death.power {
            let cut = self.host.disk.power_cut(kept, garbage, &mut self.chance);
            let torn = if tears { self.tear_checkpoints() } else { Ok(()) };
            if let Err(error) = cut.and(torn) {
                self.stage.violated(Invariant::NoFailure, format!("the simulator's disk: {error}"));
            }
        }
        self.comes_back_after(Duration::from_millis(death.down));
    }

    /// The next coordinator is started after so long, and nobody is heard until then.
    fn comes_back_after(&mut self, down: Duration) {
        self.hold_up(None, down);
        self.starts = Some(Instant::now() + down);
    }

    /// A worker, or each, is not heard for so long, and for as long as it takes to find each other again.
    fn hold_up(&mut self, worker: Option<usize>, lasts: Duration) {
        let again = Duration::from_millis(2 * self.plan.lost_after) + REDIAL;
        self.held_up.add(worker, self.stage.now_us(), lasts + again);
    }

    /// What of the stored checkpoints a power cut has left: they are not synced.
    fn tear_checkpoints(&mut self) -> std::io::Result<()> {
        let mut files = Vec::new();
        let store = self.folder.join("checkpoints");
        for task in std::fs::read_dir(&store).into_iter().flatten() {
            for file in std::fs::read_dir(task?.path())? {
                files.push(file?.path());
            }
        }
        files.sort();
        for file in files {
            let bytes = std::fs::read(&file)?;
            match self.chance.below(4) {
                0 => std::fs::remove_file(&file)?,
                1 => std::fs::write(&file, &bytes[..bytes.len() / 2])?,
                2 => std::fs::write(&file, vec![0; bytes.len()])?,
                _ => continue,
            }
            if let Some((task, number, attempt)) = stored_checkpoint(&file) {
                self.stage.with_oracle(|oracle| oracle.checkpoint_torn(task, number, attempt));
            }
        }
        Ok(())
    }

    /// The coordinator's run has come to its end, or its process to an error.
    fn ended(&mut self, ended: Result<(), CoordinatorError>) {
        self.coordinator = None;
        match ended {
            Ok(()) => {
                self.stage.coordinator_ends("the run is over");
                self.network.gone(false);
                self.over = Some(Instant::now());
            }
            Err(error) => self.exit(&error),
        }
    }

    /// The coordinator's process has ended with this error; its user starts it again.
    fn exit(&mut self, error: &CoordinatorError) {
        // Where the run's folder is differs from one run of a seed to the next.
        let why = error.to_string().replace(&*self.folder.to_string_lossy(), "RUN");
        self.stage.coordinator_ends(&why);
        self.coordinator_ends.push(error.to_string());
        self.network.gone(false);
        self.look_at_store();
        let is_explained = match error {
            CoordinatorError::Paused { .. } => self.paused == Some(self.generation),
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
        self.host.disk.is_mended();
        let down = self.death.take().map_or(1_000, |death| death.down);
        self.comes_back_after(Duration::from_millis(down));
    }

    fn happen(&mut self, fault: &Fault) {
        let millis = Duration::from_millis;
        match *fault {
            Fault::WorkerPause { worker, lasts }
            | Fault::Delay { worker, lasts, .. }
            | Fault::Partition { worker, lasts, .. } => self.hold_up(Some(worker), millis(lasts)),
            Fault::LateMessages { worker, by } => self.hold_up(Some(worker), millis(by)),
            Fault::Break { worker, .. } => self.hold_up(Some(worker), Duration::ZERO),
            _ => {}
        }
        let until = |lasts: &Millis| self.stage.now_us() + lasts * 1_000;
        match fault {
            Fault::CoordinatorKill { point, down } => {
                self.die(*point, Death { down: *down, power: None });
            }
            Fault::PowerCut { point, down, kept, garbage, tears_checkpoints } => {
                let power = Some((*kept, *garbage, *tears_checkpoints));
                self.die(*point, Death { down: *down, power });
            }
            Fault::WorkerKill { worker, down, has_certificate } => {
                // A run that has not begun waits for each of its workers, whose user sees to it.
                let down = if self.has_begun() { *down } else { Some(down.unwrap_or(1_000)) };
                let (network, slot) = (&self.network, self.slots.get_mut(*worker));
                if let Some(slot) = slot {
                    slot.kill(network, down.map(millis), *has_certificate);
                }
            }
            Fault::WorkerPause { worker, lasts } => {
                if let Some(slot) = self.slots.get(*worker) {
                    slot.pause(millis(*lasts));
                }
            }
            Fault::Delay { worker, lasts, by } => {
                self.network.delay(&self.name(*worker), millis(*by), millis(*lasts));
            }
            Fault::Break { worker, hears } => self.network.break_up(&self.name(*worker), *hears),
            Fault::LateMessages { worker, by } => {
                self.network.break_late(&self.name(*worker), millis(*by));
            }
            Fault::Partition { worker, lasts, way } => {
                self.network.partition(&self.name(*worker), *way, millis(*lasts));
            }
            Fault::Doubled { worker, lasts, way } => {
                self.network.double(&self.name(*worker), *way, millis(*lasts));
            }
            Fault::LogFull { lasts } => self.host.disk.log_is_full_until(until(lasts)),
            Fault::StoreFull { lasts } => self.host.disk.store_is_full_until(until(lasts)),
            Fault::LogError { after, down } => {
                self.host.disk.fails_after(*after);
                self.death = Some(Death { down: *down, power: None });
            }
            Fault::ClockJump { by } => {
                let by = by.unsigned_abs() * 1_000 * u64::from(*by != 0);
                let wall = &self.host.wall;
                let now = wall.load(Ordering::Relaxed);
                let is_back = matches!(fault, Fault::ClockJump { by } if *by < 0);
                if !is_back {
                    // A run's VMs go on for no longer than that without a coordinator.
                    self.ahead += Duration::from_micros(by).min(millis(self.plan.hold));
                }
                let set = if is_back { now.saturating_sub(by) } else { now + by };
                wall.store(set, Ordering::Relaxed);
            }
            Fault::UserPause { down } => {
                if let Some(process) = &self.coordinator {
                    self.death = Some(Death { down: *down, power: None });
                    self.paused = Some(self.generation);
                    process.pause.cancel();
                }
            }
            Fault::UserCancel => {
                if let Some(process) = &self.coordinator {
                    self.is_cancelled = true;
                    process.cancel.cancel();
                }
            }
        }
    }

    fn die(&mut self, point: CrashPoint, death: Death) {
        // One that is away can't die.
        if self.coordinator.is_some() {
            self.death = Some(death);
            self.stage.crash_at(point);
        }
    }

    fn name(&self, worker: usize) -> String {
        self.slots.get(worker).map_or_else(String::new, |slot| slot.name().to_owned())
    }

    fn has_begun(&self) -> bool {
        let is_begin = |step: &Step| step.event == Event::Begin;
        self.stage.with_oracle(|oracle| oracle.steps().iter().any(is_begin))
    }

    fn is_all_over(&self) -> bool {
        self.over.is_some() && self.slots.iter().all(Slot::is_away)
    }

    /// How far the run has come, for whoever asks why it does not end.
    fn state(&self) -> String {
        let (steps, last) = self.stage.with_oracle(|oracle| {
            let steps = oracle.steps();
            let last = steps.last().map(|step| format!("{:?} at {}", step.event, step.at));
            (steps.len(), last.unwrap_or_default())
        });
        let away: Vec<_> =
            self.slots.iter().filter(|slot| slot.is_away()).map(Slot::name).collect();
        let is_there = self.coordinator.is_some();
        format!("{steps} steps, the last {last}; coordinator: {is_there}; workers away: {away:?}")
    }

    /// Looks at the run when all is over.
    fn finish(&mut self) {
        self.played.has_ended = true;
        let held_up = self.held_up.longest() + Duration::from_millis(2 * self.plan.slow_sync);
        let (jobs, bag) = match &self.plan.scheduler {
            Scheduler::Bag(config) => (None, Some((config.max_failures, config.max_retries))),
            Scheduler::Jobs(algorithm) => (Some((*algorithm, self.plan.seed)), None),
        };
        let facts = EndFacts {
            is_cancelled: self.is_cancelled,
            is_paused: self.paused.is_some(),
            bag,
            machine: jobs.map(|_| self.plan.setup.space_of_jobs().processors),
        };
        let checked = self.stage.with_oracle(|oracle| {
            oracle.finish()?;
            ending(&facts, oracle.steps())?;
            let (setup, speedup) = (&self.plan.setup, speedup(self.plan));
            let is_lie = |step: &Step| oracle.is_a_liars(step);
            accounts(setup, jobs, speedup, held_up, oracle.steps(), is_lie)
        });
        let checked = checked.and_then(|()| leftovers(&self.folder));
        if let Err((invariant, what)) = checked {
            self.stage.violated(invariant, what);
        }
    }
}

/// The checkpoint that is in a file of the coordinator's store: `TASK/NUMBER.ATTEMPT`.
fn stored_checkpoint(file: &Path) -> Option<(TaskId, CheckpointSeq, Attempt)> {
    let task = file.parent()?.file_name()?.to_str()?.parse().ok()?;
    let (number, attempt) = file.file_name()?.to_str()?.split_once('.')?;
    let (number, attempt) = (number.parse().ok()?, attempt.parse().ok()?);
    Some((TaskId::new(task), CheckpointSeq::new(number), Attempt::new(attempt)))
}

/// Waits for the end of the coordinator, for ever where there is none.
async fn ended(process: &mut Option<Process>) -> Result<(), CoordinatorError> {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
