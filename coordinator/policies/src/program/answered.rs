//! Placeholder for a scheduler program whose answers are already recorded.

use dormouse_model::{Decision, Notice};
use dormouse_units::Time;

use crate::{Delivery, Policy};

/// Placeholder for a program that is not started, because a repeated run takes the program's answers from
/// the log. It fails if it is asked for a decision.
#[derive(Debug)]
pub struct UnstartedProgram {
    hearing: Delivery,
    failure: Option<&'static str>,
}

impl UnstartedProgram {
    /// Makes a placeholder for a program to which notices are delivered by `hearing`.
    #[must_use]
    pub const fn new(hearing: Delivery) -> Self {
        Self { hearing, failure: None }
    }
}

impl Policy for UnstartedProgram {
    fn hearing(&self) -> Delivery {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        // A program's reasons to wait are unknown, so assume that it waits for a price.
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure
    }

    fn handle(&mut self, _: Time, _: &[Notice], _: &mut Vec<Decision>) {
        self.failure = Some("the scheduler is a program, which was not started");
    }
}
