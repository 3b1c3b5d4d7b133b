//! Durations of the migrations in a live run of parallel jobs, which the experiment file does not contain.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use dormouse_model::{Event, Report, Step};
use dormouse_units::{Span, TaskId};

use crate::fidelity::RunPace;

/// Durations of migrations that were measured in a live run; the run's virtual twin uses them.
#[derive(Clone, Debug)]
pub struct MeasuredMoves {
    /// Speed of the run's clock, and length of its jobs' phases.
    pub pace: RunPace,
    /// Mean duration of a migration in emulated time; `None` if there was none.
    pub migration: Option<Span>,
    /// Durations of all migrations, by job.
    pub moves: Moves,
}

/// Durations of each job's migrations in order, in emulated time.
pub type Moves = BTreeMap<TaskId, VecDeque<Span>>;

impl MeasuredMoves {
    /// Reads the durations of migrations from the steps of a live run that had this pace.
    #[must_use]
    pub fn from_steps(steps: &[Step], pace: RunPace) -> Self {
        let (mut moves, mut all_us) = (Moves::new(), Vec::new());
        for step in steps {
            if let Event::Machine { report: Report::TaskMoved { task, real_took_us, .. }, .. } =
                &step.event
            {
                let took = pace.speedup.to_emulated(Duration::from_micros(*real_took_us));
                moves.entry(*task).or_default().push_back(took);
                all_us.push(*real_took_us);
            }
        }
        let sum = all_us.iter().fold(0_u64, |sum, us| sum.saturating_add(*us));
        let mean_us = sum.checked_div(all_us.len() as u64);
        let migration = mean_us.map(|us| pace.speedup.to_emulated(Duration::from_micros(us)));
        Self { pace, migration, moves }
    }
}
