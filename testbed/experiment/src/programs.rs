//! Scheduler programs of an experiment, and their start.

use std::path::{Path, PathBuf};

use dormouse_documents::{Mistakes, Node, Place};
use dormouse_engine::Run;
use dormouse_model::{Decision, Notice, Setup, Step, TenantWork as Share};
use dormouse_policies::program::{Following, ProgramConfig};
use dormouse_policies::{BagSchedulerName, Delivery, Own, PlanError, Policy};
use dormouse_program::{Hello, Machine, PROTOCOL, ProgramError, StandardError};
use dormouse_units::Time;
use serde_json::Value;

use super::{Experiment, Policies};

/// Circumstances in which scheduler programs are started.
#[derive(Clone, Copy, Debug)]
pub struct ProgramStart<'a> {
    /// Mode of the run: `virtual` or `live`.
    pub mode: &'a str,
    /// Folder of the run, for the programs' standard error; `None` to drop it.
    pub folder: Option<&'a Path>,
}

impl ProgramStart<'_> {
    /// A start in virtual time, without keeping the programs' standard error.
    pub const VIRTUAL: Self = Self { mode: "virtual", folder: None };
}

impl Experiment {
    /// The program that schedules the experiment's bag; `None` if the bag has another scheduler.
    pub(crate) fn program_of_bag(&self) -> Option<ProgramConfig> {
        let bag = self.scheduler.as_ref().filter(|bag| bag.name == BagSchedulerName::Program)?;
        bag.own.read().ok()
    }

    /// The program that schedules the given part of the work, if there is one.
    fn program(&self, work: Share) -> Option<ProgramConfig> {
        match work {
            Share::Bag => self.program_of_bag(),
            Share::Jobs => self.jobs.as_ref()?.program(),
            Share::All => self.program(Share::Bag).or_else(|| self.program(Share::Jobs)),
            Share::Requests => None,
        }
    }

    /// Whether any of the experiment's schedulers is a program.
    pub fn has_programs(&self) -> bool {
        self.program(Share::All).is_some()
    }

    /// Files of the experiment's programs: the words of their commands that are existing files.
    pub fn program_files(&self) -> Vec<PathBuf> {
        let programs = [Share::Bag, Share::Jobs].into_iter().filter_map(|work| self.program(work));
        let words = programs.flat_map(|program| program.command);
        words.map(PathBuf::from).filter(|word| word.is_file()).collect()
    }

    /// The experiment's run before its first event; `bag` is the scheduler of its bag. Scheduler
    /// programs of the experiment are started.
    ///
    /// # Errors
    ///
    /// A program can't be started, or does not say hello.
    pub fn start(
        &self,
        bag: Option<Box<dyn Policy>>,
        how: ProgramStart<'_>,
    ) -> Result<Run, ProgramError> {
        Ok(Run::of_tenants(self.whole_setup(), self.started(bag, how)?))
    }

    /// Schedulers of the experiment's work, like [`Experiment::policies`]; scheduler programs are
    /// started.
    ///
    /// # Errors
    ///
    /// A program can't be started, or does not say hello.
    pub fn started(
        &self,
        bag: Option<Box<dyn Policy>>,
        how: ProgramStart<'_>,
    ) -> Result<Policies, ProgramError> {
        let mut policies = self.policies(bag);
        for (work, policy) in &mut policies {
            if let Some(config) = self.program(*work) {
                let hearing = policy.hearing();
                *policy = self.started_one(&config, hearing, how)?;
            }
        }
        Ok(policies)
    }

    /// Schedulers of the experiment's work, like [`Experiment::policies`], with a policy in place of each program
    /// that repeats its decisions in these steps: for a run in which the same events happen at different times.
    pub fn following(&self, bag: Option<Box<dyn Policy>>, steps: &[Step]) -> Policies {
        let mut policies = self.policies(bag);
        for (work, policy) in &mut policies {
            if self.program(*work).is_some() {
                let hearing = policy.hearing();
                let answers = steps.iter().flat_map(|step| recorded_answers(step, hearing));
                *policy = Box::new(Following::new(hearing, answers));
            }
        }
        policies
    }

