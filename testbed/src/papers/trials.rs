//! What could explain a difference: each factor changed alone, under the same seeds, everything else
//! equal, and what becomes then of all figures and all claims.

use std::collections::{BTreeMap, BTreeSet};

use super::claims::{Judged, Verdict, judge_all};
use super::figures::{Row, beyond, rows};
use super::paper::{Factor, Paper, Part};
use super::results::Results;
use crate::experiment::InputError;
use crate::sweep::{Cell, Samples};

/// What became of figures and claims under a factor.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The factor; `None`: as ours are, in these experiments.
    pub factor: Option<Factor>,
    /// The figures.
    pub rows: Vec<Row>,
    /// The claims.
    pub claims: Vec<Judged>,
    /// The claims, by what they say, that fail without it and hold with it.
    pub mends: Vec<String>,
    /// Those that hold without it and no longer with it.
    pub breaks: Vec<String>,
}

impl Trial {
    /// What may be said of its factor. It is no more than a lead unless it mends all claims that fail,
    /// breaks none, and takes no figure away from the paper's; what something costs, and not how it is
    /// to be read, is not even that.
    #[must_use]
    pub fn word(&self, without: &Self) -> &'static str {
        let fails = without.claims.iter().filter(|claim| claim.verdict == Verdict::Fails).count();
        let further = beyond(&self.rows, None).0 > beyond(&without.rows, None).0;
        let mends_all = self.mends.len() == fails && self.breaks.is_empty() && !further;
        match &self.factor {
            None => "",
            Some(factor) if factor.counterfactual => "counterfactual",
            Some(_) if self.mends.is_empty() && self.breaks.is_empty() => "changes no verdict",
            Some(_) if self.mends.is_empty() => "mends nothing",
            Some(_) if mends_all => "mends all that fails",
            Some(_) => "lead",
        }
    }
}

/// The cases of a factor, and where the cell of each is.
type Wanted = Vec<(String, usize)>;

/// The experiments of all factors.
#[derive(Debug)]
pub(super) struct Trials<'a> {
    paper: &'a Paper,
    parts: Vec<&'a Part>,
    wanted: Vec<(Option<&'a Factor>, Wanted)>,
    pub(super) cells: Vec<Cell>,
}

impl<'a> Trials<'a> {
    /// Every factor that changes any of the cells that figures and claims of the paper are about;
    /// `settings` are those of a cell without any factor.
    ///
    /// # Errors
    ///
    /// A cell without a factor is wrong. One that can't be scheduled with a factor is left out, and
    /// what needs it is not judged there.
    pub(super) fn of(
        paper: &'a Paper,
        parts: &[&'a Part],
        (rows, claims): (&[Row], &[Judged]),
        settings: impl Fn(&str) -> Vec<String>,
    ) -> Result<Self, InputError> {
        let mut trials =
            Self { paper, parts: parts.to_vec(), wanted: Vec::new(), cells: Vec::new() };
        let cases = about(paper, rows, claims);
        let mut known = BTreeMap::new();
        let tried = paper.factors.iter().filter(|factor| !factor.preset).map(Some);
        for factor in std::iter::once(None).chain(tried) {
            let of = |case: &str| factor.map_or(Vec::new(), |f| paper.settings(f, case));
            let changes = factor.is_none_or(|f| {
                !f.metrics.is_empty() || cases.iter().any(|case| !of(case).is_empty())
            });
            if !changes {
                continue;
            }
            let mut wanted = Wanted::new();
            for case in &cases {
                let set = [settings(case), of(case)].concat();
                let at = match known.get(&(case.clone(), set.clone())) {
                    Some(at) => *at,
                    None => match paper.cell(case, &set) {
                        Ok(cell) => {
                            trials.cells.push(cell);
                            known.insert((case.clone(), set), trials.cells.len() - 1);
                            trials.cells.len() - 1
                        }
                        Err(error) if factor.is_none() => return Err(error),
                        Err(_) => continue,
                    },
                };
                wanted.push((case.clone(), at));
            }
            trials.wanted.push((factor, wanted));
        }
        Ok(trials)
    }

    /// What came of them, the one without a factor first.
    pub(super) fn judged(&self, samples: &Samples) -> Vec<Trial> {
        let mut all: Vec<Trial> = Vec::new();
        for (factor, wanted) in &self.wanted {
            let samples = wanted.iter().map(|(case, at)| (case.clone(), samples[*at].clone()));
            let instead = factor.map(|f| f.metrics.clone()).unwrap_or_default();
            let results = Results::new(samples).with(instead);
            let rows = rows(self.paper, &self.parts, &results);
            let claims = judge_all(self.paper, &results);
            let turned = |from: Verdict, to: Verdict| {
                let Some(without) = all.first() else { return Vec::new() };
                let was = |says: &str| {
                    without.claims.iter().any(|c| c.claim.says == says && c.verdict == from)
                };
                let turned = claims.iter().filter(|c| c.verdict == to && was(&c.claim.says));
                turned.map(|c| c.claim.says.clone()).collect()
            };
            let (mends, breaks) =
                (turned(Verdict::Fails, Verdict::Holds), turned(Verdict::Holds, Verdict::Fails));
            all.push(Trial { factor: factor.cloned(), rows, claims, mends, breaks });
        }
        all
    }
}

/// The cells that printed figures and claims are about on which the paper is not silent.
fn about(paper: &Paper, rows: &[Row], claims: &[Judged]) -> Vec<String> {
    let printed = rows.iter().filter(|row| row.paper.is_some()).map(|row| row.case.clone());
    let said = claims.iter().filter(|claim| claim.verdict != Verdict::Silent).flat_map(|judged| {
        let claim = &judged.claim;
        [Some(&claim.of), claim.than.as_ref()].into_iter().flatten().flat_map(|p| paper.expand(p))
    });
    let wanted: BTreeSet<String> = printed.chain(said).collect();
    // In the paper's order; what compares two cells is none.
    let all = paper.parts.iter().flat_map(|part| paper.cells_of(part));
    let mut seen = BTreeSet::new();
    all.filter(|case| wanted.contains(case) && seen.insert(case.clone())).collect()
}
