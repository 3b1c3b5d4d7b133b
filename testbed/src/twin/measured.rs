//! What a live run of parallel jobs says of itself that its experiment does not: how long its
//! phases were, and how long its migrations took.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::time::Duration;

use dormouse_engine::{Event, Report, Step};
use dormouse_units::{Span, TaskId};
use serde::Deserialize;

use crate::fidelity::Pace;
use crate::jobs::JobsError;
use crate::output::{Header, OutputError, open_log};

/// What a run's twin is given of it.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) pace: Pace,
    /// What a migration took on average, in emulated time; `None` if there was none.
    pub(super) migration: Option<Span>,
    pub(super) moves: Moves,
}

/// What each migration of a job took, in order, in emulated time.
pub(super) type Moves = BTreeMap<TaskId, VecDeque<Span>>;

/// As much of the first line as only a live run's log has.
#[derive(Deserialize)]
struct First {
    live: Option<Live>,
}

#[derive(Deserialize)]
struct Live {
    phase_us: Option<u64>,
}

impl Measured {
    /// Reads it from the header and the steps of a log, of which this is the folder.
    ///
    /// # Errors
    ///
    /// Its header can't be read.
    pub(super) fn of(header: &Header, steps: &[Step], dir: &Path) -> Result<Self, JobsError> {
        let First { live } = open_log(dir)?.header_as().map_err(OutputError::from)?;
        let speedup = header.experiment.live.speedup;
        let mut pace = Pace::at(speedup)
            .ok_or_else(|| JobsError::Schedule(format!("{speedup} is no speed-up")))?;
        if let Some(us) = live.and_then(|live| live.phase_us) {
            pace.phase = Duration::from_micros(us);
        }
        let (mut moves, mut all_us) = (Moves::new(), Vec::new());
        for step in steps {
            if let Event::Machine { report: Report::TaskMoved { task, real_took_us, .. }, .. } =
                &step.event
            {
                let took = pace.emulated(Duration::from_micros(*real_took_us));
                moves.entry(*task).or_default().push_back(took);
                all_us.push(*real_took_us);
            }
        }
        let sum = all_us.iter().fold(0_u64, |sum, us| sum.saturating_add(*us));
        let mean_us = sum.checked_div(all_us.len() as u64);
        let migration = mean_us.map(|us| pace.emulated(Duration::from_micros(us)));
        Ok(Self { pace, migration, moves })
    }
}
