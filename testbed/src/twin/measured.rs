//! What a live run of parallel jobs says of itself that its experiment does not: how long its
//! phases were, and how long its migrations took.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::time::Duration;

use dormouse_batch::JobId;
use dormouse_coordinator::{BatchFacts, BatchStep};
use dormouse_units::Span;
use serde::Deserialize;

use crate::batch::BatchHeader;
use crate::live::Pace;
use crate::output::OutputError;

/// What a run's twin is given of it.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) pace: Pace,
    /// What a migration took on average, in emulated time; `None` if there was none.
    pub(super) migration: Option<Span>,
    pub(super) moves: Moves,
}

/// What each migration of a job took, in order, in emulated time.
pub(super) type Moves = BTreeMap<JobId, VecDeque<Span>>;

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
    /// Reads it from the log in `dir`, of which this is the header.
    ///
    /// # Errors
    ///
    /// It can't be read, or a line of it is damaged.
    pub(super) fn read(dir: &Path, header: &BatchHeader) -> Result<Self, OutputError> {
        let path = dir.join("events.jsonl");
        let bad = |line, why: String| OutputError::BadLog { path: path.clone(), line, why };
        let text = fs::read_to_string(&path).map_err(|e| OutputError::io("read", &path, e))?;
        let mut lines = text.lines().zip(1..);
        let speedup = header.experiment.live.speedup;
        let pace = Pace::at(speedup);
        let mut pace = pace.ok_or_else(|| bad(1, format!("{speedup} is no speed-up")))?;
        if let Some((line, n)) = lines.next() {
            let First { live } =
                serde_json::from_str(line).map_err(|error| bad(n, error.to_string()))?;
            if let Some(us) = live.and_then(|live| live.phase_us) {
                pace.phase = Duration::from_micros(us);
            }
        }
        let mut facts = BatchFacts::default();
        for (line, n) in lines {
            let step: BatchStep =
                serde_json::from_str(line).map_err(|error| bad(n, error.to_string()))?;
            facts.see(&step);
        }
        let mut moves = Moves::new();
        for of in &facts.moves {
            let took = pace.emulated(Duration::from_micros(of.took_us));
            moves.entry(of.job).or_default().push_back(took);
        }
        Ok(Self { pace, migration: mean(&facts, pace), moves })
    }
}

fn mean(of: &BatchFacts, pace: Pace) -> Option<Span> {
    let sum = of.moves.iter().fold(0_u64, |sum, of| sum.saturating_add(of.took_us));
    let mean_us = sum.checked_div(of.moves.len() as u64)?;
    Some(pace.emulated(Duration::from_micros(mean_us)))
}
