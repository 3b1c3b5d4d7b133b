//! What stands for a program where its answers are known.

use dormouse_model::{Decision, Notice};
use dormouse_units::Time;

use crate::{Hearing, Policy};

/// Stands for a program that is not started: a run that is made again from its log has its answers.
/// Asked anything new it fails, and says so.
#[derive(Debug)]
pub struct Answered {
    hearing: Hearing,
    failure: Option<&'static str>,
}

impl Answered {
    /// Stands for a program that hears notices in this way.
    #[must_use]
    pub const fn new(hearing: Hearing) -> Self {
        Self { hearing, failure: None }
    }
}

impl Policy for Answered {
    fn hearing(&self) -> Hearing {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        // Nobody knows what a program waits for.
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure
    }

    fn handle(&mut self, _: Time, _: &[Notice], _: &mut Vec<Decision>) {
        self.failure = Some("the scheduler is a program, and nobody started it");
    }
}
