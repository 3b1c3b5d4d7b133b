//! What a live run of parallel jobs says of itself that its experiment does not: how long its
//! migrations took.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dormouse_model::{Event, Report, Step};
use dormouse_units::{Span, TaskId};

use crate::fidelity::Pace;

/// What a run's twin is given of it.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How its clock went, and how long its phases were.
    pub pace: Pace,
    /// What a migration took on average, in emulated time; `None` if there was none.
    pub migration: Option<Span>,
    /// What each of them took.
    pub moves: Moves,
}

/// What each migration of a job took, in order, in emulated time.
pub type Moves = BTreeMap<TaskId, VecDeque<Span>>;

impl Measured {
    /// Reads it from the steps of a run of this pace.
    #[must_use]
    pub fn from_steps(steps: &[Step], pace: Pace) -> Self {
        let (mut moves, mut all_us) = (Moves::new(), Vec::new());
        for step in steps {
            if let Event::Machine { report: Report::TaskMoved { task, real_took_us, .. }, .. } =
                &step.event
            {
                let took = pace.speedup.emulated(Duration::from_micros(*real_took_us));
                moves.entry(*task).or_default().push_back(took);
                all_us.push(*real_took_us);
            }
        }
        let sum = all_us.iter().fold(0_u64, |sum, us| sum.saturating_add(*us));
        let mean_us = sum.checked_div(all_us.len() as u64);
        let migration = mean_us.map(|us| pace.speedup.emulated(Duration::from_micros(us)));
        Self { pace, migration, moves }
    }
}
