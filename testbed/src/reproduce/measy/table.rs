//! Results as `table.csv` and as text.

use std::fmt::Write as _;

use dormouse_policies::batch::Algorithm;
use dormouse_workload::Estimate;

use super::batch_means::BatchMeans;
use super::evaluate::{Claim, Evaluation};
use super::statements::View;
use crate::reproduce::compared::TableCsv;

/// The columns of a claim in text.
type Line = [String; 5];

impl Claim {
    /// The paper's figure, ours, their relative difference, and the verdict.
    #[must_use]
    pub fn words(&self) -> Line {
        let paper = self.paper.map(short).unwrap_or_default();
        let difference =
            self.paper.map(|paper| format!("{:+.1} %", 100.0 * (self.ours.mean / paper - 1.0)));
        let verdict = self.statement.verdict(&self.ours, self.holds);
        let ours = self.statement.words(self.ours.mean, &View::STANDARD);
        [self.statement.text(), paper, ours, difference.unwrap_or_default(), verdict.to_owned()]
    }
}

/// A figure with as many digits as matter.
#[must_use]
pub fn short(figure: f64) -> String {
    match figure {
        x if x.fract() == 0.0 => format!("{x:.0}"),
        x if x.abs() < 10.0 => format!("{x:.2}"),
        x if x.abs() < 1000.0 => format!("{x:.1}"),
        x => format!("{x:.0}"),
    }
}

impl Evaluation {
    /// The content of `table.csv`. The paper gives no figure for single points: the column is
    /// empty there.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut table = TableCsv::new();
        let mut row = |case: &str, metric: &str, paper: Option<f64>, ours: Estimate| {
            table.add(case, metric, &paper.map(|p| p.to_string()).unwrap_or_default(), ours);
        };
        for claim in &self.claims {
            let (case, metric) = claim.statement.name();
            row(&case, &metric, claim.paper, claim.ours);
        }
        for (cell, outcome) in &self.results {
            let case = cell.name();
            let migrations =
                Some(&outcome.migrations).filter(|_| cell.algorithm == Algorithm::Measy);
            for (metric, of) in [
                ("response_s", Some(&outcome.response)),
                ("bounded_slowdown", Some(&outcome.slowdown)),
                ("migrations_per_job", migrations),
            ] {
                if let Some(estimate) = of.and_then(BatchMeans::estimate) {
                    row(&case, metric, None, estimate);
                }
            }
        }
        table.into_text()
    }

    /// The claims and causes, for a person.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let lines: Vec<Line> = self.claims.iter().map(Claim::words).collect();
        let width = lines.iter().map(|line| line[0].chars().count()).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "  {:<width$} {:>7} {:>7} {:>11}",
            "what the paper says", "paper", "ours", "difference"
        );
        for [what, paper, ours, difference, verdict] in &lines {
            let line = format!("{what:<width$} {paper:>7} {ours:>7} {difference:>11}  {verdict}");
            let _ = writeln!(text, "  {}", line.trim_end());
        }
        if !self.causes.is_empty() {
            let _ = writeln!(text, "\n  why, one factor changed at a time");
        }
        for cause in &self.causes {
            let becomes = cause.moves.first().map(|m| cause.words(m)).unwrap_or_default();
            let _ = writeln!(
                text,
                "  {}: {} → {becomes}; {}",
                cause.statement.text(),
                cause.statement.words(cause.ours, &View::STANDARD),
                cause.sentence()
            );
        }
        text.trim_end().to_owned()
    }
}
