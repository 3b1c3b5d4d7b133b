//! A user's own data file of a paper, and checks of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::paper::PaperEvaluation;
use super::tolerance::QuantityKind;
use crate::sweep::SweepError;

/// Reads a paper's data file.
///
/// # Errors
///
/// It can't be read, or has a flaw that prevents a verdict.
pub fn read_paper(file: &Path) -> Result<PaperEvaluation, SweepError> {
    let wrong = |error: &dyn std::fmt::Display| {
        SweepError::BadInput(format!("{}: {error}", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let paper: PaperEvaluation = toml::from_str(&text).map_err(|error| wrong(&error))?;
    match paper.flaws().first() {
        Some(flaw) => Err(wrong(flaw)),
        None => Ok(paper),
    }
}

impl PaperEvaluation {
    /// All flaws of the data file, in words; flaws of an experiment are found when the experiment is loaded.
    pub(super) fn flaws(&self) -> Vec<String> {
        let name_is_plain = self.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let mut flaws = Vec::new();
        if self.name.is_empty() || !name_is_plain {
            flaws.push(format!("name = {:?}: give letters, digits and hyphens", self.name));
        }
        if self.parts.is_empty() {
            flaws.push("it has no [[part]]: give one with cells".to_owned());
        }
        let cases: BTreeSet<String> =
            self.parts.iter().flat_map(|part| self.cells_of(part)).collect();
        flaws.extend(self.flaws_of_cells(&cases));
        flaws.extend(self.flaws_of_figures(&cases));
        flaws.extend(self.flaws_of_claims(&cases));
        flaws
    }

    fn flaws_of_cells(&self, cases: &BTreeSet<String>) -> Vec<String> {
        let mut flaws = Vec::new();
        let of_experiments = self.parts.iter().filter(|part| part.own.is_none());
        for case in of_experiments.flat_map(|part| self.cells_of(part)) {
            let words: Vec<&str> = case.split('/').collect();
            if words.len() < 2 {
                flaws.push(format!("the cell {case}: give EXPERIMENT/SCHEDULER"));
            }
            let settings = words.get(1..words.len().saturating_sub(1)).unwrap_or_default();
            let unknown = settings
                .iter()
                .find(|word| !self.settings.contains_key(**word) && **word != "standard");
            flaws.extend(unknown.map(|word| format!("{case}: no setting is called {word}")));
        }
        for (line, cells) in self.parts.iter().flat_map(|part| &part.lines) {
            if self.expand(cells).iter().any(|case| !cases.contains(case)) {
                flaws.push(format!("the line {line:?} is of cells that no part has: {cells}"));
            }
        }
        flaws
    }

    fn flaws_of_figures(&self, cases: &BTreeSet<String>) -> Vec<String> {
        let mut flaws = Vec::new();
        let printed =
            self.printed.iter().flat_map(|of| of.rows.iter().map(move |row| (row, &of.metrics)));
        let refit =
            self.refit.iter().flat_map(|of| of.rows.iter().map(move |row| (row, &of.metrics)));
        for ((case, values), metrics) in printed.chain(refit) {
            if !cases.contains(case) {
                flaws.push(format!("{case} has printed figures, and no part has such a cell"));
            }
            if values.len() != metrics.len() {
                let (n, of) = (values.len(), metrics.len());
                flaws.push(format!("{case} has {n} printed figures for {of} columns"));
            }
        }
        flaws
    }

    fn flaws_of_claims(&self, cases: &BTreeSet<String>) -> Vec<String> {
        let mut flaws = Vec::new();
        for claim in self.claims() {
            let mut add = |why: &str| flaws.push(format!("the claim {:?}: {why}", claim.says));
            if (claim.quote.is_empty() || claim.place.is_empty()) != claim.silent {
                add("give the words of the paper as quote and their place, or silent = true");
            }
            let readings = claim.readings.iter().map(|reading| claim.under(reading));
            let patterns = readings.chain([claim.clone()]).flat_map(|of| of.patterns());
            let unknown = patterns
                .flat_map(|pattern| self.expand(&pattern))
                .find(|case| !cases.contains(case));
            if let Some(case) = unknown {
                add(&format!("no part has the cell {case}"));
            }
            let has_figure = !claim.figure.is_empty();
            let has_bound = claim.above.is_some() || claim.below.is_some();
            let needs_none = claim.silent || claim.undecidable.is_some();
            if has_figure && has_bound || !has_figure && !has_bound && !needs_none {
                add("give either a figure, or a bound as above or below");
            }
            if claim.relative.is_some() {
                add("its tolerance follows from its kind: leave out relative");
            }
            if has_figure != claim.kind.is_some() {
                add("give a figure its kind, stated, computed or measured, and nothing else one");
            }
            if claim.kind == Some(QuantityKind::Stated) && claim.digit <= 0.0 {
                add("give the value of the last printed digit as digit");
            }
        }
        flaws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
name = "mine"
title = "A rule against another"
source = "Me: a paper."
about = ["Two cells."]
samples = "runs"
more = "more seeds"
[[part]]
name = "table"
title = "One table"
cells = ["j60/{hads,longest-first}"]
metrics = { "*" = ["cost_usd"] }
[[claim]]
says = "the rule is cheaper"
quote = "is cheaper"
place = "section 1"
case = "j60"
name = "cheaper"
measure = "percent-below"
metric = "cost_usd"
of = "j60/longest-first"
than = "j60/hads"
over = "mean"
above = 0
"#;

    #[test]
    fn a_file_of_ones_own_is_read_and_what_is_wrong_is_said() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("mine.toml");
        let read = |text: &str| {
            fs::write(&file, text).expect("it is written");
            read_paper(&file).map(|paper| paper.name).map_err(|error| error.to_string())
        };
        assert_eq!(read(SMALL), Ok("mine".to_owned()));
        for (from, to, said) in [
            ("\"mine\"", "\"my paper\"", "give letters"),
            ("of = \"j60/longest-first\"", "of = \"j60/fifo\"", "no part has the cell j60/fifo"),
            (
                "above = 0",
                "above = 0\nfigure = [3]\nkind = \"measured\"",
                "either a figure, or a bound",
            ),
            ("quote = \"is cheaper\"\n", "", "the words of the paper"),
            ("{hads,longest-first}", "odd/{hads,longest-first}", "no setting is called odd"),
            ("above = 0", "figure = [3]", "its kind"),
            (
                "above = 0",
                "figure = [3]\nkind = \"measured\"\nrelative = 0.9",
                "leave out relative",
            ),
            ("measure = ", "measured = ", "measured"),
            ("cells = [\"j60/{hads,longest-first}\"]", "cells = [\"j60\"]", "EXPERIMENT/SCHEDULER"),
        ] {
            assert!(SMALL.contains(from), "{from}");
            let error = read(&SMALL.replace(from, to)).expect_err(to);
            assert!(error.contains(said) && error.contains("mine.toml"), "{to}: {error}");
        }
        fs::remove_file(&file).expect("it is there");
        assert!(read_paper(&file).is_err());
    }
}
