//! The oracle: checks every durable step, every message that leaves, and every action of a machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_engine::Run;
use dormouse_identity::WorkerLife;
use dormouse_model::Effect;
use dormouse_proto::v1;
use dormouse_units::{Attempt, CheckpointSeq, TaskId};

use crate::invariant::Invariant;
use crate::log_change::LogChange;
use crate::witness::{Deed, Witness};

mod account_lines;
mod accounts;
mod acknowledged;
mod asked_faults;
mod attempts;
mod bills;
mod calls;
mod checkpoints;
mod clock;
mod commands;
mod credits;
mod ending;
mod frozen;
mod held_up;
mod hosts;
mod instants;
pub mod leftovers;
mod log;
mod reports;
mod returned;
mod silence;
mod stored;
mod thawed_credits;
mod verified;
mod worker_end;

use account_lines::AccountLines;
use acknowledged::Acknowledged;
use asked_faults::AskedFaults;
use attempts::Attempts;
use calls::Calls;
use checkpoints::{Checkpoints, are_of_one_history};
use commands::Commands;
use frozen::FrozenVms;
use hosts::LyingHosts;
use instants::Instants;
use log::LogFold;
use reports::ReportedDeeds;
use returned::Returned;
use silence::Silence;
use thawed_credits::ThawedCredits;
use verified::Verified;

pub use accounts::accounts;
pub use bills::bills;
pub use clock::clock;
pub use credits::credits;
pub use ending::{EndFacts, ending};
pub use held_up::HeldUp;
pub use worker_end::{WorkerEndFacts, worker_end};

/// A broken invariant, with the details.
pub type Broken = (Invariant, String);

/// Makes the run that a log belongs to, in its state before the first event.
pub type MakeRun = Arc<dyn Fn() -> Run + Send + Sync>;

/// The facts about a plan that its oracle needs.
#[derive(Clone, Debug, Default)]
pub struct Particulars {
    /// The number of tasks, or of parallel jobs.
    pub tasks: u32,
    /// The names of the workers that lie.
    pub liars: BTreeSet<String>,
    /// The names of the workers that lie about the numbers of their reports.
    pub miscounting: BTreeSet<String>,
    /// The numbers of the parallel jobs whose answers can't be checked, since they have too many processes and phases.
    pub unchecked: BTreeSet<u64>,
    /// The time of silence after which a worker counts as lost, in microseconds.
    pub lost_after_us: u64,
    /// Whether more jobs may come from outside until the run is closed.
    pub is_open: bool,
    /// Emulated time that passes in a real one.
    pub speedup: u32,
    /// Number of the plan's jobs that wait for no other, in a run in which others wait for jobs.
    pub independent: Option<usize>,
}

/// The checks of all invariants of one run, with their state.
#[derive(Debug)]
pub struct Oracle {
    witness: Witness,
    log: LogFold,
    commands: Commands,
    acknowledged: Acknowledged,
    attempts: Attempts,
    checkpoints: Checkpoints,
    verified: Verified,
    returned: Returned,
    /// The folder in which the coordinator stores checkpoints, once it is known.
    store: Option<PathBuf>,
    /// The number of tasks and parallel jobs; the next field says whether users submit some of these until they close
    /// the run.
    tasks: u32,
    is_open: bool,
    lying: LyingHosts,
    frozen: FrozenVms,
    reports: ReportedDeeds,
    thawed_credits: ThawedCredits,
    calls: Calls,
    silence: Silence,
    accounts: AccountLines,
    instants: Instants,
    asked_faults: AskedFaults,
    /// Pauses that the experiment's faults caused since the last call: the worker's name and the microseconds.
    paused: Vec<(String, u64)>,
}

