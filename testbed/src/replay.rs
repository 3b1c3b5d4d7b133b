//! A recorded run's events through the engine and its scheduler again.

use dormouse_engine::{Run, Step};
use dormouse_policies::PlanError;

use crate::output::Header;

/// What came of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// How many steps were compared.
    pub steps: usize,
    /// How many decisions they hold.
    pub decisions: usize,
    /// The digest of the decisions made again.
    pub digest: String,
    /// The first step that came out otherwise: as recorded, as replayed.
    pub difference: Option<Box<(Step, Step)>>,
}

/// Feeds the events of a log to a new run of its experiment, and compares every step.
///
/// # Errors
///
/// The experiment in the header can't be scheduled.
pub fn replay(header: &Header, steps: &[Step]) -> Result<Replayed, PlanError> {
    let experiment = &header.experiment;
    let mut run = Run::new(experiment.setup.clone(), experiment.scheduler()?);
    let mut decisions = 0;
    for (n, recorded) in steps.iter().enumerate() {
        let (again, _) = run.handle(recorded.at, recorded.event.clone());
        if again != *recorded {
            let difference = Some(Box::new((recorded.clone(), again)));
            return Ok(Replayed { steps: n + 1, decisions, digest: run.digest(), difference });
        }
        decisions += again.decisions.len();
    }
    Ok(Replayed { steps: steps.len(), decisions, digest: run.digest(), difference: None })
}
