//! A scheduler of bags that is a program of its own.

use super::{Given, Scheduling};
use crate::parameters::Parameters;
use crate::program::{self, Answered, ProgramConfig};
use crate::{Hearing, Plan, PlanError, Policy};

/// The program that the configuration names. What is built here stands for it: whoever runs the
/// experiment starts the program in its place.
pub(super) struct Program;

impl Scheduling for Program {
    fn name(&self) -> &'static str {
        program::NAME
    }

    fn about(&self) -> &'static str {
        program::ABOUT
    }

    fn parameters(&self) -> Parameters {
        Parameters::from_type::<ProgramConfig>()
    }

    fn build(&self, given: Given<'_>, plan: Option<Plan>) -> Result<Box<dyn Policy>, PlanError> {
        given.config.own.read::<ProgramConfig>()?.check()?;
        if plan.is_some() {
            let why = "a scheduler that is a program makes its plans itself; leave the plan out";
            return Err(PlanError::BadPlan(why.to_owned()));
        }
        Ok(Box::new(Answered::new(Hearing::Each)))
    }

    fn moves_tasks(&self) -> bool {
        // It may, and nobody can tell.
        true
    }

    fn takes_later_tasks(&self) -> bool {
        true
    }
}