impl Oracle {
    /// The oracle of a run that `make` makes; machines report their actions to `witness`.
    #[must_use]
    pub fn new(make: MakeRun, witness: Witness, of: Particulars) -> Self {
        Self {
            witness,
            log: LogFold::new(make, of.independent, of.is_open),
            commands: Commands::default(),
            acknowledged: Acknowledged::new(of.miscounting),
            attempts: Attempts::new(of.tasks),
            checkpoints: Checkpoints::default(),
            verified: Verified::new(of.unchecked),
            returned: Returned::default(),
            store: None,
            tasks: of.tasks,
            is_open: of.is_open,
            frozen: FrozenVms::new(of.liars.clone()),
            reports: ReportedDeeds::new(of.liars.clone(), of.speedup),
            thawed_credits: ThawedCredits::new(of.liars.clone(), of.speedup),
            lying: LyingHosts::new(of.liars),
            calls: Calls::default(),
            silence: Silence::new(of.lost_after_us),
            accounts: AccountLines::default(),
            instants: Instants::default(),
            asked_faults: AskedFaults::default(),
            paused: Vec::new(),
        }
    }

    /// Notes that another coordinator begins to read the log, so many microseconds after the run's start.
    pub fn coordinator_starts(&mut self, now_us: u64) {
        self.log.coordinator_starts();
        self.silence.coordinator_starts(now_us);
    }

