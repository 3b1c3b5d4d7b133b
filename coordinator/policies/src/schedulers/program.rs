//! A scheduler of bags that is a program of its own.

use super::{ListedBagScheduler, SchedulerInput};
use crate::parameters::ParameterSchema;
use crate::program::{self, ProgramConfig, UnstartedProgram};
use crate::{Delivery, Plan, PlanError, Policy};

/// Entry of the list for a scheduler that is a program. [`ListedBagScheduler::build`] returns only a
/// placeholder; the code that runs the experiment starts the program instead.
pub(super) struct BagSchedulerProgram;

impl ListedBagScheduler for BagSchedulerProgram {
    fn name(&self) -> &'static str {
        program::NAME
    }

    fn about(&self) -> &'static str {
        program::ABOUT
    }

    fn parameters(&self) -> ParameterSchema {
        ParameterSchema::from_type::<ProgramConfig>()
    }

    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError> {
        given.config.own.read::<ProgramConfig>()?.check()?;
        if plan.is_some() {
            let why = "is a program that plans by itself";
            return Err(PlanError::TakesNoPlan { scheduler: "program", why });
        }
        Ok(Box::new(UnstartedProgram::new(Delivery::Immediate)))
    }

    fn moves_tasks(&self) -> bool {
        // A program may do so; this can't be known beforehand.
        true
    }

    fn takes_later_tasks(&self) -> bool {
        true
    }
}
