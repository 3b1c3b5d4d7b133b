//! Claims of a reproduction as a list for programs, to compare with another reproduction.

use std::fs;
use std::path::Path;

use dormouse_estimate::{Estimate, Verdict};
use serde::{Deserialize, Serialize};

use super::cause::{ClaimCause, in_runs};
use super::claims::JudgedClaim;
use super::finished::FinishedReproduction;
use super::input_files::InputFile;
use super::readings::PaperReading;
use crate::sweep::SweepError;

/// Name of the file with the list of claims in the folder of a reproduction.
pub const CLAIMS: &str = "claims.json";

/// Judged claims of a paper, with the origin of the verdicts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimList {
    /// The paper, and the part of it that was reproduced.
    pub what: String,
    /// Command that repeats the reproduction.
    pub command: String,
    /// Version of the program that judged the claims.
    pub version: String,
    /// First and last seed of the runs of the reproduction.
    pub seeds: (u64, u64),
    /// Input files of the reproduction.
    #[serde(skip_deserializing)]
    pub inputs: Vec<InputFile>,
    /// Counts of verdicts under our default reading, and under the best reading that is known.
    #[serde(default)]
    pub readings: Vec<ListedReading>,
    /// Claims in the order of the paper's data file.
    pub claims: Vec<ListedClaim>,
}

/// Counts of claims under a reading of the paper: those that hold, fail, are open, and are undecidable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedReading {
    /// Names of the factors that the reading changes, or `default`, with the settings in which its runs differ from those of
    /// our figures, if they do.
    pub name: String,
    /// Counts of claims that hold, fail, are open, and are undecidable by the present rule for verdicts.
    pub counts: [usize; 4],
    /// Counts of claims that hold, fail, are open, and are undecidable by the earlier rule for verdicts, on the same samples.
    pub former: [usize; 4],
}

/// Verdict on a claim by the earlier rule for verdicts, where it differs from the verdict by the present rule on the same samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedFormer {
    /// The verdict by the earlier rule, in a word.
    pub verdict: String,
    /// Our estimate of the claim's figure by the earlier rule for verdicts.
    pub ours: f64,
    /// The 95 % interval of the estimate; `None` if it has none.
    pub ci95: Option<(f64, f64)>,
    /// Reason why the present rule for verdicts gives another verdict than the earlier one, in words.
    pub because: String,
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedClaim {
    /// Number of the claim on the page.
    pub number: usize,
    /// Verdict in a word; empty if the paper is silent.
    pub verdict: String,
    /// The claim in our words.
    pub says: String,
    /// The claim in the paper's words.
    pub quote: String,
    /// Section, figure or table of the paper that has the quoted words.
    pub place: String,
    /// Figure that the paper prints; `None` if it prints none for the claim.
    pub paper: Option<f64>,
    /// The value above which, and the value below which, our value must be for the claim to hold; `None` where there is no bound.
    pub bounds: (Option<f64>, Option<f64>),
    /// Our estimate; for a claim about each of several cells, the number that agree.
    pub ours: f64,
    /// The 95 % interval of our estimate; `None` if it has none.
    pub ci95: Option<(f64, f64)>,
    /// Number of samples behind the estimate; for a claim about each of several cells, the number of cells.
    pub n: usize,
    /// For a claim about each of several cells: our estimate in each cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<ListedFigure>,
    /// Results of other readings of the claim's words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ListedFigure>,
    /// The verdict by the former rule for verdicts, if it differs from the verdict by the present rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<ListedFormer>,
    /// Cause of a claim that does not hold, in words: our figure before and after a change, and the change; empty if
    /// the claim needs no cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
}

/// Estimate of one cell of a claim, or of the claim under another reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedFigure {
    /// Name of the cell, or of the reading.
    pub name: String,
    /// Our estimate of the figure.
    pub ours: f64,
    /// The 95 % interval of our estimate; `None` if it has none.
    pub ci95: Option<(f64, f64)>,
    /// Verdict with the reading, in a word; empty for a cell.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
}

impl ClaimList {
    /// Makes the list of claims of a finished reproduction.
    pub(super) fn new(done: &FinishedReproduction) -> Self {
        let claims = (1..).zip(&done.ours.claims).map(|(n, judged)| {
            let cause = ClaimCause::find(&done.paper, judged, done.as_trials());
            let cause = cause.map(|cause| cause.words(""));
            ListedClaim { cause: cause.unwrap_or_default(), ..ListedClaim::new(n, judged) }
        });
        Self {
            what: done.what.clone(),
            command: done.command.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seeds: done.seeds,
            inputs: done.inputs.clone(),
            readings: std::iter::once(ListedReading::new(&done.ours, ""))
                .chain(done.best.iter().map(|best| ListedReading::new(best, &done.trial_set)))
                .collect(),
            claims: claims.collect(),
        }
    }