    /// Checks what machines have done since the last call, and changes of the log that have become durable.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn see(
        &mut self,
        changes: &[LogChange],
        now_us: u64,
        mut note: impl FnMut(&Deed),
    ) -> Result<(), Broken> {
        for deed in self.witness.take() {
            note(&deed);
            self.note_pause(&deed);
            self.verified.did(&deed);
            self.acknowledged.did(&deed);
            self.commands.did(&deed)?;
            self.attempts.did(&deed)?;
            self.checkpoints.did(&deed)?;
            self.frozen.did(&deed)?;
            self.reports.did(&deed)?;
            self.thawed_credits.did(&deed)?;
        }
        for change in changes {
            let steps = self.log.see(change)?;
            let by = change.by();
            if self.log.has_begun_anew() {
                self.commands = Commands::default();
                self.acknowledged.log_begins_anew();
                self.attempts.log_begins_anew();
                self.verified.log_begins_anew();
                self.returned.log_begins_anew();
                self.lying.log_begins_anew();
                self.calls.log_begins_anew();
                self.accounts.log_begins_anew();
                self.instants.log_begins_anew();
                self.asked_faults.log_begins_anew();
            }
            for (step, commands) in steps {
                self.commands.see(&step, commands);
                self.acknowledged.see(&step)?;
                self.lying.see(&step)?;
                self.attempts.see(&step)?;
                self.checkpoints.see(&step, &self.lying)?;
                self.verified.see(&step, &self.lying)?;
                self.returned.see(&step, by)?;
                self.calls.see(&step)?;
                self.silence.see(&step, by, now_us)?;
                self.accounts.see(&step, &self.lying)?;
                self.instants.see(&step)?;
                if !self.lying.says(&step) {
                    self.asked_faults.see(&step)?;
                }
                self.log.keep(step);
            }
        }
        Ok(())
    }

    /// Checks a message that leaves for a worker.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn leaves(
        &mut self,
        to: &WorkerLife,
        message: &v1::ToWorker,
        now_us: u64,
    ) -> Result<(), Broken> {
        // What was said before it left counts.
        self.see(&[], now_us, |_| {})?;
        self.acknowledged.leaves(to, message.ack)?;
        self.commands.leaves(to, message)
    }

    /// Notes that a worker says hello to the coordinator of this generation.
    pub fn hears(&mut self, generation: u64, life: &WorkerLife) {
        self.returned.hears(generation, life);
    }

    /// Notes that a message of a worker's session arrives over this connection.
    pub fn arrives(&mut self, life: &WorkerLife, connection: u64, is_hello: bool, now_us: u64) {
        self.silence.arrives(life, connection, is_hello, now_us);
    }

    /// Checks the answer to a user of an open run that a job was accepted under this key, with this number.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn submission_answered(&self, key: &str, number: u64) -> Result<(), Broken> {
        self.calls.is_answered(key, number)
    }

    /// Checks the answer to a user of an open run that the run is closed.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn close_answered(&self) -> Result<(), Broken> {
        self.calls.close_is_answered()
    }

    /// Pauses that the experiment's faults caused since the last call: the name of each worker, and the microseconds
    /// for which it is suspended.
    pub fn take_paused(&mut self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.paused)
    }

    fn note_pause(&mut self, deed: &Deed) {
        if let Deed::Obeyed { worker, command, .. } = deed
            && let Some(v1::command::Command::Fault(fault)) = &command.command
            && let Some(v1::fault::Kind::Pause(_)) = &fault.kind
        {
            self.paused.push((worker.clone(), fault.real_lasts_us));
        }
    }

    /// The newest attempt at a task that the durable log has.
    #[must_use]
    pub fn newest_attempt(&self, task: TaskId) -> Option<Attempt> {
        self.attempts.newest(task)
    }

    /// How often a crash separated an attempt's account from its report in the log.
    #[must_use]
    pub const fn parted_accounts(&self) -> u64 {
        self.accounts.parted()
    }

    /// Sets the folder in which the coordinator stores checkpoints.
    pub fn stores_in(&mut self, folder: PathBuf) {
        self.store = Some(folder);
    }

    /// Checks a coordinator's answer that it has stored a checkpoint of this attempt; `newest` was the newest attempt
    /// at the task in the log when the checkpoint was sent.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn has_stored(
        &mut self,
        (task, number, attempt): (TaskId, CheckpointSeq, Attempt),
        newest: Option<Attempt>,
    ) -> Result<(), Broken> {
        self.checkpoints.has_stored(task, number, attempt);
        if let Some(newest) = newest.filter(|newest| *newest > attempt) {
            let why = format!(
                "a checkpoint of {task}, {attempt} is stored that set out when {newest} was sent"
            );
            return Err((Invariant::StoredWhole, why));
        }
        let Some(folder) = &self.store else { return Ok(()) };
        are_of_one_history(folder, task)?;
        self.are_whole(folder, task)
    }

    fn are_whole(&self, folder: &Path, task: TaskId) -> Result<(), Broken> {
        let may_be_damaged = |number, by| self.checkpoints.may_be_damaged(task, number, by);
        stored::are_whole(folder, task, may_be_damaged)
    }

    /// Checks that the checkpoints in this folder are still there after a coordinator has died.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn stored(&self, checkpoints: &Path) -> Result<(), Broken> {
        let is_over = |effect: &Effect| matches!(effect, Effect::Over { .. });
        if self.log.steps().iter().any(|step| step.effects.iter().any(is_over)) {
            return Ok(());
        }
        self.checkpoints.are_stored(checkpoints)?;
        (0..self.tasks).map(TaskId::new).try_for_each(|task| self.are_whole(checkpoints, task))
    }

    /// Notes that a power cut damaged or removed the coordinator's copy of a checkpoint.
    pub fn checkpoint_torn(&mut self, task: TaskId, number: CheckpointSeq, attempt: Attempt) {
        self.checkpoints.torn(task, number, attempt);
    }

    /// The durable steps of the log.
    #[must_use]
    pub fn steps(&self) -> &[dormouse_model::Step] {
        self.log.steps()
    }

    /// The run that results from the durable log; `None` until that has a header.
    #[must_use]
    pub const fn run(&self) -> Option<&Run> {
        self.log.run()
    }

    /// How many times a machine has restored an image.
    #[must_use]
    pub const fn restored(&self) -> u64 {
        self.checkpoints.restored()
    }

    /// Checks a run that has ended, by its durable log.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn finish(&mut self, now_us: u64) -> Result<(), Broken> {
        self.see(&[], now_us, |_| {})?;
        self.log.finish()?;
        self.attempts.finish(self.is_open && !self.calls.is_closed())
    }

    /// Whether the event of a step is a report from a worker that lies.
    #[must_use]
    pub fn is_a_liars(&self, step: &dormouse_model::Step) -> bool {
        self.lying.says(step)
    }
}
