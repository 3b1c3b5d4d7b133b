//! No task counts as verified whose work no machine has done.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Report, Step};
use dormouse_units::{Attempt, TaskId};

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The attempts whose work was done.
#[derive(Debug, Default)]
pub(super) struct Verified {
    done: BTreeSet<(TaskId, Attempt)>,
}

impl Verified {
    pub(super) fn did(&mut self, deed: &Deed) {
        if let Deed::WorkDone { task, attempt } = deed {
            self.done.insert((*task, *attempt));
        }
    }

    pub(super) fn see(&self, step: &Step) -> Result<(), Broken> {
        // What is called right by its worker's word alone is called so in the log.
        let Event::Machine { report, .. } = &step.event else { return Ok(()) };
        let Report::TaskFinished { task, attempt, verified: true, reported: false, .. } = report
        else {
            return Ok(());
        };
        if step.effects.contains(&Effect::Stale) || self.done.contains(&(*task, *attempt)) {
            return Ok(());
        }
        let why =
            format!("{task}, {attempt} is verified at step {}; nobody did its work", step.seq);
        Err((Invariant::Verified, why))
    }
}
