//! The oracle: looks at every durable step, every message that leaves and every deed of a machine.

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

mod accounts;
mod acknowledged;
mod attempts;
mod checkpoints;
mod clock;
mod commands;
mod ending;
mod held_up;
mod hosts;
pub mod leftovers;
mod log;
mod returned;
mod verified;
mod worker_end;

use acknowledged::Acknowledged;
use attempts::Attempts;
use checkpoints::{Checkpoints, are_of_one_history};
use commands::Commands;
use hosts::LyingHosts;
use log::LogFold;
use returned::Returned;
use verified::Verified;

pub use accounts::accounts;
pub use clock::clock;
pub use ending::{EndFacts, ending};
pub use held_up::HeldUp;
pub use worker_end::{WorkerEndFacts, worker_end};

/// A broken invariant and the particulars.
pub type Broken = (Invariant, String);

/// Makes the run that a log is of, as it is before its first event.
pub type MakeRun = Arc<dyn Fn() -> Run + Send + Sync>;

/// What of a plan its oracle has to know.
#[derive(Clone, Debug, Default)]
pub struct Particulars {
    /// The number of tasks, or of parallel jobs.
    pub tasks: u32,
    /// The names of the workers that lie.
    pub liars: BTreeSet<String>,
    /// The names of the workers that lie about the numbers of their reports.
    pub miscounting: BTreeSet<String>,
    /// The numbers of the parallel jobs whose answers nobody can check: they have too many processes and phases.
    pub unchecked: BTreeSet<u64>,
}

/// The invariants of one run, and what they need to know of it.
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
    lying: LyingHosts,
}

impl Oracle {
    /// The oracle of a run that `make` makes, whose machines tell this witness what they do.
    #[must_use]
    pub fn new(make: MakeRun, witness: Witness, of: Particulars) -> Self {
        Self {
            witness,
            log: LogFold::new(make),
            commands: Commands::default(),
            acknowledged: Acknowledged::new(of.miscounting),
            attempts: Attempts::new(of.tasks),
            checkpoints: Checkpoints::default(),
            verified: Verified::new(of.unchecked),
            returned: Returned::default(),
            store: None,
            lying: LyingHosts::new(of.liars),
        }
    }

    /// Another coordinator begins to read the log.
    pub fn coordinator_starts(&mut self) {
        self.log.coordinator_starts();
    }

    /// Takes in what machines did since the last time, and what came to be durable.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn see(
        &mut self,
        changes: &[LogChange],
        mut note: impl FnMut(&Deed),
    ) -> Result<(), Broken> {
        for deed in self.witness.take() {
            note(&deed);
            self.verified.did(&deed);
            self.acknowledged.did(&deed);
            self.commands.did(&deed)?;
            self.attempts.did(&deed)?;
            self.checkpoints.did(&deed)?;
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
            }
            for (step, commands) in steps {
                self.commands.see(&step, commands);
                self.acknowledged.see(&step)?;
                self.lying.see(&step);
                self.attempts.see(&step)?;
                self.checkpoints.see(&step, &self.lying)?;
                self.verified.see(&step, &self.lying)?;
                self.returned.see(&step, by)?;
                self.log.keep(step);
            }
        }
        Ok(())
    }

    /// A message leaves for a worker.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn leaves(&mut self, to: &WorkerLife, message: &v1::ToWorker) -> Result<(), Broken> {
        // What was said before it left counts.
        self.see(&[], |_| {})?;
        self.acknowledged.leaves(to, message.ack)?;
        self.commands.leaves(to, message)
    }

    /// A worker says hello to the coordinator of this generation.
    pub fn hears(&mut self, generation: u64, life: &WorkerLife) {
        self.returned.hears(generation, life);
    }

    /// Checkpoints are stored in this folder.
    pub fn stores_in(&mut self, folder: PathBuf) {
        self.store = Some(folder);
    }

    /// The coordinator says that it has stored a checkpoint of a task.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn has_stored(&self, task: TaskId) -> Result<(), Broken> {
        self.store.as_ref().map_or(Ok(()), |folder| are_of_one_history(folder, task))
    }

    /// A coordinator has died, and all that it had stored in this folder is still there.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn stored(&self, checkpoints: &Path) -> Result<(), Broken> {
        let is_over = |effect: &Effect| matches!(effect, Effect::Over { .. });
        if self.log.steps().iter().any(|step| step.effects.iter().any(is_over)) {
            return Ok(());
        }
        self.checkpoints.are_stored(checkpoints)
    }

    /// A power cut tore the coordinator's copy of a checkpoint, or left nothing of it.
    pub fn checkpoint_torn(&mut self, task: TaskId, number: CheckpointSeq, attempt: Attempt) {
        self.checkpoints.torn(task, number, attempt);
    }

    /// The steps that are durable.
    #[must_use]
    pub fn steps(&self) -> &[dormouse_model::Step] {
        self.log.steps()
    }

    /// The run that the durable log makes, once that has a header.
    #[must_use]
    pub const fn run(&self) -> Option<&Run> {
        self.log.run()
    }

    /// How many times a machine has restored an image.
    #[must_use]
    pub const fn restored(&self) -> u64 {
        self.checkpoints.restored()
    }

    /// Looks at a run that has come to its end, by what is durable.
    ///
    /// # Errors
    ///
    /// An invariant is broken.
    pub fn finish(&mut self) -> Result<(), Broken> {
        self.see(&[], |_| {})?;
        self.log.finish()?;
        self.attempts.finish()
    }

    /// Whether the event of a step is what a worker says that lies.
    #[must_use]
    pub fn is_a_liars(&self, step: &dormouse_model::Step) -> bool {
        self.lying.says(step)
    }
}
