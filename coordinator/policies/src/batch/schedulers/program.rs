//! A scheduler of parallel jobs that is a program of its own.

use dormouse_units::TypeName;

use super::{BatchPolicy, Config, ListedBatchScheduler, OnPromotion};
use crate::Delivery;
use crate::program::{self, UnstartedProgram};

/// Entry of the list for a scheduler that is a program. [`ListedBatchScheduler::build`] returns only a
/// placeholder; the code that runs the experiment starts the program instead.
pub(super) struct BatchProgram;

impl ListedBatchScheduler for BatchProgram {
    fn name(&self) -> &'static str {
        program::NAME
    }

    fn about(&self) -> &'static str {
        program::ABOUT
    }

    fn promotion(&self) -> Option<OnPromotion> {
        // A program may use both tiers and move jobs between processors.
        Some(OnPromotion::Migrate)
    }

    fn build(&self, _: Config, _: TypeName) -> Box<dyn BatchPolicy> {
        Box::new(UnstartedProgram::new(Delivery::EndOfInstant))
    }
}

/// A program does not tell why a job waits, so there are no notes.
impl BatchPolicy for UnstartedProgram {}
