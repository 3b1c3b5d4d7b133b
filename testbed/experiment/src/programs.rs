//! Schedulers of an experiment that are programs of their own: which, and how they are started.

use std::path::{Path, PathBuf};

use dormouse_engine::Run;
use dormouse_model::{Decision, Notice, Setup, Step, Work as Share};
use dormouse_policies::program::{Following, ProgramConfig};
use dormouse_policies::{BagSchedulerName, Hearing, Policy};
use dormouse_program::{Hello, Machine, PROTOCOL, ProgramError, StandardError};
use dormouse_units::Time;

use super::{Experiment, Policies};

/// The circumstances in which the programs of an experiment are started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// `virtual` or `live`.
    pub mode: &'a str,
    /// The run's folder, for what they write to their standard error; `None`: it is not kept.
    pub folder: Option<&'a Path>,
}

impl Start<'_> {
    /// In virtual time, and nothing of what they say is kept.
    pub const VIRTUAL: Self = Self { mode: "virtual", folder: None };
}

impl Experiment {
    /// The program that schedules its bag, if one does.
    pub(crate) fn program_of_bag(&self) -> Option<ProgramConfig> {
        let bag = self.scheduler.as_ref().filter(|bag| bag.name == BagSchedulerName::Program)?;
        bag.own.read().ok()
    }

    /// The program that schedules this work of it, if one does.
    fn program(&self, work: Share) -> Option<ProgramConfig> {
        match work {
            Share::Bag => self.program_of_bag(),
            Share::Jobs => self.jobs.as_ref()?.program(),
            Share::All => self.program(Share::Bag).or_else(|| self.program(Share::Jobs)),
            Share::Requests => None,
        }
    }

    /// Whether a scheduler of it is a program.
    pub fn has_programs(&self) -> bool {
        self.program(Share::All).is_some()
    }

    /// The files that its programs are: those of their commands that are there.
    pub fn program_files(&self) -> Vec<PathBuf> {
        let programs = [Share::Bag, Share::Jobs].into_iter().filter_map(|work| self.program(work));
        let words = programs.flat_map(|program| program.command);
        words.map(PathBuf::from).filter(|word| word.is_file()).collect()
    }

    /// The experiment's run before anything has happened, under this scheduler of its bag, with its
    /// programs started.
    ///
    /// # Errors
    ///
    /// A program can't be started, or does not say hello.
    pub fn start(&self, bag: Option<Box<dyn Policy>>, how: Start<'_>) -> Result<Run, ProgramError> {
        Ok(Run::of_tenants(self.whole_setup(), self.started(bag, how)?))
    }

    /// Who schedules its work, as [`Experiment::policies`], with its programs started.
    ///
    /// # Errors
    ///
    /// A program can't be started, or does not say hello.
    pub fn started(
        &self,
        bag: Option<Box<dyn Policy>>,
        how: Start<'_>,
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

    /// Who schedules its work, as [`Experiment::policies`], with what follows the answers in these
    /// steps in the place of its programs: for a run in which the same happens at other times.
    pub fn following(&self, bag: Option<Box<dyn Policy>>, steps: &[Step]) -> Policies {
        let mut policies = self.policies(bag);
        for (work, policy) in &mut policies {
            if self.program(*work).is_some() {
                let hearing = policy.hearing();
                let answers = steps.iter().flat_map(|step| answers(step, hearing));
                *policy = Box::new(Following::new(hearing, answers));
            }
        }
        policies
    }

    fn started_one(
        &self,
        config: &ProgramConfig,
        hearing: Hearing,
        how: Start<'_>,
    ) -> Result<Box<dyn Policy>, ProgramError> {
        let of_jobs = hearing == Hearing::Instants;
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
        // The machine of others' jobs is not for a bag.
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

/// What the only program of a run was told in a step, and decided on it.
fn answers(step: &Step, hearing: Hearing) -> Vec<(Time, &[Notice], &[Decision])> {
    if hearing == Hearing::Instants {
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
