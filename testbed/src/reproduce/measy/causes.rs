//! Why a figure differs: one factor at a time, the same jobs and seed, everything else equal.

use std::collections::BTreeSet;

use super::cell::Cell;
use super::evaluate::Results;
use super::factors::{FACTORS, Factor};
use super::statements::{Statement, View};

/// What each factor does to a statement that does not hold.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The statement.
    pub statement: Statement,
    /// Ours without any factor, in these experiments.
    pub ours: f64,
    /// What it becomes, the nearest to the paper's first.
    pub moves: Vec<Move>,
}

/// What one factor does.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The factor.
    pub factor: Factor,
    /// What the figure becomes.
    pub becomes: f64,
    /// Its distance from the paper's.
    pub distance: f64,
    /// Whether the statement holds then.
    pub holds: bool,
}

impl Cause {
    /// The share of the gap to the paper's that the best factor closes.
    #[must_use]
    pub fn closed(&self) -> Option<(Move, f64)> {
        let best = *self.moves.first()?;
        let gap = self.statement.distance(self.ours, &View::STANDARD)?;
        Some((best, 1.0 - best.distance / gap))
    }

    /// What a factor makes of the figure, in words.
    #[must_use]
    pub fn words(&self, to: &Move) -> String {
        self.statement.words(to.becomes, &to.factor.view)
    }

    /// The cause, in a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self.closed() {
            Some((best, closed)) if best.holds || closed > 0.5 => format!(
                "{}: {} closes {:.0} % of the gap",
                best.factor.name,
                best.factor.about,
                closed * 100.0
            ),
            Some((best, closed)) => format!(
                "no single factor: the nearest, {}, closes {:.0} % of the gap",
                best.factor.name,
                closed.max(0.0) * 100.0
            ),
            None => String::new(),
        }
    }
}

/// The simulations that look for the causes of these.
pub(super) fn cells(open: &[Statement]) -> BTreeSet<Cell> {
    let views = FACTORS.iter().map(|factor| factor.view).chain([View::STANDARD]);
    let all = views.flat_map(|view| open.iter().flat_map(move |statement| statement.cells(&view)));
    all.collect()
}

/// What their results say.
pub(super) fn causes(open: &[Statement], results: &Results) -> Vec<Cause> {
    open.iter().filter_map(|statement| cause(*statement, results)).collect()
}

fn cause(statement: Statement, results: &Results) -> Option<Cause> {
    let ours = statement.ours(results, &View::STANDARD)?.mean;
    let of = |factor: &Factor| {
        let becomes = statement.ours(results, &factor.view)?.mean;
        let distance = statement.distance(becomes, &factor.view)?;
        let holds = statement.holds(becomes, &factor.view)?;
        Some(Move { factor: *factor, becomes, distance, holds })
    };
    let mut moves: Vec<_> = FACTORS.iter().filter_map(of).collect();
    moves.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    Some(Cause { statement, ours, moves })
}
