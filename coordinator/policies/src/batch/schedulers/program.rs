//! A scheduler of parallel jobs that is a program of its own.

use dormouse_units::TypeName;

use super::{BatchPolicy, Config, OnPromotion, Scheduling};
use crate::Hearing;
use crate::program::{self, Answered};

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

    fn promotion(&self) -> Option<OnPromotion> {
        // It may use both tiers, and may move jobs between processors.
        Some(OnPromotion::Migrate)
    }

    fn build(&self, _: Config, _: TypeName) -> Box<dyn BatchPolicy> {
        Box::new(Answered::new(Hearing::Instants))
    }
}

/// Nobody knows why a program lets a job wait.
impl BatchPolicy for Answered {}
