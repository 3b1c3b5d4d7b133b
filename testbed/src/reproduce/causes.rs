//! Why a figure differs: one factor at a time, the same seeds, everything else equal.

use super::compare::{COST, Row};
use super::factors::{BOOT_BILLED, FACTORS, Factor};
use super::run::Base;
use super::targets::{costs, makespans};
use super::{Results, Target};
use crate::experiment::InputError;
use crate::sweep::{Cell, Sample, Samples};

/// What each factor does to a figure that deviates.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The cell.
    pub case: String,
    /// The figure.
    pub metric: &'static str,
    /// The paper's.
    pub paper: f64,
    /// Ours, over the seeds of these experiments.
    pub ours: f64,
    /// What it becomes, the nearest to the paper's first.
    pub moves: Vec<Move>,
}

/// What one factor does.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// Its name.
    pub factor: &'static str,
    /// What it changes.
    pub about: &'static str,
    /// What the figure becomes.
    pub becomes: f64,
}

impl Cause {
    /// The share of the gap to the paper's that the best factor closes.
    #[must_use]
    pub fn closed(&self) -> Option<(Move, f64)> {
        let best = *self.moves.first()?;
        let gap = (self.ours - self.paper).abs();
        Some((best, 1.0 - (best.becomes - self.paper).abs() / gap))
    }

    /// In a sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let digits = if self.metric == COST { 4 } else { 0 };
        let head = format!(
            "{} {}: ours {:.digits$}, paper {:.digits$}",
            self.case, self.metric, self.ours, self.paper
        );
        match self.closed() {
            Some((best, closed)) if closed > 0.1 => format!(
                "{head}; nearest with {}: {:.digits$}, which closes {:.0} % of the gap ({})",
                best.factor,
                best.becomes,
                closed * 100.0,
                best.about
            ),
            Some((best, closed)) => format!(
                "{head}; no single factor explains it: the best, {}, closes {:.0} % of the gap",
                best.factor,
                closed.max(0.0) * 100.0
            ),
            None => head,
        }
    }
}

/// What one factor does to all figures that deviate and that it applies to.
#[derive(Clone, Copy, Debug)]
pub struct Overall {
    /// Its name.
    pub factor: &'static str,
    /// What it changes.
    pub about: &'static str,
    /// How many figures.
    pub figures: usize,
    /// Their mean distance from the paper's, relative to it, without and with the factor.
    pub distance: (f64, f64),
    /// How many it brings nearer than any other factor does.
    pub nearest: usize,
}

/// Every factor over all figures, the one that brings most nearest first.
pub(crate) fn overall(causes: &[Cause]) -> Vec<Overall> {
    let mut all: Vec<Overall> = Vec::new();
    for (factor, about) in
        FACTORS.iter().chain([&BOOT_BILLED]).map(|factor| (factor.name, factor.about))
    {
        let of: Vec<_> = causes
            .iter()
            .filter_map(|cause| {
                let there = cause.moves.iter().position(|m| m.factor == factor)?;
                let off = |figure: f64| (figure / cause.paper - 1.0).abs();
                Some((off(cause.ours), off(cause.moves[there].becomes), there == 0))
            })
            .collect();
        if of.is_empty() {
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of figures")]
        let mean = |sum: f64| sum / of.len() as f64;
        all.push(Overall {
            factor,
            about,
            figures: of.len(),
            distance: (mean(of.iter().map(|f| f.0).sum()), mean(of.iter().map(|f| f.1).sum())),
            nearest: of.iter().filter(|f| f.2).count(),
        });
    }
    all.sort_by_key(|o| std::cmp::Reverse(o.nearest));
    all
}

/// The experiments that look for the causes of what deviates.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    /// The cell, and its factor; the first of each target is the target itself.
    trials: Vec<(Target, Option<Factor>)>,
    pub(crate) cells: Vec<Cell>,
    rows: Vec<Row>,
}

impl Trials {
    pub(crate) fn of(results: &Results, rows: &[Row], base: &Base) -> Result<Self, InputError> {
        let rows: Vec<_> = rows.iter().filter(|row| row.deviates()).cloned().collect();
        let mut trials = Self { rows, ..Self::default() };
        for (target, _) in &results.all {
            if !trials.rows.iter().any(|row| row.case == target.case()) {
                continue;
            }
            trials.push(target, None, base)?;
            for factor in FACTORS.iter().filter(|f| f.applies_to(target)) {
                trials.push(target, Some(*factor), base)?;
            }
        }
        Ok(trials)
    }

    /// A factor under which there is no plan tells nothing, and is left out.
    fn push(
        &mut self,
        target: &Target,
        factor: Option<Factor>,
        base: &Base,
    ) -> Result<(), InputError> {
        let mut set = Vec::new();
        let mut suffix = String::new();
        if let Some(factor) = factor {
            set = factor.settings(target);
            suffix = format!("+{}", factor.name);
        }
        match base.cell(target, &suffix, &set) {
            Ok(cell) => {
                self.trials.push((target.clone(), factor));
                self.cells.push(cell);
                Ok(())
            }
            Err(_) if factor.is_some() => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn causes(&self, samples: &Samples) -> Vec<Cause> {
        self.rows.iter().filter_map(|row| self.cause(row, samples)).collect()
    }

    fn cause(&self, row: &Row, samples: &Samples) -> Option<Cause> {
        let of_case = || self.trials.iter().zip(samples).filter(|((t, _), _)| t.case() == row.case);
        let figure = |samples: &[Sample]| {
            let all = if row.metric == COST { costs(samples) } else { makespans(samples) };
            crate::sweep::Estimate::of(&all).map(|e| e.mean)
        };
        let (_, own) = of_case().find(|((_, factor), _)| factor.is_none())?;
        let mut moves: Vec<_> = of_case()
            .filter_map(|((_, factor), samples)| {
                let factor = (*factor)?;
                let becomes = figure(samples)?;
                Some(Move { factor: factor.name, about: factor.about, becomes })
            })
            .collect();
        if row.metric == COST {
            let with_boot: Vec<_> = own.iter().map(|s| (s.cost + s.boot_cost).as_usd()).collect();
            moves.extend(crate::sweep::Estimate::of(&with_boot).map(|e| Move {
                factor: BOOT_BILLED.name,
                about: BOOT_BILLED.about,
                becomes: e.mean,
            }));
        }
        let gap = |m: &Move| (m.becomes - row.paper).abs();
        moves.sort_by(|a, b| gap(a).total_cmp(&gap(b)));
        let (case, metric, paper) = (row.case.clone(), row.metric, row.paper);
        Some(Cause { case, metric, paper, ours: figure(own)?, moves })
    }
}
