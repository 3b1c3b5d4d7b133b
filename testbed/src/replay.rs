//! A recorded run's events through the engine and its policy again.

use dormouse_engine::{Run, Step};

/// What came of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// How many steps were compared.
    pub steps: u64,
    /// How many decisions they hold.
    pub decisions: u64,
    /// The digest of the decisions made again.
    pub digest: String,
    /// The first step that came out otherwise: as recorded, as replayed.
    pub difference: Option<Box<(Step, Step)>>,
}

/// Feeds the events of a log to a new run of its experiment, and compares every step.
#[must_use]
pub fn replay(mut run: Run, recorded: &[Step]) -> Replayed {
    let (mut steps, mut decisions, mut difference) = (0, 0, None);
    for step in recorded {
        steps += 1;
        let (again, _) = run.handle(step.at, step.event.clone());
        if again != *step {
            difference = Some(Box::new((step.clone(), again)));
            break;
        }
        decisions += again.decisions.len() as u64;
    }
    Replayed { steps, decisions, digest: run.digest(), difference }
}