    /// Reads the list from a folder of results, or from a file.
    ///
    /// # Errors
    ///
    /// The folder has no list of claims, or the file is not a list of claims.
    pub fn read(path: &Path) -> Result<Self, SweepError> {
        let file = if path.is_dir() { path.join(CLAIMS) } else { path.to_path_buf() };
        let unfit = |error: &dyn std::fmt::Display| {
            let remedy = "give a claims.json that dormouse reproduce left, or its folder";
            SweepError::BadInput(format!("{}: {error}; {remedy}", file.display()))
        };
        let text = fs::read_to_string(&file).map_err(|error| unfit(&error))?;
        serde_json::from_str(&text).map_err(|error| unfit(&error))
    }

    /// Number of claims that hold, fail, are open, and are undecidable.
    #[must_use]
    pub fn counts(&self) -> [usize; 4] {
        ["holds", "fails", "open", "undecidable"]
            .map(|word| self.claims.iter().filter(|claim| claim.verdict == word).count())
    }

    /// Number of claims that have the same verdict and figure as in an earlier list, and number of claims that both
    /// lists have.
    #[must_use]
    pub fn unchanged(&self, before: &Self) -> (usize, usize) {
        let same = |claim: &&ListedClaim| before.claims.iter().find(|of| of.says == claim.says);
        let common: Vec<_> = self.claims.iter().filter_map(|of| Some((of, same(&of)?))).collect();
        let unchanged = common.iter().filter(|(of, was)| of.shown() == was.shown()).count();
        (unchanged, common.len())
    }

    /// Differences from an earlier list, one line each; empty if every claim has the same verdict
    /// and figure.
    #[must_use]
    pub fn changes(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.what != before.what {
            lines.push(format!("the other is of {}, this of {}", before.what, self.what));
        }
        for claim in &self.claims {
            match before.claims.iter().find(|other| other.says == claim.says) {
                None => lines.push(format!("new: {}: {}", claim.says, claim.shown())),
                Some(other) if other.shown() != claim.shown() => {
                    let (was, is) = (other.shown(), claim.shown());
                    lines.push(format!("{}: {was} becomes {is}", claim.says));
                }
                Some(_) => {}
            }
        }
        let gone = before
            .claims
            .iter()
            .filter(|other| !self.claims.iter().any(|claim| claim.says == other.says));
        lines.extend(gone.map(|other| format!("gone: {}: {}", other.says, other.shown())));
        lines
    }
}

impl ListedReading {
    /// Counts under a reading, whose runs differ from those of our figures in the settings `set`.
    fn new(reading: &PaperReading, set: &str) -> Self {
        let verdicts = [Verdict::Holds, Verdict::Fails, Verdict::Open, Verdict::Undecidable];
        let former =
            |judged: &JudgedClaim| judged.former.as_ref().map_or(judged.verdict, |of| of.verdict);
        let count = |of: &dyn Fn(&JudgedClaim) -> Verdict| {
            verdicts
                .map(|wanted| reading.claims.iter().filter(|judged| of(judged) == wanted).count())
        };
        let name = if reading.factors.is_empty() { "default".to_owned() } else { reading.name() };
        let name = format!("{name}{}", in_runs(set));
        Self { name, counts: count(&|judged| judged.verdict), former: count(&former) }
    }
}

impl ListedFormer {
    fn new(judged: &JudgedClaim) -> Option<Self> {
        let former = judged.former.as_ref().filter(|of| of.verdict != judged.verdict)?;
        Some(Self {
            verdict: former.verdict.words().to_owned(),
            ours: former.ours.mean,
            ci95: former.ours.ci95,
            because: former.because.to_owned(),
        })
    }
}

impl ListedClaim {
    fn new(number: usize, judged: &JudgedClaim) -> Self {
        let (claim, ours) = (&judged.claim, &judged.ours);
        Self {
            number,
            verdict: judged.verdict.words().to_owned(),
            says: claim.says.clone(),
            quote: claim.quote.clone(),
            place: claim.place.clone(),
            paper: claim.figure.first().copied(),
            bounds: (claim.above, claim.below),
            ours: ours.mean,
            ci95: ours.ci95,
            n: ours.n,
            each: judged
                .each
                .iter()
                .map(|(name, ours)| ListedFigure::new(name, ours, ""))
                .collect(),
            readings: judged
                .readings
                .iter()
                .map(|of| ListedFigure::new(&of.name, &of.ours, of.verdict.words()))
                .collect(),
            former: ListedFormer::new(judged),
            cause: String::new(),
        }
    }

