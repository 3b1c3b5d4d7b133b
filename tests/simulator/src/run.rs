//! Plays one plan.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_engine::Run;
use dormouse_model::Effect;
use tokio::runtime::Builder;

use crate::invariant::{Invariant, Violation};
use crate::oracle::Oracle;
use crate::outcome::{Ending, Outcome};
use crate::plan::Plan;
use crate::stage::Stage;
use crate::trace::{Lines, Trace};
use crate::witness::Witness;

mod callers;
mod coordinator;
mod end_facts;
mod player;
mod unfinished;
mod workers;

use player::Player;

/// A folder in which runs are played, one after the other, with settings for what is kept of them.
#[derive(Clone, Debug)]
pub struct Playground {
    /// The folder in which each run has a folder of its own.
    pub root: PathBuf,
    /// What is done with the lines of traces.
    pub lines: Lines,
    /// Whether the folders of runs are kept.
    pub keeps: bool,
}

impl Playground {
    /// A playground in a folder in memory, if the system has one.
    #[must_use]
    pub fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self { root, lines: Lines::default(), keeps: false }
    }

    /// Plays a plan to its end.
    #[must_use]
    pub fn play(&self, plan: &Plan) -> Outcome {
        // A panic of the simulator's own, or of a part that nobody supervises, is a finding, too.
        match catch_unwind(AssertUnwindSafe(|| self.attempt(plan))) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => broken(plan, error.to_string()),
            Err(panic) => broken(plan, said(panic.as_ref())),
        }
    }

    fn attempt(&self, plan: &Plan) -> std::io::Result<Outcome> {
        let mut folder =
            tempfile::Builder::new().prefix("dormouse-simulator-").tempdir_in(&self.root)?;
        folder.disable_cleanup(self.keeps);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
        runtime.block_on(async {
            let (setup, policies) = (plan.setup.clone(), plan.schedulers.clone());
            let make = Arc::new(move || match policies.policies(&setup) {
                Ok(policies) => Run::of_tenants(setup.clone(), policies),
                Err(error) => panic!("a plan whose bag can't be planned: {error}"),
            });
            let witness = Witness::default();
            let oracle = Oracle::new(make, witness.clone(), plan.particulars());
            let stage =
                Stage::new(Trace::new(self.lines, folder.path().display().to_string()), oracle);
            let player = Player::new(plan, stage.clone(), witness, folder.path());
            let played = player.play().await;
            Ok(outcome(plan, &stage, played))
        })
    }
}

impl Default for Playground {
    fn default() -> Self {
        Self::new()
    }
}

/// The counts of a player, and whether the run came to its end.
#[derive(Debug, Default)]
struct Played {
    has_ended: bool,
    is_withheld: bool,
    is_refused: bool,
    faults: std::collections::BTreeMap<&'static str, u64>,
    coordinators: u64,
    workers: u64,
}

fn outcome(plan: &Plan, stage: &Stage, played: Played) -> Outcome {
    let mut reached = stage.reached();
    let (steps, ending, restored) = stage.with_oracle(|oracle| {
        let steps = oracle.steps();
        reached.extend(crate::reach::reached(&plan.setup, &plan.schedulers, steps));
        if oracle.parted_accounts() > 0 {
            reached.insert("account-parted");
        }
        let over =
            steps.iter().rev().flat_map(|step| &step.effects).find_map(|effect| match effect {
                Effect::Over { complete } => Some(*complete),
                _ => None,
            });
        let cancelled = steps.iter().rev().find_map(|step| match &step.event {
            dormouse_model::Event::Cancel { why } => Some(why.clone()),
            _ => None,
        });
        let ending = match (played.has_ended, cancelled, over) {
            (false, ..) if played.is_withheld => Ending::Withheld,
            (false, ..) if played.is_refused => Ending::Refused,
            (false, ..) => Ending::Broken,
            (true, Some(why), _) => Ending::Cancelled(why),
            (true, None, Some(true)) => Ending::Complete,
            (true, None, _) => Ending::Incomplete,
        };
        (steps.len() as u64, ending, oracle.restored())
    });
    let simulated_ms = stage.now_us() / 1_000;
    let violation = stage.violation();
    let (digest, trace, lines) = stage.finish();
    Outcome {
        seed: plan.seed,
        digest,
        lines,
        ending,
        violation,
        faults: played.faults,
        steps,
        coordinators: played.coordinators,
        workers: played.workers,
        restored,
        simulated_ms,
        reached,
        trace,
    }
}

fn broken(plan: &Plan, what: String) -> Outcome {
    let violation = Violation { invariant: Invariant::NoFailure, at_us: 0, what };
    Outcome { violation: Some(violation), ..Outcome::of_nothing(plan.seed) }
}

/// A panic's message.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_owned())
}