    fn started_one(
        &self,
        config: &ProgramConfig,
        hearing: Delivery,
        how: ProgramStart<'_>,
    ) -> Result<Box<dyn Policy>, ProgramError> {
        let of_jobs = hearing == Delivery::EndOfInstant;
        let work = if of_jobs { "jobs" } else { "bag" };
        let both = self.program(Share::Bag).is_some() && self.program(Share::Jobs).is_some();
        let whose = if both { format!("-{work}") } else { String::new() };
        let stderr = how.folder.map(|folder| folder.join(format!("scheduler-stderr{whose}.txt")));
        let stderr = stderr.map_or(StandardError::Dropped, StandardError::File);
        dormouse_program::start(config, &self.hello(config, of_jobs, how.mode), hearing, &stderr)
    }

    fn hello(&self, config: &ProgramConfig, of_jobs: bool, mode: &str) -> Hello {
        let setup = self.whole_setup();
        let machine = setup.jobs.as_ref().map(|jobs| Machine {
            kind: jobs.machine.clone(),
            processors: setup.space_of_jobs().processors,
        });
        let checkpoint = match of_jobs {
            true => setup.checkpoint_of_jobs().cloned(),
            false => Some(setup.checkpoint.clone()),
        };
        let Setup { seed, mut catalogue, bag, jobs, preemption_notice, .. } = setup;
        // The machine of another tenant's jobs is not for a bag.
        jobs.iter().filter(|_| !of_jobs).for_each(|jobs| {
            catalogue.types.remove(&jobs.machine);
        });
        Hello {
            protocol: PROTOCOL,
            dormouse: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: self.name.clone(),
            mode: mode.to_owned(),
            seed,
            work: if of_jobs { "jobs" } else { "bag" }.to_owned(),
            catalogue,
            bag: (!of_jobs).then_some(bag),
            machine: machine.filter(|_| of_jobs),
            checkpoint,
            preemption_notice,
            parameters: config.parameters.clone(),
        }
    }
}

/// Notices and decisions of the only program of a run in a step.
fn recorded_answers(step: &Step, hearing: Delivery) -> Vec<(Time, &[Notice], &[Decision])> {
    if hearing == Delivery::EndOfInstant {
        return vec![(step.at, &step.notices, &step.decisions)];
    }
    let mut decisions = step.decisions.as_slice();
    let answers = step.notices.chunks(1).zip(&step.answers);
    let answers = answers.map(|(heard, count)| {
        let (own, rest) = decisions.split_at((*count as usize).min(decisions.len()));
        decisions = rest;
        (step.at, heard, own)
    });
    answers.collect()
}

/// Parameters of a program in the table at `node`, with paths that no longer depend on the folder
/// of its file.
pub(crate) fn check(mut own: Own, node: &Node, found: &mut Mistakes) -> Option<Own> {
    if let Some(Value::Array(command)) = own.0.get_mut("command") {
        let place = node.place_of("command");
        command.iter_mut().enumerate().for_each(|(n, word)| make_absolute(word, n == 0, place));
    }
    match own.read::<ProgramConfig>().and_then(|program| program.check()) {
        Ok(()) => Some(own),
        Err(PlanError::Parameter { key, value, want }) => {
            found.add(node.place_of(key), format!("{value} can't be"), want);
            None
        }
        Err(error) => {
            found.add(&node.place, error.to_string(), "see `dormouse reference`");
            None
        }
    }
}

/// Makes a path in a command absolute: the program's if it has a slash, an argument's if it starts
/// as a relative path.
fn make_absolute(word: &mut Value, is_program: bool, place: &Place) {
    let Value::String(word) = word else { return };
    let is_relative = word.starts_with("./") || word.starts_with("../");
    if is_relative || is_program && word.contains('/') && !word.starts_with('/') {
        let path = place.file(word.as_ref());
        let path = std::path::absolute(&path).unwrap_or(path);
        *word = path.to_string_lossy().into_owned();
    }
}