    /// All numbers of the claim: our estimate, the ends of its interval, and the numbers of its cells and readings.
    #[must_use]
    pub fn numbers(&self) -> Vec<f64> {
        let figures = self.each.iter().chain(&self.readings).map(|of| (of.ours, of.ci95));
        let all = figures.chain([(self.ours, self.ci95)]);
        let ours = all.flat_map(|(ours, ci95)| {
            [Some(ours), ci95.map(|of| of.0), ci95.map(|of| of.1)].into_iter().flatten()
        });
        ours.chain(self.paper).chain(self.bounds.0).chain(self.bounds.1).collect()
    }

    /// Our estimate in words, with the digits of a page.
    fn shown(&self) -> String {
        let verdict = if self.verdict.is_empty() { "no verdict" } else { &self.verdict };
        match self.ci95 {
            Some((low, high)) => format!("{:.2} [{low:.2}, {high:.2}], {verdict}", self.ours),
            None => format!("{:.2}, {verdict}", self.ours),
        }
    }
}

impl ListedFigure {
    fn new(name: &str, ours: &Estimate, verdict: &str) -> Self {
        let (name, verdict) = (name.to_owned(), verdict.to_owned());
        Self { name, ours: ours.mean, ci95: ours.ci95, verdict }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A list of the paper `p` with a claim for each given text, verdict and figure.
    pub(in super::super) fn list(claims: &[(&str, &str, f64)]) -> ClaimList {
        let claim = |(n, (says, verdict, ours)): (usize, &(&str, &str, f64))| ListedClaim {
            number: n + 1,
            verdict: (*verdict).to_owned(),
            says: (*says).to_owned(),
            quote: "more".to_owned(),
            place: "section 1".to_owned(),
            paper: Some(5.0),
            bounds: (None, None),
            ours: *ours,
            ci95: Some((ours - 1.0, ours + 1.0)),
            n: 30,
            each: Vec::new(),
            readings: vec![ListedFigure {
                name: "another".to_owned(),
                ours: 4.0,
                ci95: None,
                verdict: "open".to_owned(),
            }],
            former: Some(ListedFormer {
                verdict: "open".to_owned(),
                ours: 5.5,
                ci95: Some((4.0, 7.0)),
                because: "of a rule".to_owned(),
            }),
            cause: "tried 2, unexplained: none (3, 4) (a, b)".to_owned(),
        };
        ClaimList {
            what: "p".to_owned(),
            command: String::new(),
            version: String::new(),
            seeds: (1, 30),
            inputs: Vec::new(),
            readings: Vec::new(),
            claims: claims.iter().enumerate().map(claim).collect(),
        }
    }

    #[test]
    fn what_changed_is_said_claim_by_claim() {
        let before = list(&[("a", "holds", 5.0), ("b", "fails", 9.0), ("c", "open", 1.0)]);
        let now = list(&[("a", "holds", 5.001), ("b", "open", 6.5), ("d", "holds", 2.0)]);
        assert_eq!(now.changes(&now), Vec::<String>::new());
        assert_eq!(
            now.changes(&before),
            [
                "b: 9.00 [8.00, 10.00], fails becomes 6.50 [5.50, 7.50], open",
                "new: d: 2.00 [1.00, 3.00], holds",
                "gone: c: 1.00 [0.00, 2.00], open",
            ]
        );
        assert_eq!(before.counts(), [1, 1, 1, 0]);
        assert_eq!((now.unchanged(&before), now.unchanged(&now)), ((1, 2), (3, 3)));
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let dir = tempfile::tempdir().expect("a folder");
        let list = list(&[("a", "holds", 5.0)]);
        let text = serde_json::to_string(&list).expect("it is text");
        fs::write(dir.path().join(CLAIMS), text).expect("it is written");
        let read = ClaimList::read(dir.path()).expect("it is there");
        assert_eq!(read.claims, list.claims);
        let claim = &read.claims[0];
        assert_eq!(claim.numbers(), [4.0, 5.0, 4.0, 6.0, 5.0]);
        fs::write(dir.path().join("other.json"), "{}").expect("it is written");
        let error = ClaimList::read(&dir.path().join("other.json")).expect_err("it is none");
        assert!(
            error.to_string().contains("other.json") && error.to_string().contains("claims.json")
        );
    }
}
